// @ts-check
/** The table of hosts, and of the processes of one host. */

import { filled, linkButton, make } from "../controls/dom.js";
import { amounts, percent, shortName } from "../data/format.js";
import { nameElement } from "../graph/frame_details.js";
import { linkTo } from "./summary.js";
import { barOf, SortedTable } from "./table.js";

/** @import { Context, View } from "../controls/context.js" */
/** @import { HostRow, Hosts, PageInfo } from "../data/page.js" */
/** @import { State } from "../data/state.js" */
/** @typedef {import("./table.js").TableColumn<HostRow>} HostColumn */
/** @typedef {import("./table.js").TableColumn<Row>} ProcessColumn */

/** Methods listed for an outlier. */
const DIFFERENCES = 3;
/** Puts all outliers before all others. */
const OUTLIER = 1e6;

/** @implements {View} */
export class HostsView {
  /**
   * @param {Context} context
   * @param {HTMLElement} panel
   */
  constructor(context, panel) {
    this.context = context;
    this.hosts = new HostsTable(context.page, context);
    this.ofPart = new PartsTable(context, "host");
    this.processes = new PartsTable(context, "process");
    panel.append(this.hosts.element, this.ofPart.element, this.processes.element);
  }

  /** @param {State} state */
  update(state) {
    const { event, part, page, thread } = this.context;
    const partly = part !== "" || thread >= 0;
    // The page was written with the hosts of the whole recording.
    this.hosts.show(event, state.sort, state.rows);
    this.hosts.element.hidden ||= partly;
    this.ofPart.update(state, partly && page.hosts.length > 1);
    this.processes.update(state, page.hosts.length === 1 && page.processes.length > 1);
  }
}

/** The hosts of an event: their samples, and their distance from the other hosts. */
export class HostsTable {
  /**
   * @param {PageInfo} page
   * @param {Context | null} context null where there are no views that the hosts lead to
   * @param {string} [id] of its table
   */
  constructor(page, context, id = "hosts") {
    this.page = page;
    this.context = context;
    /** @type {SortedTable<HostRow>} */
    this.table = new SortedTable(id, "Hosts", (change) => {
      if (context) context.set(change);
      else this.show(this.event, change.sort ?? "", change.rows ?? 0);
    });
    this.notes = make("div");
    this.element = filled("section", "hosts", make("h2", "", "Hosts"), this.table.element, this.notes);
    this.event = -1;
    /** @type {HostColumn[]} */
    this.columns = [];
  }

  /**
   * @param {number} event
   * @param {string} sort a column's key; else the least alike come first, or hosts stand as in the run
   * @param {number} rows
   */
  show(event, sort, rows) {
    const { hosts } = this.page.summaries[event];
    this.element.hidden = !hosts;
    if (!hosts) return;
    if (event !== this.event) {
      this.columns = this.makeColumns(event, hosts);
      this.notes.replaceChildren(...notesOf(hosts));
    }
    this.event = event;
    const known = this.columns.some(({ key }) => key === sort.replace(/^-/, ""));
    this.table.show(this.columns, hosts.rows, known ? sort : hosts.compared ? "unlike" : null, rows);
    this.table.element.hidden = hosts.rows.length === 0;
  }

  /**
   * @param {number} event
   * @param {Hosts} hosts
   * @returns {HostColumn[]}
   */
  makeColumns(event, { heads, rows, compared }) {
    const totals = rows.map(({ total }) => total ?? 0);
    const whole = totals.reduce((sum, total) => sum + total, 0);
    const largest = Math.max(1, ...totals);
    const several = totals.filter((total) => total > 0).length > 1;
    const { name } = this.page.events[event];
    /** @type {HostColumn[]} */
    const columns = [
      {
        key: "host", label: "Host", title: "Sort by name", className: "host",
        value: (row) => row.name,
        cell: (row) => {
          const shown = make("bdi", "", row.name);
          return [several && row.total !== null ? linkTo({ event: name, scope: `host:${row.host}` }, shown) : shown];
        },
      },
      {
        key: "processes", label: "Processes", title: "Sort by number of recorded processes", className: "number",
        value: (row) => (row.processes ? row.recorded : -1),
        cell: ({ recorded, processes }) => [make("span", "", recorded < processes ? `${recorded} of ${processes}` : String(processes || ""))],
      },
      ...heads.map((label, at) => ({
        key: label.toLowerCase().replaceAll(" ", "-"), label, title: "Sort by this column", className: "number",
        value: (/** @type {HostRow} */ row) => row.counts[at]?.[1] ?? -1,
        cell: (/** @type {HostRow} */ row) => [make("span", "", row.counts[at]?.[0] ?? "")],
      })),
      {
        key: "share", label: "Share", title: "Sort by share", className: "share total",
        value: (row) => row.total ?? -1,
        cell: ({ total }) => (total === null ? [] : barOf(percent(total, whole), total / largest)),
      },
      {
        key: "hottest", label: "Hottest method", title: "Sort by name", className: "name",
        value: ({ hottest }) => hottest?.[0] ?? "",
        cell: ({ hottest, why_empty }) =>
          hottest ? [nameElement(hottest[0]), make("span", "soft", ` ${percent(hottest[1], 1)}`)] : [make("span", "soft", why_empty)],
      },
    ];
    if (!compared) return columns;
    return columns.concat({
      key: "unlike", label: "Unlike the others", title: "Sort by distance from the other hosts", className: "unlike",
      value: ({ unlike }) => (unlike ? unlike.divergence + (unlike.outlier ? OUTLIER : 0) : -1),
      cell: (row) => this.unlike(row),
    });
  }

  /**
   * The distance from the other hosts, marked if it is an outlier, with buttons that compare the host and its methods.
   * @param {HostRow} row
   */
  unlike({ host, name, unlike, taken }) {
    const { context } = this;
    if (!unlike) return [];
    const number = unlike.divergence.toFixed(4);
    const shown = unlike.outlier ? make("span", "state degraded", `unlike ${number}`) : make("span", "soft", number);
    shown.title =
      `Jensen–Shannon divergence ${unlike.divergence.toFixed(6)} bits, ${unlike.noise.toFixed(6)} by chance; ` +
      `cosine ${unlike.cosine.toFixed(4)}; ${percent(unlike.moved, 1)} of the samples are elsewhere`;
    if (!context || host === null || taken === 0) return [shown];
    const compare = (/** @type {string} */ method) => compareWithRest(context, `host:${host}`, method && `"${method}"`);
    const cells = [filled("span", "", shown, " ", restButton("host", name, () => compare("")))];
    if (!unlike.outlier) return cells;
    const differences = unlike.methods.slice(0, DIFFERENCES).map(([method, share, usual]) => {
      const title = "Compare this host with the rest, this method marked";
      const button = linkButton(title, () => compare(method), make("bdi", "", shortName(method)));
      return filled("li", "", button, make("span", "soft", ` ${percent(share, 1)} here, ${percent(usual, 1)} usually`));
    });
    return [...cells, filled("ul", "differs", ...differences)];
  }
}

/**
 * @param {Context} context
 * @param {string} scope
 * @param {string} q what is marked
 */
function compareWithRest(context, scope, q) {
  context.go({ view: "compare", scope, with: `rest:${scope}`, q, regexp: false, zoom: 0 });
}

/**
 * @param {"host" | "process"} kind
 * @param {string} name
 * @param {() => void} act
 */
function restButton(kind, name, act) {
  const button = linkButton(`Compare this ${kind} with the rest`, act, "Compare");
  button.classList.add("rest");
  button.setAttribute("aria-label", `Compare ${name} with the rest`);
  return button;
}

/**
 * Outliers among the processes, on hosts that are none; idle hosts.
 * @param {Hosts} hosts
 */
function notesOf({ odd, more_odd, idle }) {
  const notes = [];
  if (odd.length) {
    const listed = odd.map(({ who, what }) => filled("li", "", make("bdi", "", who), `: ${what}`));
    if (more_odd) listed.push(make("li", "", `and ${more_odd} more`));
    notes.push(filled("div", "lead", "Processes unlike the others:", filled("ul", "", ...listed)));
  }
  if (idle.length) {
    const names = idle.flatMap((name, at) => [at ? ", " : "", make("bdi", "", name)]);
    notes.push(filled("p", "lead", "Idle, without a matching process: ", ...names, "."));
  }
  return notes;
}

/**
 * A host or a process, by its number; `method` is the one with the largest self share, an index into the names, -1 for
 * none.
 * @typedef {{index: number, amount: number, method: number, most: number}} Row
 */

/** The hosts of a part of the recording; the processes of a page of one host. */
class PartsTable {
  /**
   * @param {Context} context
   * @param {"host" | "process"} kind
   */
  constructor(context, kind) {
    const id = kind === "host" ? "hosts-of-part" : "processes";
    const title = kind === "host" ? "Hosts" : "Processes";
    this.context = context;
    /** @type {"host" | "process"} */
    this.kind = kind;
    /** @type {SortedTable<Row>} */
    this.table = new SortedTable(id, title, (change) => context.set(change));
    this.element = filled("section", id, make("h2", "", title), this.table.element);
    /** The event, threads and numbers of the rows. @type {unknown[]} */
    this.shown = [];
    /** @type {Row[]} */
    this.rows = [];
    /** @type {ProcessColumn[]} */
    this.columns = [];
  }

  /**
   * @param {State} state
   * @param {boolean} wanted
   */
  update(state, wanted) {
    this.element.hidden = !wanted;
    if (!wanted) return;
    const { event, thread, numbers } = this.context;
    const shown = [event, thread, numbers];
    if (shown.some((one, at) => one !== this.shown[at])) {
      this.rows = this.collect();
      this.columns = this.makeColumns();
    }
    this.shown = shown;
    this.table.show(this.columns, this.rows, state.sort, state.rows);
  }

  /** Those with samples of the event. */
  collect() {
    const { page, tree, scopes, numbers, event, thread } = this.context;
    const self = new Float64Array(tree.names.length);
    /** @type {Row[]} */
    const rows = [];
    for (const index of (this.kind === "host" ? page.hosts : page.processes).keys()) {
      const scope = scopes.parse(`${this.kind}:${index}`);
      if (!scope) continue;
      const { amount } = numbers.amounts(scope, event, thread);
      if (amount === 0) continue;
      self.fill(0);
      for (const { column } of this.context.columns(scope)) {
        numbers.eachValue(column, (node, value) => {
          if (node > 0) self[tree.name[node]] += value;
        });
      }
      const method = self.reduce((hottest, cost, name) => (cost > (self[hottest] ?? 0) ? name : hottest), -1);
      rows.push({ index, amount, method, most: self[method] ?? 0 });
    }
    return rows;
  }

  /** @returns {ProcessColumn[]} */
  makeColumns() {
    const { context, kind } = this;
    const { page, tree } = context;
    const info = context.numbers.eventInfo(context.event);
    const whole = this.rows.reduce((sum, { amount }) => sum + amount, 0);
    const largest = this.rows.reduce((most, { amount }) => Math.max(most, amount), 1);
    const nameOf = (/** @type {Row} */ { index }) =>
      kind === "host" ? page.hosts[index].name : page.processes[index].name || "process";
    /** @type {ProcessColumn[]} */
    const columns = [
      {
        key: "amount", label: "Share", title: "Sort by share", className: "share total",
        value: ({ amount }) => amount, cell: ({ amount }) => barOf(percent(amount, whole), amount / largest),
      },
      {
        key: "in-all", label: "Amount", title: "Sort by amount", className: "number",
        value: ({ amount }) => amount, cell: ({ amount }) => [make("span", "", amounts(amount, info).join(" · "))],
      },
      {
        key: "process", label: kind === "host" ? "Host" : "Process", title: "Sort by name", className: "name",
        value: nameOf,
        cell: (row) => {
          const show = () => context.go({ view: "graph", scope: `${kind}:${row.index}`, zoom: 0 });
          return [linkButton(`The flame graph of this ${kind}`, show, make("bdi", "", nameOf(row)))];
        },
      },
    ];
    if (kind === "process") {
      columns.push({
        key: "pid", label: "Pid", title: "Sort by process id", className: "number",
        value: ({ index }) => page.processes[index].pid, cell: ({ index }) => [make("span", "", String(page.processes[index].pid))],
      });
    }
    columns.push({
      key: "hottest", label: "Hottest method", title: "Sort by the share of the hottest method", className: "hottest-method",
      value: ({ most, amount }) => most / amount,
      cell: (row) => {
        const { index, amount, method, most } = row;
        const hottest = method < 0 ? [] : [nameElement(tree.names[method]), make("span", "soft", ` ${percent(most, amount)} `)];
        return [...hottest, restButton(kind, nameOf(row), () => compareWithRest(context, `${kind}:${index}`, ""))];
      },
    });
    return columns;
  }
}
