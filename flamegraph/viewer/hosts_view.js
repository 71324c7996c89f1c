// @ts-check
/** The tables of hosts that the page was written with, alive: they sort, and lead to each host and to what is odd there. */

import { make } from "./dom.js";
import { inOrder, percent, shortName } from "./format.js";
import { ProcessesTable } from "./processes_table.js";

/** @typedef {import("./context.js").Context} Context */
/** @typedef {import("./context.js").View} View */
/** @typedef {import("./data.js").Difference} Difference */
/** @typedef {import("./data.js").HostNumbers} HostNumbers */
/** @typedef {import("./state.js").State} State */

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
