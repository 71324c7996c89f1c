// @ts-check
/** A table whose cells are texts with numbers: it sorts, is filtered where it is long, and leaves out what has no room. */

import { filled, linkButton, make } from "../controls/dom.js";
import { grouped } from "../data/format.js";
import { SortedTable } from "./table.js";

/** @import { Row, TableBlock } from "../data/page.js" */
/** @import { Keys } from "./keys.js" */
/** @import { TableColumn } from "./table.js" */

/** Rows that are shown first, and from how many on a table is filtered. */
const [FIRST_ROWS, FILTERED_ROWS] = [10, 20];
/** A column with longer texts is wide. */
const LONG_TEXT = 24;
/** What a number that is not known sorts as. */
const NO_NUMBER = -Number.MAX_VALUE;

export class CellTable {
  /**
   * @param {TableBlock} block
   * @param {string} label
   * @param {Keys} keys
   */
  constructor(block, label, keys) {
    this.block = block;
    this.columns = columnsOf(block, keys);
    /** Columns from the right that are hidden, of those that may be. */
    this.hidden = 0;
    this.wide = false;
    this.width = 0;
    /** @type {Set<string> | null} */
    this.related = null;
    /** @type {{sort: string | null, rows: number}} */
    this.state = { sort: null, rows: 0 };
    /** @type {SortedTable<Row>} */
    this.table = new SortedTable(`table-${block.id}`, label, (change) => {
      Object.assign(this.state, change);
      this.draw();
    }, FIRST_ROWS);
    this.table.element.tabIndex = 0; // it may scroll
    this.table.element.setAttribute("role", "group");
    this.table.element.setAttribute("aria-label", label);
    this.filter = document.createElement("input");
    this.filter.type = "search";
    this.filter.placeholder = `Filter ${block.things || "rows"}`;
    this.filter.setAttribute("aria-label", `${this.filter.placeholder}: ${label}`);
    this.filter.addEventListener("input", () => this.draw());
    this.filter.hidden = block.rows.length < FILTERED_ROWS;
    this.all = make("button");
    this.all.addEventListener("click", () => {
      this.wide = !this.wide;
      this.fit();
    });
    const rest = block.more ? [make("p", "lead", `… and ${grouped(block.more)} more ${block.things}.`)] : [];
    this.controls = filled("div", "controls", this.filter, this.all);
    this.element = filled("div", "cells-table", this.controls, this.table.element, ...rest);
    this.draw();
    new ResizeObserver(() => {
      if (this.element.clientWidth === this.width) return;
      this.width = this.element.clientWidth;
      if (this.width) this.fit();
    }).observe(this.element);
  }

  /** @param {Set<string> | null} related keys of the rows to show; null for all */
  show(related) {
    this.related = related;
    this.draw();
  }

  /** Columns that have no room are hidden, from the right; where rows are blocks, all that may be. */
  fit() {
    const minor = this.columns.filter((column) => column.className.includes("minor")).length;
    this.hidden = !this.wide && matchMedia("(max-width: 760px)").matches ? minor : 0;
    this.draw();
    const box = this.table.element;
    while (!this.wide && this.hidden < minor && box.scrollWidth > box.clientWidth) {
      this.hidden++;
      this.draw();
    }
  }

  draw() {
    const wanted = this.filter.value.toLowerCase();
    const { related } = this;
    const rows = this.block.rows.filter(
      ({ cells, key, members }) =>
        (!related || !key || related.has(key) || members?.some((member) => related.has(member))) && (!wanted || cells.some((cell) => textOf(cell).toLowerCase().includes(wanted))),
    );
    const minor = this.columns.filter((column) => column.className.includes("minor"));
    const left = new Set(minor.slice(minor.length - this.hidden));
    const columns = this.columns.filter((column) => !left.has(column));
    this.table.show(columns, rows, this.state.sort, this.state.rows);
    this.table.none.textContent = wanted ? "Nothing here matches the filter." : "Nothing here belongs to it.";
    this.all.hidden = !this.hidden && !this.wide;
    this.all.textContent = this.wide ? "Fewer columns" : `All ${this.columns.length} columns`;
    this.controls.hidden = this.filter.hidden && this.all.hidden;
  }
}

/**
 * The columns that have anything; what a row is of stands first.
 * @param {TableBlock} block
 * @param {Keys} keys
 * @returns {TableColumn<Row>[]}
 */
function columnsOf({ columns, rows }, keys) {
  const places = columns.map((_, at) => at).filter((at) => rows.some(({ cells }) => textOf(cells[at])));
  const name = columns[places[0]]?.number ? [...places].reverse().find((at) => !columns[at].number) : places[0];
  if (name !== undefined) places.splice(0, places.length, name, ...places.filter((at) => at !== name));
  return places.map((at) => {
    const { label, number, about, minor } = columns[at];
    const long = rows.some(({ cells }) => textOf(cells[at]).length > LONG_TEXT);
    const kind = at === name ? "name" : number ? "number" : long ? "text long" : "text";
    return {
      key: `c${at}`,
      label,
      title: about ?? `Sort by ${label}`,
      className: minor ? `${kind} minor` : kind,
      value: ({ cells }) => valueOf(cells[at], number),
      cell: ({ cells, key }) => {
        const text = textOf(cells[at]);
        if (!text) return [];
        const shown = make("bdi", "", text);
        if (at !== name) return [make("span", "label", label), shown];
        const link = key ? keys.linkOf(key) : null;
        const words = link && key ? `${link.text} of ${key}` : "";
        const more = link ? [linkButton(words, link.act, key && text.includes(key) ? link.text : words)] : [];
        more.forEach((button) => button.classList.add("beside-name"));
        return [key && keys.leads(key) ? linkButton(`What belongs to ${key}`, () => keys.choose(key), shown) : shown, ...more];
      },
    };
  });
}

/** @param {Row["cells"][number]} cell */
function textOf(cell) {
  return typeof cell === "string" ? cell : cell[0];
}

/**
 * @param {Row["cells"][number]} cell
 * @param {boolean} number
 */
function valueOf(cell, number) {
  if (!number) return textOf(cell);
  return typeof cell === "string" ? NO_NUMBER : cell[1];
}
