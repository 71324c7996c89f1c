// @ts-check
/** A map of cells on a canvas, with seconds across: what is under the pointer, dragging, a cursor for keys, marks. */

import { make, sizedCanvas } from "../controls/dom.js";
import { FONT } from "../graph/layout.js";

/** A cell: rows count from the bottom. @typedef {{column: number, row: number}} Cell */

/**
 * What is marked: the cells from one to before another in the order of time (of a map with one row also parts of
 * cells), or a box of columns and rows (both ends included); its outline's colour.
 * @typedef {{from: number, to: number, color: string} | {columns: [number, number], rows: [number, number], color: string}} Mark
 */

/**
 * @typedef {object} CellPicture
 * @property {number} columns
 * @property {number} rows
 * @property {number} rowHeight in pixels
 * @property {number} columnWidth in pixels
 * @property {(column: number, row: number) => string} color "" for an empty cell
 * @property {(column: number) => number} [height] of a bar from the bottom, from 0 to 1; without it cells are full
 * @property {(column: number, row: number) => [part: number, color: string][]} [pieces] of a bar, from the bottom, parts of the row's height
 * @property {(row: number) => string} [title] stands above the bars of a row
 * @property {[row: number, text: string][]} labels at the lower edges of rows
 * @property {[column: number, text: string][]} ticks at the left edges of columns, below the map
 * @property {number} [cells] how many there are in the order of time, if not all of the last column
 * @property {boolean} inTime whether a selection follows time, column by column; else it is a box
 * @property {boolean} dark
 */

/**
 * @typedef {object} CellEvents
 * @property {(from: Cell, to: Cell, compared: boolean) => void} select cells were chosen, with Ctrl to be compared with
 * @property {(cell: Cell | null, x: number, y: number) => void} point a cell is under the pointer; client pixels
 * @property {(from: Cell, to: Cell) => void} walk keys moved to a cell, perhaps from another
 * @property {() => boolean} clear Escape was pressed; whether it meant something
 */

/** Room for labels at the left, and for ticks below. */
export const GUTTER = 80;
const TICKS_HEIGHT = 18;
/** Room for a row's title. */
const [TITLE, TITLE_GAP] = [15, 4];
/** Cells of at least this size have a line between. */
const WIDE = 6;
const TALL = 9;
/** @type {Record<string, [columns: number, rows: number]>} */
const STEPS_OF_KEYS = {
  ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1], PageUp: [-10, 0], PageDown: [10, 0],
};

export class CellMap {
  /**
   * @param {string} id
   * @param {string} label for screen readers
   * @param {CellEvents} events
   */
  constructor(id, label, events) {
    this.events = events;
    this.canvas = document.createElement("canvas");
    this.canvas.id = `${id}-canvas`;
    this.element = make("div", "cells");
    this.element.id = id;
    this.element.tabIndex = 0;
    this.element.setAttribute("role", "group");
    this.element.setAttribute("aria-label", `${label}: arrow keys move, Shift extends, Enter selects, Escape clears`);
    this.element.append(this.canvas);
    /** @type {CellPicture | null} */
    this.picture = null;
    /** @type {Mark[]} */
    this.marks = [];
    /** Where dragging or extending began, and where it is now. @type {{from: Cell, to: Cell} | null} */
    this.chosen = null;
    this.dragging = false;
    /** Whether the keys' cursor is shown. */
    this.walking = false;
    this.listen();
  }

  listen() {
    const { canvas, element, events } = this;
    canvas.addEventListener("pointerdown", (event) => {
      const cell = this.cellAt(event);
      if (!cell || event.button !== 0) return;
      canvas.setPointerCapture(event.pointerId);
      this.dragging = true;
      this.walking = false;
      this.chosen = { from: cell, to: cell };
      this.draw();
    });
    canvas.addEventListener("pointermove", (event) => {
      const cell = this.cellAt(event, this.dragging);
      if (this.dragging && this.chosen && cell) {
        this.chosen.to = cell;
        this.draw();
      }
      events.point(cell, event.clientX, event.clientY);
    });
    canvas.addEventListener("pointerup", (event) => {
      if (!this.dragging || !this.chosen) return;
      const { from, to } = this.chosen;
      this.stop();
      events.select(from, to, event.ctrlKey || event.metaKey);
    });
    canvas.addEventListener("pointercancel", () => this.stop());
    canvas.addEventListener("pointerleave", () => events.point(null, 0, 0));
    // On a Mac Ctrl and a click ask for the menu.
    canvas.addEventListener("contextmenu", (event) => event.ctrlKey && event.preventDefault());
    element.addEventListener("keydown", (event) => {
      if (event.altKey || !this.key(event)) return;
      event.preventDefault();
      event.stopPropagation();
    });
    element.addEventListener("blur", () => {
      if (this.walking) this.stop();
    });
  }

  /** Nothing is being chosen any more. */
  stop() {
    this.dragging = this.walking = false;
    this.chosen = null;
    this.draw();
  }

  /**
   * @param {KeyboardEvent} event
   * @returns {boolean} whether it meant something
   */
  key({ key, shiftKey, ctrlKey, metaKey }) {
    const { picture } = this;
    if (!picture) return false;
    if (key === "Escape") {
      const before = this.chosen;
      this.stop();
      return this.events.clear() || before !== null;
    }
    if (key === "Enter" && this.chosen) {
      this.events.select(this.chosen.from, this.chosen.to, ctrlKey || metaKey);
      return true;
    }
    const step = STEPS_OF_KEYS[key];
    if (!step) return false;
    const at = this.chosen?.to;
    const to = at ? this.moved(at, step, picture) : this.begin(picture);
    this.walking = true;
    this.chosen = { from: shiftKey && this.chosen ? this.chosen.from : to, to };
    this.draw();
    this.events.walk(this.chosen.from, to);
    return true;
  }

  /**
   * The neighbour of a cell. In time the next cell above the last one of a column is the first of the next column.
   * @param {Cell} cell
   * @param {[number, number]} step
   * @param {CellPicture} picture
   * @returns {Cell}
   */
  moved({ column, row }, [across, up], { columns, rows, inTime }) {
    if (inTime) {
      const to = (column + across) * rows + row + up;
      if (to < 0 || to >= columns * rows) return { column, row };
      return { column: Math.floor(to / rows), row: to % rows };
    }
    return { column: within(column + across, columns), row: within(row + up, rows) };
  }

  /**
   * Where the cursor begins: at what is marked, else at the first cell.
   * @param {CellPicture} picture
   * @returns {Cell}
   */
  begin({ rows, columns }) {
    const [mark] = this.marks;
    if (!mark) return { column: 0, row: 0 };
    if ("columns" in mark) return { column: mark.columns[0], row: mark.rows[0] };
    const at = Math.min(mark.from, columns * rows - 1);
    return { column: Math.floor(at / rows), row: at % rows };
  }

  /**
   * The cell under the pointer.
   * @param {MouseEvent} event
   * @param {boolean} [nearest] else null beside the cells
   * @returns {Cell | null}
   */
  cellAt(event, nearest = false) {
    const { picture } = this;
    if (!picture) return null;
    const box = this.canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left - GUTTER) / picture.columnWidth);
    const row = picture.rows - 1 - Math.floor((event.clientY - box.top) / picture.rowHeight);
    if (nearest) return { column: within(column, picture.columns), row: within(row, picture.rows) };
    return column < 0 || column >= picture.columns || row < 0 || row >= picture.rows ? null : { column, row };
  }

  /**
   * @param {CellPicture} picture
   * @param {Mark[]} marks
   */
  show(picture, marks) {
    this.picture = picture;
    this.marks = marks;
    if (!this.dragging) this.chosen = null;
    this.draw();
  }

  draw() {
    const { picture } = this;
    if (!picture) return;
    const { columns, rows, rowHeight, columnWidth, dark } = picture;
    const [width, height] = [GUTTER + columns * columnWidth + 2, rows * rowHeight + (picture.ticks.length ? TICKS_HEIGHT : 1)];
    const context = sizedCanvas(this.canvas, width, height);
    if (!context) return;
    const [text, ground] = dark ? ["#9aa3ad", "#1b1f24"] : ["#5c6570", "#f3f4f6"];
    context.fillStyle = ground;
    context.fillRect(GUTTER, 0, columns * columnWidth, rows * rowHeight);
    const missing = columns * rows - (picture.cells ?? columns * rows);
    context.clearRect(GUTTER + (columns - 1) * columnWidth, 0, columnWidth, missing * rowHeight);
    this.drawCells(context, picture);
    context.fillStyle = text;
    context.font = FONT;
    context.textBaseline = "middle";
    context.textAlign = "right";
    for (const [row, label] of picture.labels) {
      const y = (rows - row) * rowHeight;
      context.fillText(label, GUTTER - 8, Math.max(6, Math.min(rows * rowHeight - 6, y)));
    }
    context.textAlign = "left";
    for (let row = 0; picture.title && row < rows; row++) {
      context.clearRect(GUTTER, (rows - row - 1) * rowHeight, columns * columnWidth, TITLE);
      context.clearRect(GUTTER, (rows - row) * rowHeight - TITLE_GAP, columns * columnWidth, TITLE_GAP);
      context.fillText(picture.title(row), GUTTER, (rows - row - 1) * rowHeight + TITLE / 2, columns * columnWidth);
    }
    drawTicks(context, picture.ticks, columnWidth, rows * rowHeight, width);
    this.drawMarks(context, picture);
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {CellPicture} picture
   */
  drawCells(context, { columns, rows, rowHeight, columnWidth, color, height, pieces, title }) {
    const wide = columnWidth - (columnWidth >= WIDE ? 1 : 0);
    const tall = rowHeight - (rowHeight >= TALL ? 1 : 0);
    const gap = title ? TITLE_GAP : 0;
    const full = rowHeight - (title ? TITLE + gap : 0);
    for (let column = 0; column < columns; column++) {
      const x = GUTTER + column * columnWidth;
      for (let row = 0; row < rows; row++) {
        let bottom = (rows - row) * rowHeight - gap;
        for (const [piece, fill] of pieces?.(column, row) ?? []) {
          context.fillStyle = fill;
          context.fillRect(x, bottom - piece * full, wide, piece * full);
          bottom -= piece * full;
        }
        const fill = color(column, row);
        if (!fill) continue;
        const bar = height ? Math.max(1, height(column) * rowHeight) : tall;
        context.fillStyle = fill;
        context.fillRect(x, (rows - row) * rowHeight - bar, wide, bar);
      }
    }
  }

  /**
   * Dims what is not marked, and draws outlines.
   * @param {CanvasRenderingContext2D} context
   * @param {CellPicture} picture
   */
  drawMarks(context, picture) {
    const { columns, rows, rowHeight, columnWidth, inTime, dark } = picture;
    const marks = [...this.marks];
    if (this.chosen) {
      const { from, to } = this.chosen;
      const color = dark ? "#ffffff" : "#000000";
      const cells = [from, to].map(({ column, row }) => column * rows + row).sort((a, b) => a - b);
      if (inTime) marks.push({ from: cells[0], to: cells[1] + 1, color });
      else marks.push({ columns: [from.column, to.column], rows: [from.row, to.row], color });
    }
    if (marks.length === 0) return;
    const paths = marks.map((mark) => {
      const path = new Path2D();
      const box = (/** @type {number} */ column, /** @type {number} */ across, /** @type {number} */ row, /** @type {number} */ up) => {
        const last = Math.min(columns, column + across);
        if (last <= column || up <= 0) return;
        path.rect(GUTTER + column * columnWidth, (rows - row - up) * rowHeight, (last - column) * columnWidth, up * rowHeight);
      };
      if ("columns" in mark) {
        const [left, right] = [...mark.columns].sort((a, b) => a - b);
        const [low, high] = [...mark.rows].sort((a, b) => a - b);
        box(left, right - left + 1, Math.max(0, low), Math.min(rows, high + 1) - Math.max(0, low));
        return path;
      }
      if (rows === 1) {
        path.rect(GUTTER + mark.from * columnWidth, 0, (Math.min(columns, mark.to) - mark.from) * columnWidth, rowHeight);
        return path;
      }
      // The end of the first column, whole columns, the beginning of the last.
      const [first, last] = [Math.floor(mark.from / rows), Math.floor(mark.to / rows)];
      const [low, high] = [mark.from % rows, mark.to % rows];
      if (first === last) box(first, 1, low, high - low);
      else {
        box(first, 1, low, rows - low);
        box(first + 1, last - first - 1, 0, rows);
        box(last, 1, 0, high);
      }
      return path;
    });
    context.save();
    for (const path of paths) context.clip(outsideOf(path), "evenodd");
    context.fillStyle = dark ? "rgba(21,24,28,.52)" : "rgba(255,255,255,.55)";
    context.fillRect(GUTTER, 0, columns * columnWidth, rows * rowHeight);
    context.restore();
    for (const [at, path] of paths.entries()) outline(context, path, marks[at].color);
  }
}

/**
 * Ticks below a picture with seconds across. The text of one at the right edge is at its left.
 * @param {CanvasRenderingContext2D} context
 * @param {[column: number, text: string][]} ticks
 * @param {number} columnWidth
 * @param {number} top
 * @param {number} right where the picture ends
 */
export function drawTicks(context, ticks, columnWidth, top, right) {
  context.textBaseline = "middle";
  for (const [column, label] of ticks) {
    const x = GUTTER + column * columnWidth;
    const fits = x + 3 + context.measureText(label).width <= right;
    context.textAlign = fits ? "left" : "right";
    context.fillRect(x, top, 1, 4);
    context.fillText(label, fits ? x + 3 : x - 3, top + 10);
  }
}

/**
 * The place itself, or the first or last one.
 * @param {number} at
 * @param {number} count of places
 */
function within(at, count) {
  return Math.max(0, Math.min(count - 1, at));
}

/** @param {Path2D} path */
function outsideOf(path) {
  const outside = new Path2D();
  outside.rect(-10, -10, 1e5, 1e5);
  outside.addPath(path);
  return outside;
}

/**
 * A line around boxes that touch each other, without the edges between them.
 * @param {CanvasRenderingContext2D} context
 * @param {Path2D} path
 * @param {string} color
 */
function outline(context, path, color) {
  context.save();
  context.clip(outsideOf(path), "evenodd");
  context.strokeStyle = color;
  context.lineWidth = 3;
  context.lineJoin = "round";
  context.stroke(path);
  context.restore();
}
