// @ts-check
/** A tall graph in small beside it: what of it is in sight; a click or a drag scrolls there. */

import { filled, make, sizedCanvas } from "../controls/dom.js";
import { layOut } from "./layout.js";
import { fillOf, ROW } from "./painter.js";

/** @import { Graph } from "./graph.js" */

const MAP_WIDTH = 72;
/** Narrower graphs have no room for it. */
const ROOM_FOR_MAP = 500;
/** How many times as tall as its box a graph must be. */
const TIMES_AS_TALL = 1.4;

export class Minimap {
  /** @param {Graph} graph */
  constructor(graph) {
    this.graph = graph;
    this.canvas = document.createElement("canvas");
    this.sight = make("div", "sight");
    this.element = filled("div", "minimap", this.canvas, this.sight);
    this.element.hidden = true;
    this.element.setAttribute("aria-hidden", "true");
    /** What is drawn. @type {unknown[]} */
    this.drawn = [];
    const scroll = (/** @type {PointerEvent} */ event) => {
      if (event.buttons === 0) return;
      const { scroller, height } = graph.sheet;
      const box = this.element.getBoundingClientRect();
      const middle = ((event.clientY - box.top) / box.height) * graph.rows * ROW;
      scroller.scrollTop = middle - height / 2;
    };
    this.element.addEventListener("pointerdown", (event) => {
      this.element.setPointerCapture(event.pointerId);
      event.preventDefault(); // selects no text
      scroll(event);
    });
    this.element.addEventListener("pointermove", scroll);
  }

  /**
   * Shows itself beside a tall graph. Whether a graph is tall must not change with the room that is left for it.
   * @param {number} rows of the graph if it had all the width
   */
  fit(rows) {
    const { element, sheet } = this.graph;
    const tall = !sheet.unrolled && rows * ROW > TIMES_AS_TALL * sheet.height && sheet.height > 0 && element.clientWidth >= ROOM_FOR_MAP;
    this.element.hidden = !tall;
    element.classList.toggle("tall", tall);
  }

  draw() {
    if (this.element.hidden) return;
    const { profile, painter, look, matches, rows, zoomed, flame, sheet, from, to } = this.graph;
    const { height } = sheet;
    if (!profile) return;
    const scale = height / (rows * ROW);
    this.sight.style.transform = `translateY(${sheet.scroller.scrollTop * scale}px)`;
    this.sight.style.height = `${Math.max(4, height * scale)}px`;
    const drawn = [profile, painter.coloring, matches, rows, zoomed, flame, height, from, to];
    if (drawn.every((one, at) => one === this.drawn[at])) return;
    this.drawn = drawn;
    const context = sizedCanvas(this.canvas, MAP_WIDTH, height);
    if (!context) return;
    const thick = height / rows;
    const fill = (/** @type {number} */ depth, /** @type {number} */ x, /** @type {number} */ width, /** @type {string} */ color) => {
      context.fillStyle = color;
      context.fillRect(x, (flame ? rows - 1 - depth : depth) * thick, Math.max(0.6, width), Math.max(0.6, thick));
    };
    layOut(
      profile, { from, to, width: MAP_WIDTH, first: 0, last: rows - 1 },
      (node, x, width) => fill(profile.depth[node], x, width, fillOf({ profile, matches, look }, painter.coloring, node)),
      (depth, x, width) => fill(depth, x, width, painter.coloring.rest),
    );
  }
}
