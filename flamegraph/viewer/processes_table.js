// @ts-check
/** The processes of a run on one host: what each has of the event, and what it does most. */

import { make } from "./dom.js";
import { amounts, percent } from "./format.js";
import { barOf, SortedTable } from "./table.js";
import { nameElement } from "./tooltip.js";

/** @typedef {import("./context.js").Context} Context */
/** @typedef {import("./state.js").State} State */
/** @typedef {import("./table.js").TableColumn<Row>} ProcessColumn */
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
