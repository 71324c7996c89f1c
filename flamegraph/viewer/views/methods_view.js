// @ts-check
/** The table of all methods of a scope: what each costs, and how alike the hosts are in it. */

import { make } from "../controls/dom.js";
import { percent, quantity } from "../data/format.js";
import { FAMILIES } from "../data/frame_kinds.js";
import { HostShares } from "../data/host_shares.js";
import { collectMethods, outermostOf } from "../data/methods.js";
import { methodButton } from "../graph/frame_details.js";
import { barOf, SortedTable } from "./table.js";

/** @import { Context } from "../controls/context.js" */
/** @import { Spread } from "../data/host_shares.js" */
/** @import { Method } from "../data/methods.js" */
/** @import { Profile } from "../data/profile.js" */
/** @import { State } from "../data/state.js" */
/** @typedef {import("./table.js").TableColumn<Method>} MethodColumn */

const SVG = "http://www.w3.org/2000/svg";
const STRIP = 96;
/** The hottest host is worth a bold name where it has this many times the median's share, and this much. */
const STANDS_OUT = 2;
const WORTH_TELLING = 0.01;

export class MethodsView {
  /**
   * @param {Context} context
   * @param {HTMLElement} panel
   */
  constructor(context, panel) {
    this.context = context;
    /** @type {SortedTable<Method>} */
    this.table = new SortedTable("methods", "Methods", (change) => context.set(change));
    panel.replaceChildren(this.table.element);
    /** @type {Profile | null} */
    this.profile = null;
    /** @type {Method[]} */
    this.methods = [];
    /** What the shares of hosts were read for. */
    this.hostsKey = "";
    /** @type {HostShares | null} */
    this.hosts = null;
    /** What the columns were made for, and they. @type {unknown[]} */
    this.madeFor = [];
    /** @type {MethodColumn[]} */
    this.columns = [];
  }

  /** @param {State} state */
  update(state) {
    const { profile } = this.context;
    if (profile !== this.profile) this.read(profile);
    this.render(state);
  }

  /** @param {Profile} profile */
  read(profile) {
    const { context } = this;
    this.profile = profile;
    this.methods = collectMethods(profile, outermostOf(context.tree)).sort((a, b) => b.total - a.total || b.self - a.self);
    const key = `${context.event} ${context.thread} ${context.scope.run}`;
    if (key === this.hostsKey) return;
    this.hostsKey = key;
    if (this.hosts) this.hosts.stopped = true;
    this.hosts = new HostShares(context, this.methodsOfRun());
    if (this.hosts.hosts.length < 2) this.hosts = null;
    else void this.readHosts(this.hosts);
  }

  /** The methods of all hosts, whichever scope is shown. */
  methodsOfRun() {
    const { tree, scopes, event, thread, scope } = this.context;
    const all = scopes.sumOfRun(scope.run);
    return () => collectMethods(scopes.profileOf(all, event, thread), outermostOf(tree));
  }

  /** @param {HostShares} hosts */
  async readHosts(hosts) {
    const { context } = this;
    try {
      if ((await hosts.read()) && context.state.view === "methods") this.render(context.state);
    } catch (error) {
      if (hosts !== this.hosts) return;
      this.hostsKey = "";
      this.hosts = null;
      if (context.state.view !== "methods") {
        this.profile = null; // read again when it is shown
        return;
      }
      this.render(context.state);
      context.failed(error);
    }
  }

  /** @param {State} state */
  render(state) {
    const { profile, methods } = this;
    if (!profile) return;
    const { matches } = this.context;
    const listed = matches ? methods.filter((method) => matches.names[method.name]) : methods;
    this.prepareColumns(profile, /total|hosts/.test(state.sort) ? "total" : "self");
    this.table.show(this.columns, listed, state.sort, state.rows);
  }

  /**
   * Columns stay the same as long as they say the same.
   * @param {Profile} profile
   * @param {"self" | "total"} of which share of the hosts is shown
   */
  prepareColumns(profile, of) {
    const madeFor = [profile, of, this.hosts, this.hosts?.done];
    if (madeFor.every((one, at) => one === this.madeFor[at])) return;
    this.madeFor = madeFor;
    this.columns = this.makeColumns(profile, of);
  }

  /**
   * @param {Profile} profile
   * @param {"self" | "total"} of
   * @returns {MethodColumn[]}
   */
  makeColumns(profile, of) {
    const longest = this.methods.reduce((most, method) => Math.max(most, method.self), 1);
    const whole = profile.sum();
    /** @type {MethodColumn[]} */
    const columns = [
      {
        key: "self", label: "Self", title: "Sort by what the method itself costs", className: "share self",
        value: (method) => method.self,
        cell: (method) => amountCell(profile, method.self, whole, longest),
      },
      {
        key: "total", label: "Total", title: "Sort by what the method costs with all it calls", className: "share total",
        value: (method) => method.total,
        cell: (method) => amountCell(profile, method.total, whole, whole),
      },
      {
        key: "name", label: "Method", title: "Sort by name", className: "name",
        value: (method) => profile.names[method.name],
        cell: (method) => [methodButton(this.context, profile.names[method.name])],
      },
    ];
    return columns.concat(this.hosts ? this.hostColumns(this.hosts, of) : [kindColumn(profile)]);
  }

  /**
   * @param {HostShares} hosts
   * @param {"self" | "total"} of
   * @returns {MethodColumn[]}
   */
  hostColumns(hosts, of) {
    const spread = (/** @type {Method} */ method) => hosts.spreadOf(method, of);
    const name = (/** @type {Spread} */ one) => this.context.page.hosts[hosts.hosts[one.where]].name;
    return [
      {
        key: "hosts", label: "Hosts", title: "Sort by how many hosts it shows on", className: "number",
        value: (method) => spread(method)?.hosts ?? -1,
        cell: (method) => [make("span", "", hostsText(spread(method), hosts))],
      },
      {
        key: "spread", label: `Spread of ${of}`, className: "spread",
        title: `Sort by how far hosts are apart. A line for each host's share (${of}), the thick one is the median`,
        value: (method) => rangeOf(spread(method)),
        cell: (method) => stripOf(spread(method), hosts.sharesOf(method, of)),
      },
      {
        key: "most", label: "Most on", title: "Sort by the largest share of a host", className: "most",
        value: (method) => spread(method)?.most ?? -1,
        cell: (method) => mostOn(spread(method), name),
      },
    ];
  }
}

/**
 * @param {Profile} profile
 * @param {number} amount
 * @param {number} whole
 * @param {number} longest what fills the bar
 */
function amountCell(profile, amount, whole, longest) {
  const [text, bar] = barOf(percent(amount, whole), amount / longest);
  text.title = quantity(amount, profile.event);
  return [text, bar];
}

/**
 * @param {Profile} profile
 * @returns {MethodColumn}
 */
function kindColumn(profile) {
  const kind = (/** @type {Method} */ method) => FAMILIES[profile.familyOf(method.origin)].label;
  return {
    key: "kind", label: "Kind", title: "Sort by kind", className: "kind",
    value: kind, cell: (method) => [make("span", "", kind(method))],
  };
}

/**
 * @param {Spread | null} spread
 * @param {HostShares} hosts
 */
function hostsText(spread, hosts) {
  if (spread) return `${spread.hosts} of ${hosts.hosts.length}`;
  return hosts.done < hosts.hosts.length ? "…" : "";
}

/** @param {Spread | null} spread */
function rangeOf(spread) {
  return spread ? spread.most - spread.least : -1;
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
  strip.append(
    linesAt("range", `M${place(least)} 7H${place(most)}`),
    linesAt("one", Array.from(new Set(Array.from(shares, place)), (x) => `M${x} 3v8`).join("")),
    linesAt("median", `M${place(median)} 1v12`),
  );
  const box = make("span", "strips");
  box.title = range;
  box.append(strip);
  return [box];
}

/**
 * @param {string} className
 * @param {string} path
 */
function linesAt(className, path) {
  const lines = document.createElementNS(SVG, "path");
  lines.setAttribute("class", className);
  lines.setAttribute("d", path);
  return lines;
}

/**
 * @param {Spread | null} spread
 * @param {(spread: Spread) => string} name of its host
 */
function mostOn(spread, name) {
  if (!spread || spread.most === 0) return [];
  const far = spread.most > STANDS_OUT * spread.median && spread.most >= WORTH_TELLING;
  const host = make(far ? "b" : "span", far ? "" : "soft");
  host.append(make("bdi", "", name(spread)));
  return [host, make("span", far ? "" : "soft", ` ${percent(spread.most, 1)}`)];
}
