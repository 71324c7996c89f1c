// @ts-check
/** The tables of hosts that the page was written with, alive: they sort, and lead to each host and what is odd there. */

import { make } from "./dom.js";
import { percent, shortName } from "./format.js";

/** @typedef {import("./context.js").Context} Context */
/** @typedef {import("./context.js").View} View */
/** @typedef {import("./data.js").Difference} Difference */
/** @typedef {import("./state.js").State} State */

/** Methods that are told of a host that is unlike the others. */
const DIFFERENCES = 3;
const words = new Intl.Collator("en", { numeric: true });

/** @implements {View} */
export class HostsView {
  /**
   * @param {Context} context
   * @param {HTMLElement} panel
   */
  constructor(context, panel) {
    this.context = context;
    this.tables = [...panel.querySelectorAll("table")].map((table) => new HostsTable(context, table));
  }

  /** @param {State} state */
  update(state) {
    for (const table of this.tables) table.sort(state.sort);
  }
}

/** One event's table. Columns are named by their number in the address. */
class HostsTable {
  /**
   * @param {Context} context
   * @param {HTMLTableElement} table
   */
  constructor(context, table) {
    this.context = context;
    this.table = table;
    this.body = table.tBodies[0];
    /** As the page has them: the odd ones first. */
    this.rows = [...this.body.rows];
    this.heads = [...(table.tHead?.rows[0].cells ?? [])];
    this.heads.forEach((head, column) => this.liven(head, column));
    for (const row of this.rows) this.link(row);
  }

  /**
   * @param {HTMLTableCellElement} head
   * @param {number} column
   */
  liven(head, column) {
    const button = make("button", "", head.textContent ?? "");
    button.title = "Sort by this column";
    button.addEventListener("click", () => {
      const { sort } = this.context.state;
      this.context.set({ sort: sort === String(column) ? `-${column}` : String(column) });
    });
    head.replaceChildren(button);
  }

  /**
   * What differs on a host leads to its comparison with the rest.
   * @param {HTMLTableRowElement} row
   */
  link(row) {
    const { context } = this;
    const host = Number(row.dataset.host ?? NaN);
    const event = Number(this.table.closest(".of-event")?.getAttribute("data-event") ?? 0);
    const numbers = context.page.hosts_by_event[event]?.find((one) => one.host === host);
    const several = context.page.hosts_by_event[event]?.filter((one) => one.taken > 0).length > 1;
    const cell = row.cells[row.cells.length - 1];
    if (!numbers || !several || numbers.taken === 0) return;
    const list = make("ul", "differs");
    if (numbers.outlier) list.append(...numbers.differs.slice(0, DIFFERENCES).map((one) => this.difference(host, one)));
    const rest = make("button", "rest", "Compare with the rest");
    rest.addEventListener("click", () => this.compare(host, ""));
    const item = make("li");
    item.append(rest);
    list.append(item);
    cell.append(list);
  }

  /**
   * @param {number} host
   * @param {Difference} difference
   */
  difference(host, { method, share, usual }) {
    const item = make("li");
    const button = make("button", "link");
    button.append(make("bdi", "", shortName(method)));
    button.title = "Compare this host with the rest, this method marked";
    button.addEventListener("click", () => this.compare(host, method));
    item.append(button, make("span", "soft", ` ${percent(share, 1)} here, ${percent(usual, 1)} elsewhere`));
    return item;
  }

  /**
   * @param {number} host
   * @param {string} method is searched there
   */
  compare(host, method) {
    const query = method ? `"${method}"` : "";
    this.context.go({ view: "compare", scope: `host:${host}`, with: `rest:${host}`, query, regexp: false, zoom: 0, sort: "" });
  }

  /** @param {string} sort a column's number, with "-" before it for the other direction; the page's own order for others */
  sort(sort) {
    const found = /^(-?)(\d+)$/.exec(sort);
    const column = found ? Number(found[2]) : -1;
    const rows = this.rows.slice();
    const numbers = column >= 0 && rows.some((row) => typeof valueOf(row, column) === "number");
    const way = found?.[1] ? -1 : 1;
    if (column < this.heads.length && column >= 0) rows.sort((a, b) => way * compareCells(valueOf(a, column), valueOf(b, column)));
    this.body.replaceChildren(...rows);
    this.heads.forEach((head, index) => {
      const order = numbers === (way > 0) ? "descending" : "ascending";
      head.setAttribute("aria-sort", index === column ? order : "none");
    });
  }
}

/**
 * What a cell sorts by: the number it was written with, or its text. Empty cells are null.
 * @param {HTMLTableRowElement} row
 * @param {number} column
 */
function valueOf(row, column) {
  const cell = row.cells[column];
  const text = cell?.textContent?.trim() ?? "";
  if (cell?.dataset.sort !== undefined) return Number(cell.dataset.sort);
  return text || null;
}

/**
 * Numbers from the largest, text from A, nothing last.
 * @param {number | string | null} a
 * @param {number | string | null} b
 */
function compareCells(a, b) {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  return typeof a === "number" && typeof b === "number" ? b - a : words.compare(String(a), String(b));
}
