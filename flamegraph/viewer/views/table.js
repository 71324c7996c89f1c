// @ts-check
/** Long tables that sort by any column: rows are made a page at a time. */

import { filled, make } from "../controls/dom.js";
import { DOUBTS } from "../data/callers.js";
import { grouped, inOrder } from "../data/format.js";

/**
 * A column of a table.
 * @template Row
 * @typedef {object} TableColumn
 * @property {string} key its name in the URL
 * @property {string} label
 * @property {string} title the head's tooltip
 * @property {string} className of the head and its cells
 * @property {(row: Row) => number | string} value what it sorts by: numbers from the largest, text from A
 * @property {(row: Row) => HTMLElement[]} cell what stands in it
 */

const PAGE = 100;

/** What stands instead of a total that is not known. */
export function noTotal() {
  const mark = make("span", "soft", "?");
  mark.title = `Total ${DOUBTS.total}`;
  return mark;
}

/** @template Row */
export class SortedTable {
  /**
   * @param {string} id of its table; the body and the button for more are named after it
   * @param {string} label
   * @param {(change: {sort?: string, rows?: number}) => void} changed a head was clicked, or more rows asked for
   * @param {number} [first] how many rows are always shown
   */
  constructor(id, label, changed, first = PAGE) {
    this.changed = changed;
    this.first = first;
    this.head = make("tr");
    this.body = make("tbody");
    this.table = filled("table", "sorted", filled("thead", "", this.head), this.body);
    this.none = make("p", "none", "Nothing here matches the search.");
    this.more = make("button", "more");
    /** On paper nothing asks for more. */
    this.unprinted = make("p", "unprinted");
    this.element = filled("div", "scroll", this.table, this.none, this.more, this.unprinted);
    this.table.id = id;
    this.table.setAttribute("aria-label", label);
    this.body.id = `${id}-body`;
    this.more.id = `${id}-more`;
    /** @type {TableColumn<Row>[]} */
    this.columns = [];
    /** Made of these columns. @type {Map<Row, HTMLElement>} */
    this.lines = new Map();
    /** @type {Row[]} */
    this.rows = [];
    /** The rows before sorting: if they stay the same the focus stays, too. @type {Row[]} */
    this.listed = [];
    /** @type {string | null} */
    this.sort = "";
    this.limit = first;
    this.more.addEventListener("click", () => this.changed({ rows: this.limit + PAGE }));
    this.body.addEventListener("click", ({ target }) => (target instanceof Element ? followRow(target) : undefined));
    this.body.addEventListener("keydown", (event) => {
      // Arrow keys move from row to row.
      const row = event.target instanceof Element ? event.target.closest("tr") : null;
      const down = event.key === "ArrowDown";
      if (!row || (!down && event.key !== "ArrowUp")) return;
      const button = buttonIn(down ? row.nextElementSibling : row.previousElementSibling);
      if (!button) return;
      event.preventDefault();
      button.focus();
    });
  }

  /**
   * @param {TableColumn<Row>[]} columns the same array as before if the cells are the same: rows are reused then
   * @param {Row[]} rows
   * @param {string | null} sort a column's key, with "-" before it for the other direction; else the first column is
   * taken; null keeps the order of the rows
   * @param {number} limit how many rows are shown, at least as many as always are
   */
  show(columns, rows, sort, limit) {
    const key = sort?.replace(/^-/, "");
    const by = sort === null ? null : columns.find((column) => column.key === key) ?? columns[0];
    const turned = by?.key === key && Boolean(sort?.startsWith("-"));
    const same = sort === this.sort && rows.length === this.listed.length && rows.every((row, at) => row === this.listed[at]);
    const focused = document.activeElement;
    const line = same && focused instanceof Element ? [...this.body.children].indexOf(focused.closest("tr") ?? this.body) : -1;
    const focusedRow = this.rows[line];
    if (columns !== this.columns) this.lines.clear();
    this.columns = columns;
    this.listed = rows;
    this.sort = sort;
    this.rows = by ? sortRows(rows, by, turned) : rows;
    this.limit = Math.max(this.first, limit);
    this.head.replaceChildren(...columns.map((column) => this.headOf(column, by, turned)));
    this.lines = new Map(this.rows.slice(0, this.limit).map((row) => [row, this.lines.get(row) ?? this.line(row)]));
    this.body.replaceChildren(...this.lines.values());
    const left = this.rows.length - this.limit;
    this.none.hidden = this.rows.length > 0;
    this.table.hidden = this.rows.length === 0;
    this.more.hidden = left <= 0;
    this.unprinted.textContent = left > 0 ? `… and ${grouped(left)} more.` : "";
    const all = this.first < PAGE && left <= PAGE;
    this.more.textContent = all ? `Show all ${grouped(this.rows.length)}` : `Show ${Math.min(left, PAGE)} more of ${grouped(left)}`;
    if (focused?.id.startsWith(`${this.table.id}-sort-`)) document.getElementById(focused.id)?.focus();
    if (focusedRow) buttonIn(this.body.children[this.rows.indexOf(focusedRow)])?.focus();
  }

  /**
   * @param {TableColumn<Row>} column
   * @param {TableColumn<Row> | null} by
   * @param {boolean} turned
   */
  headOf(column, by, turned) {
    const button = make("button", "", column.label);
    const head = filled("th", column.className, button);
    const text = this.rows.length > 0 && typeof column.value(this.rows[0]) === "string";
    head.setAttribute("scope", "col");
    head.setAttribute("aria-sort", column !== by ? "none" : text !== turned ? "ascending" : "descending");
    button.id = `${this.table.id}-sort-${column.key}`;
    button.title = column.title;
    button.addEventListener("click", () => {
      this.changed({ sort: column === by && !turned ? `-${column.key}` : column.key });
      document.getElementById(button.id)?.focus();
    });
    return head;
  }

  /** @param {Row} row */
  line(row) {
    return filled("tr", "", ...this.columns.map((column) => filled("td", column.className, ...column.cell(row))));
  }
}

/**
 * A click anywhere in a row acts like a click on its name, except when text is selected.
 * @param {Element} target
 */
export function followRow(target) {
  if (target.closest("a, button") || getSelection()?.isCollapsed === false) return;
  buttonIn(target.closest("tr"))?.click();
}

/**
 * @param {Element | null | undefined} row
 * @returns {HTMLElement | null}
 */
function buttonIn(row) {
  return row?.querySelector(".name button, .name a, .host a") ?? null;
}

/**
 * @template Row
 * @param {Row[]} rows
 * @param {TableColumn<Row>} by
 * @param {boolean} turned
 */
function sortRows(rows, by, turned) {
  const way = turned ? -1 : 1;
  const keyed = rows.map((row) => ({ row, value: by.value(row) }));
  keyed.sort(({ value: a }, { value: b }) => {
    return way * (typeof a === "number" && typeof b === "number" ? b - a : inOrder(String(a), String(b)));
  });
  return keyed.map(({ row }) => row);
}

/**
 * A share with a bar beside it.
 * @param {string} text
 * @param {number} part of the longest bar
 */
export function barOf(text, part) {
  const bar = make("span", "bar");
  bar.style.setProperty("--share", String(Math.min(1, part)));
  return [make("span", "", text), bar];
}
