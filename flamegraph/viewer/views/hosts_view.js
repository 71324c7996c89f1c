// @ts-check
/** The table of hosts, and of the processes of one host. */

import { make } from "../controls/dom.js";
import { amounts, inOrder, percent, shortName } from "../data/format.js";
import { nameElement } from "../graph/frame_details.js";
import { barOf, SortedTable } from "./table.js";

/** @typedef {import("../controls/context.js").Context} Context */
/** @typedef {import("../data/page.js").Difference} Difference */
/** @typedef {import("../data/page.js").HostNumbers} HostNumbers */
/** @typedef {import("./table.js").TableColumn<Row>} ProcessColumn */
/** @typedef {import("../data/state.js").State} State */
/** @typedef {import("../controls/context.js").View} View */

/** Methods that are told of a host that is unlike the others. */
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
    this.tables = [...panel.querySelectorAll("table.hosts")]
      .filter((table) => table instanceof HTMLTableElement)
      .map((table) => new HostsTable(context, table));
    this.processes = new ProcessesTable(context);
    panel.append(this.processes.element);
  }

  /** @param {State} state */
  update(state) {
    for (const table of this.tables) table.sort(state.sort);
    this.processes.update(state);
  }
}

/** One event's table. In the address a column is a number. */
class HostsTable {
  /**
   * @param {Context} context
   * @param {HTMLTableElement} table
   */
  constructor(context, table) {
    this.context = context;
    this.body = table.tBodies[0];
    this.rows = [...this.body.rows];
    this.heads = [...(table.tHead?.rows[0].cells ?? [])];
    const event = Number(table.closest(".of-event")?.getAttribute("data-event") ?? 0);
    /** @type {HostNumbers[]} */
    this.numbers = (context.page.hosts_by_event[event] ?? []).filter((one) => one.taken > 0);
    this.heads.forEach((head, column) => this.liven(head, column));
    /** The column that says how alike the hosts are; -1 where nothing could be compared. */
    this.unlike = this.rows.length > 0 ? unlikeOf(this.rows[0])?.cellIndex ?? -1 : -1;
    if (this.unlike >= 0) this.rows.forEach((row) => this.link(row));
  }

  /**
   * @param {HTMLTableCellElement} head
   * @param {number} column
   */
  liven(head, column) {
    const button = make("button", "", head.textContent ?? "");
    button.title = "Sort by this column";
    button.addEventListener("click", () => {
      const turned = head.getAttribute("aria-sort") !== "none" && !this.context.state.sort.startsWith("-");
      this.context.set({ sort: `${turned ? "-" : ""}${column}` });
    });
    head.replaceChildren(button);
  }

  /**
   * A host leads to its comparison with the rest, and so does what differs there.
   * @param {HTMLTableRowElement} row
   */
  link(row) {
    const host = hostOf(row);
    const numbers = this.numbers.find((one) => one.host === host);
    const cell = unlikeOf(row);
    if (!numbers || !cell) return;
    cell.dataset.sort = String(numbers.distance + (numbers.outlier ? OUTLIER : 0));
    const rest = make("button", "link rest", "Compare");
    rest.title = "Compare this host with the rest";
    rest.setAttribute("aria-label", `Compare ${row.cells[0].textContent} with the rest`);
    rest.addEventListener("click", () => this.compare(host, ""));
    cell.querySelector(".soft")?.remove();
    cell.append(" ", rest);
    if (!numbers.outlier) return;
    const list = make("ul", "differs");
    list.append(...numbers.differs.slice(0, DIFFERENCES).map((one) => this.difference(host, one)));
    cell.append(list);
  }

  /**
   * @param {number} host
   * @param {Difference} difference
   */
  difference(host, { method, share, usual }) {
    const button = make("button", "link");
    button.append(make("bdi", "", shortName(method)));
    button.title = "Compare this host with the rest, this method marked";
    button.addEventListener("click", () => this.compare(host, method));
    const item = make("li");
    item.append(button, make("span", "soft", ` ${percent(share, 1)} here, ${percent(usual, 1)} usually`));
    return item;
  }

  /**
   * @param {number} host
   * @param {string} method is searched there
   */
  compare(host, method) {
    const query = method ? `"${method}"` : "";
    const sides = { scope: `host:${host}`, with: `rest:host:${host}` };
    this.context.go({ view: "compare", ...sides, query, regexp: false, zoom: 0, sort: "" });
  }

  /** @param {string} sort a column's number, "-" before it for the other direction; else the least alike come first */
  sort(sort) {
    const asked = /^(-?)(\d+)$/.exec(sort);
    const column = asked ? Number(asked[2]) : this.unlike;
    const way = asked?.[1] ? -1 : 1;
    const keyed = this.rows.map((row) => ({ row, value: valueOf(row.cells[column]) }));
    const numeric = keyed.some(({ value }) => typeof value === "number");
    keyed.sort((a, b) => compareValues(a.value, b.value, way));
    this.body.replaceChildren(...keyed.map(({ row }) => row));
    this.heads.forEach((head, index) => {
      const order = numeric === way > 0 ? "descending" : "ascending";
      head.setAttribute("aria-sort", index === column ? order : "none");
    });
  }
}

/**
 * The host that a row's link leads to.
 * @param {HTMLTableRowElement} row
 */
function hostOf(row) {
  const link = row.querySelector("a");
  const scope = new URLSearchParams(link?.hash.slice(1)).get("scope") ?? "";
  return scope.startsWith("host:") ? Number(scope.slice(5)) : -1;
}

/** @param {HTMLTableRowElement} row */
function unlikeOf(row) {
  return [...row.cells].find((cell) => cell.classList.contains("unlike"));
}

/**
 * What a cell sorts by: the amount that the page gives with it, else its text; null for nothing.
 * @param {HTMLTableCellElement | undefined} cell
 */
function valueOf(cell) {
  if (cell?.dataset.sort) return Number(cell.dataset.sort);
  return cell?.textContent?.trim() || null;
}

/**
 * Numbers from the largest, text from A, nothing always last.
 * @param {number | string | null} a
 * @param {number | string | null} b
 * @param {number} way
 */
function compareValues(a, b, way) {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  return way * (typeof a === "number" && typeof b === "number" ? b - a : inOrder(String(a), String(b)));
}

/**
 * A process; `method` is the one that it spends `most` in by itself, an index into the names, -1 for none.
 * @typedef {{process: number, amount: number, method: number, most: number}} Row
 */

export class ProcessesTable {
  /** @param {Context} context */
  constructor(context) {
    this.context = context;
    /** @type {SortedTable<Row>} */
    this.table = new SortedTable("processes", "Processes", (change) => context.set(change));
    this.element = make("section", "processes");
    this.element.append(make("h2", "", "Processes"), this.table.element);
    /** Of which event and threads the rows are. */
    this.shown = "";
    /** @type {Row[]} */
    this.rows = [];
  }

  /** Whether the page has several processes, all on one host. */
  get wanted() {
    const { hosts, processes } = this.context.page;
    return hosts.length === 1 && processes.length > 1;
  }

  /** @param {State} state */
  update(state) {
    this.element.hidden = !this.wanted;
    if (!this.wanted) return;
    const { event, thread } = this.context;
    const shown = `${event} ${thread}`;
    if (shown !== this.shown) this.rows = this.collect();
    this.shown = shown;
    this.table.show(this.columns(), this.rows, state.sort, state.rows);
  }

  /** Those that have anything of the event. */
  collect() {
    const { page, tree, scopes, event, thread } = this.context;
    const sums = scopes.processSums(event, thread);
    const own = new Float64Array(tree.names.length);
    /** @type {Row[]} */
    const rows = [];
    page.processes.forEach((_, process) => {
      if (sums[process] > 0) rows.push({ process, amount: sums[process], ...this.hottest(process, own) });
    });
    return rows;
  }

  /**
   * @param {number} process
   * @param {Float64Array} own a number a name, 0 before and after
   */
  hottest(process, own) {
    const { context } = this;
    const { tree } = context;
    const scope = context.scopes.parse(`process:${process}`);
    /** @type {number[]} */
    const touched = [];
    for (const { column } of scope ? context.columns(scope) : []) {
      tree.eachEntry(column, (node, value) => {
        if (node === 0) return;
        touched.push(tree.name[node]);
        own[tree.name[node]] += value;
      });
    }
    let [method, most] = [-1, 0];
    for (const name of touched) if (own[name] > most) [method, most] = [name, own[name]];
    for (const name of touched) own[name] = 0;
    return { method, most };
  }

  /** @returns {ProcessColumn[]} */
  columns() {
    const { page, event } = this.context;
    const info = page.events[event];
    const whole = this.rows.reduce((sum, { amount }) => sum + amount, 0);
    const largest = this.rows.reduce((most, { amount }) => Math.max(most, amount), 1);
    const nameOf = (/** @type {Row} */ { process }) => page.processes[process].name || "process";
    return [
      {
        key: "amount", label: "Share", title: "Sort by how much each has", className: "share total",
        value: ({ amount }) => amount, cell: ({ amount }) => barOf(percent(amount, whole), amount / largest),
      },
      {
        key: "in-all", label: "Amount", title: "Sort by how much each has", className: "number",
        value: ({ amount }) => amount, cell: ({ amount }) => [make("span", "", amounts(amount, info).join(" · "))],
      },
      {
        key: "process", label: "Process", title: "Sort by name", className: "name",
        value: nameOf, cell: (row) => [this.link(row.process, nameOf(row))],
      },
      {
        key: "pid", label: "Pid", title: "Sort by process id", className: "number",
        value: ({ process }) => page.processes[process].pid, cell: ({ process }) => [make("span", "", String(page.processes[process].pid))],
      },
      {
        key: "hottest", label: "Hottest method", title: "Sort by the part that its hottest method has", className: "hottest-method",
        value: ({ most, amount }) => most / amount,
        cell: (row) => [...this.does(row), this.rest(row.process, nameOf(row))],
      },
    ];
  }

  /** @param {Row} row */
  does({ method, most, amount }) {
    if (method < 0) return [];
    return [nameElement(this.context.tree.names[method]), make("span", "soft", ` ${percent(most, amount)} `)];
  }

  /**
   * @param {number} process
   * @param {string} name
   */
  link(process, name) {
    const button = make("button", "link");
    button.append(make("bdi", "", name));
    button.title = "The flame graph of this process";
    button.addEventListener("click", () => this.context.go({ view: "graph", scope: `process:${process}`, zoom: 0 }));
    return button;
  }

  /**
   * @param {number} process
   * @param {string} name
   */
  rest(process, name) {
    const button = make("button", "link rest", "Compare");
    button.title = "Compare this process with the rest";
    button.setAttribute("aria-label", `Compare ${name} with the rest`);
    const sides = { scope: `process:${process}`, with: `rest:process:${process}` };
    button.addEventListener("click", () => this.context.go({ view: "compare", ...sides, query: "", zoom: 0 }));
    return button;
  }
}
