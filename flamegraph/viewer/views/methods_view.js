// @ts-check
/** The table of a scope's methods: their costs, and how these spread over hosts. Below the flame graph it is shorter. */

import { filled, make } from "../controls/dom.js";
import { hasNoTotal } from "../data/callers.js";
import { percent, quantity } from "../data/format.js";
import { FAMILIES } from "../data/frame_kinds.js";
import { HostShares } from "../data/host_shares.js";
import { attributionOf, baseOf, collectClasses, collectMethods, payersOf, withoutLeftOut } from "../data/methods.js";
import { saysOf } from "../data/waits.js";
import { methodButton } from "../graph/frame_details.js";
import { linkTo, queryOf } from "./summary.js";
import { barOf, noTotal, SortedTable } from "./table.js";

/** @import { Context } from "../controls/context.js" */
/** @import { Spread } from "../data/host_shares.js" */
/** @import { Method } from "../data/methods.js" */
/** @import { Profile } from "../data/profile.js" */
/** @import { State } from "../data/state.js" */
/** @typedef {import("./table.js").TableColumn<Method>} MethodColumn */

const SVG = "http://www.w3.org/2000/svg";
const STRIP = 96;
/** The hottest host is bold if it has this many times the median's share, and at least this share. */
const STANDS_OUT = 2;
const WORTH_TELLING = 0.01;
/** Methods that are shown below the flame graph. */
const HOTTEST = 12;

export class MethodsView {
  /**
   * @param {Context} context
   * @param {HTMLElement} panel
   * @param {"methods" | "hottest-methods"} [id] of the table
   */
  constructor(context, panel, id = "methods") {
    this.context = context;
    const short = id === "hottest-methods";
    const first = short ? HOTTEST : undefined;
    /** The view that it is a part of. */
    this.view = short ? "graph" : "methods";
    /** What the columns mean, and what shares are of. */
    this.lead = make("p", "lead");
    /** @type {SortedTable<Method>} */
    this.table = new SortedTable(id, short ? "Hottest methods" : "Methods", (change) => context.set(change), first);
    /** What was allocated, or locked. @type {SortedTable<Method>} */
    this.classTable = new SortedTable(short ? "hottest-classes" : "classes", "Classes", (change) => context.set(change), first);
    this.ofClasses = filled("section", "", make("h2", "", "Classes"), this.classTable.element);
    panel.replaceChildren(this.lead, this.table.element, this.ofClasses);
    /** @type {Method[]} */
    this.classes = [];
    /** @type {MethodColumn[]} */
    this.classColumns = [];
    /** @type {Profile | null} */
    this.profile = null;
    /** @type {Method[]} */
    this.methods = [];
    /** What shares are of. */
    this.whole = 0;
    /** The event, threads, run and numbers of the hosts' shares. @type {unknown[]} */
    this.hostsKey = [];
    /** @type {HostShares | null} */
    this.hosts = null;
    /** What the columns were made for, and they. @type {unknown[]} */
    this.madeFor = [];
    /** @type {MethodColumn[]} */
    this.columns = [];
  }

  /** @param {State} state */
  update(state) {
    const { profile, scopes, numbers, event, thread, scope: { run } } = this.context;
    if (profile !== this.profile) {
      this.profile = profile;
      const attribution = withoutLeftOut(attributionOf(profile, payersOf(profile)), profile);
      const base = baseOf(profile, attribution);
      this.whole = base.whole;
      this.lead.textContent = this.leadOf(base);
      this.methods = collectMethods(profile, attribution);
      this.classes = collectClasses(profile);
      this.classColumns = this.makeClassColumns(profile, attribution.payers);
      const key = [event, thread, run, numbers];
      if (key.some((one, at) => one !== this.hostsKey[at])) {
        if (this.hosts) this.hosts.stopped = true;
        const ofRun = () => collectMethods(numbers.profileOf(scopes.sumOfRun(run), event, thread), attribution);
        const hosts = new HostShares(this.context, ofRun, attribution);
        this.hostsKey = key;
        this.hosts = hosts.hosts.length < 2 ? null : hosts;
        if (this.hosts) void this.readHosts(hosts);
      }
    }
    this.render(state);
  }

  /** @param {HostShares} hosts */
  async readHosts(hosts) {
    const { context } = this;
    try {
      if ((await hosts.read()) && context.state.view === this.view) this.render(context.state);
    } catch (error) {
      if (hosts !== this.hosts) return;
      this.hosts = null;
      if (context.state.view === this.view) {
        this.render(context.state);
        context.failed(error);
      }
      this.hostsKey = [];
      this.profile = null; // read again at the next change
    }
  }

  /** @param {State} state */
  render(state) {
    const { profile, methods } = this;
    if (!profile) return;
    const { matches } = this.context;
    const listed = matches ? methods.filter((method) => matches[method.name]) : methods;
    const of = /total|hosts/.test(state.sort) && !profile.event.self_only ? "total" : "self";
    // Columns are kept while they show the same.
    const madeFor = [profile, of, this.hosts, this.hosts?.done];
    if (madeFor.some((one, at) => one !== this.madeFor[at])) this.columns = this.makeColumns(profile, of);
    this.madeFor = madeFor;
    this.table.show(this.columns, listed, state.sort, state.rows);
    this.ofClasses.hidden = this.classes.length === 0;
    const classes = matches ? this.classes.filter((one) => matches[one.name]) : this.classes;
    const known = this.classColumns.some(({ key }) => key === state.sort.replace(/^-/, ""));
    this.classTable.show(this.classColumns, classes, known ? state.sort : null, state.rows);
  }

  /**
   * What the columns mean, what shares are of, and what of that is in no row.
   * @param {{whole: number, profiler: number, left: number}} base
   */
  leadOf({ whole, profiler, left }) {
    const { page, event, idleHidden } = this.context;
    const { title } = page.events[event];
    const hidden = [idleHidden && "idle threads", left > 0 && "broken stacks"].filter(Boolean);
    const without = hidden.length ? ` without ${hidden.join(" and ")}` : "";
    const own = profiler > 0 ? ` The profiler’s own work, ${percent(profiler, whole)}, is in no row of its own.` : "";
    return `${page.summaries[event].lead} Shares are of all ${title} shown${without}.${own}`;
  }

  /**
   * @param {Profile} profile
   * @param {Int32Array | null} payers
   * @returns {MethodColumn[]}
   */
  makeClassColumns(profile, payers) {
    const { whole } = this;
    const longest = this.classes[0]?.self ?? 1;
    const most = (/** @type {Method} */ { origin }) => profile.names[profile.name[payers ? payers[origin] : origin]] ?? "";
    return [
      {
        key: "class-self", label: "Share", title: "Sort by share", className: "share self",
        value: ({ self }) => self,
        cell: ({ self }) => {
          const [text, bar] = barOf(percent(self, whole), self / longest);
          text.title = quantity(self, profile.event);
          return [text, bar];
        },
      },
      {
        key: "class", label: "Class", title: "Sort by name", className: "name",
        value: ({ name }) => profile.names[name], cell: ({ name }) => [methodButton(this.context, profile.names[name])],
      },
      {
        key: "class-by", label: "Most by", title: "Sort by the method that most of it is for", className: "hottest-method",
        value: most, cell: (one) => [methodButton(this.context, most(one))],
      },
    ];
  }

  /**
   * @param {Profile} profile
   * @param {"self" | "total"} of which share of the hosts is shown
   * @returns {MethodColumn[]}
   */
  makeColumns(profile, of) {
    const longest = this.methods.reduce((most, method) => Math.max(most, method.self), 1);
    const { whole } = this;
    const amountCell = (/** @type {number} */ amount, /** @type {number} */ full) => {
      const [text, bar] = barOf(percent(amount, whole), amount / full);
      text.title = quantity(amount, profile.event);
      return [text, bar];
    };
    const unknown = (/** @type {Method} */ { does, name }) => does === 0 && hasNoTotal(profile.event, profile.names[name]);
    const kind = (/** @type {Method} */ { does, origin }) => (does ? "Wait" : FAMILIES[profile.familyOf(origin)].label);
    /** @type {MethodColumn[]} */
    const columns = [
      {
        key: "self", label: "Self", title: "Sort by self cost", className: "share self",
        value: (method) => method.self, cell: (method) => amountCell(method.self, longest),
      },
      {
        key: "total", label: "Total", title: "Sort by total cost, with everything the method calls", className: "share total",
        value: (method) => (unknown(method) ? -1 : method.total),
        cell: (method) => (unknown(method) ? [noTotal()] : amountCell(method.total, whole)),
      },
      {
        key: "name", label: "Method", title: "Sort by name", className: "name",
        value: (method) => rowName(profile.names, method), cell: (method) => rowCell(this.context, profile.names, method),
      },
    ];
    if (profile.event.self_only) columns.splice(1, 1);
    const { ipc } = this.context;
    if (ipc) {
      columns.splice(-1, 0, {
        key: "ipc", label: "IPC", title: "Sort by instructions per cycle of the method itself", className: "number",
        value: (method) => ipc.get(method.name) ?? -1,
        cell: (method) => [make("span", "", ipc.get(method.name)?.toFixed(2) ?? "")],
      });
    }
    if (this.hosts) return columns.concat(this.hostColumns(this.hosts, of));
    return columns.concat({
      key: "kind", label: "Kind", title: "Sort by kind", className: "kind",
      value: kind, cell: (method) => [make("span", "", kind(method))],
    });
  }

  /**
   * @param {HostShares} shares
   * @param {"self" | "total"} of
   * @returns {MethodColumn[]}
   */
  hostColumns(shares, of) {
    const { hosts, done } = shares;
    const spread = (/** @type {Method} */ method) => shares.spreadOf(method, of);
    return [
      {
        key: "hosts", label: "Hosts", title: "Sort by number of hosts with this method", className: "number",
        value: (method) => spread(method)?.hosts ?? -1,
        cell: (method) => {
          const found = spread(method);
          return [make("span", "", found ? `${found.hosts} of ${hosts.length}` : done < hosts.length ? "…" : "")];
        },
      },
      {
        key: "spread", label: `Spread of ${of}`, className: "spread",
        title: `Sort by the range of the hosts' shares. One line per host (${of} share); the thick line is the median`,
        value: (method) => {
          const found = spread(method);
          return found ? found.most - found.least : -1;
        },
        cell: (method) => stripOf(spread(method), shares.sharesOf(method, of)),
      },
      {
        key: "most", label: "Most on", title: "Sort by the largest share of a host", className: "most",
        value: (method) => spread(method)?.most ?? -1,
        cell: (method) => {
          const found = spread(method);
          if (!found || found.most === 0) return [];
          const far = found.most > STANDS_OUT * found.median && found.most >= WORTH_TELLING;
          const { page, event } = this.context;
          const host = hosts[found.where];
          const query = queryOf(this.context.tree.names[method.name]);
          const link = linkTo({ event: page.events[event].name, scope: `host:${host}`, q: query }, make("bdi", "", page.hosts[host].name));
          return [filled(far ? "b" : "span", far ? "" : "soft", link), make("span", far ? "" : "soft", ` ${percent(found.most, 1)}`)];
        },
      },
    ];
  }
}

/**
 * What a row is sorted by: "sleeps in a/Job.run", "a/Job.run".
 * @param {string[]} names
 * @param {{name: number, does: number}} row
 */
export function rowName(names, { name, does }) {
  return does ? `${saysOf(does)} ${names[name]}` : names[name];
}

/**
 * The same as the cell of a table.
 * @param {Context} context
 * @param {string[]} names
 * @param {{name: number, does: number}} row
 */
export function rowCell(context, names, { name, does }) {
  return [...(does ? [make("span", "says", `${saysOf(does)} `)] : []), methodButton(context, names[name])];
}

/**
 * A thin line for every host's share from 0 to the largest, a thick one for the median.
 * @param {Spread | null} spread
 * @param {Float32Array} shares
 * @returns {HTMLElement[]}
 */
function stripOf(spread, shares) {
  if (!spread || spread.most === 0) return [];
  const { least, median, most } = spread;
  const place = (/** @type {number} */ share) => (2 + (share / most) * (STRIP - 4)).toFixed(1);
  const range = `${percent(least, 1)} to ${percent(most, 1)}, median ${percent(median, 1)}`;
  const strip = document.createElementNS(SVG, "svg");
  strip.setAttribute("viewBox", `0 0 ${STRIP} 14`);
  strip.setAttribute("role", "img");
  strip.setAttribute("aria-label", range);
  const paths = {
    range: `M${place(least)} 7H${place(most)}`,
    one: Array.from(new Set(Array.from(shares, place)), (x) => `M${x} 3v8`).join(""),
    median: `M${place(median)} 1v12`,
  };
  for (const [className, path] of Object.entries(paths)) {
    const lines = document.createElementNS(SVG, "path");
    lines.setAttribute("class", className);
    lines.setAttribute("d", path);
    strip.append(lines);
  }
  const box = filled("span", "strips", strip);
  box.title = range;
  return [box];
}
