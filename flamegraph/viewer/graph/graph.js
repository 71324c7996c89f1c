// @ts-check
/** A flame graph: which part of it is in view, what is under the pointer, and the glide from one view to the next. */

import { filled, make } from "../controls/dom.js";
import { deepest, isInside, neighbour, nodeAt } from "./layout.js";
import { Minimap } from "./minimap.js";
import { Painter, ROW } from "./painter.js";
import { Sheet } from "./sheet.js";

/** @import { Profile } from "../data/profile.js" */
/** @import { Matches } from "../data/search.js" */
/** @import { Coloring } from "./colors.js" */
/** @import { TooltipRow } from "./frame_details.js" */

const ZOOM_MILLISECONDS = 170;
/** How many of the rows a zoomed frame stands on stay in sight. */
const ROWS_ABOVE = 2;
/** A canvas has no room for more. */
const MOST_PRINTED_ROWS = 400;
/** Pixels, as long as the graph is not on the page. */
const SOME_WIDTH = 1200;

/**
 * What a graph reports.
 * @typedef {object} GraphEvents
 * @property {(node: number) => void} zoom a frame was chosen
 * @property {(node: number, x: number, y: number) => void} point a frame is under the pointer, -1 for none; client pixels
 * @property {() => void} moved another frame fills the width
 * @property {() => void} enter the pointer or the focus came to this graph
 * @property {(method: string) => void} open a frame of this method was double-clicked
 * @property {(node: number, x: number, y: number) => void} menu its menu is asked for; client pixels
 */

/**
 * How a profile is shown, besides its numbers.
 * @typedef {object} Look
 * @property {string} label what the root's frame says
 * @property {string} [title] what the graph shows, if that is not the scope
 * @property {string} [coverage] if that is not the scope's
 * @property {(node: number, coloring: Coloring) => string} [tint] the frames' CSS colours, instead of the usual ones
 * @property {(node: number) => TooltipRow[]} [rows] the tooltip of a frame, where it is not its total and self
 * @property {boolean} [outward] frames are called by those on them: a stack ends at the root
 * @property {boolean} [average] totals are of two scopes on average, which neither of them has
 */

export class Graph {
  /**
   * @param {string} id
   * @param {string} label
   * @param {GraphEvents} events
   */
  constructor(id, label, events) {
    this.events = events;
    this.sheet = new Sheet(id, `${label}: arrow keys move between frames, Enter zooms, Backspace goes back`);
    this.outline = make("div", "graph-outline");
    this.outline.hidden = true;
    this.minimap = new Minimap(this);
    this.element = filled("div", "graph", this.sheet.scroller, this.outline, this.minimap.element);
    this.element.id = id;
    this.painter = new Painter(this.sheet.canvas);
    /** @type {Profile | null} */
    this.profile = null;
    /** @type {Matches | null} */
    this.matches = null;
    /** @type {Look} */
    this.look = { label: "" };
    this.flame = false;
    /** Whether the root is at the bottom, by the reader's choice for flame graphs. */
    this.turnedBy = (/** @type {boolean} */ flame) => flame;
    this.zoomed = 0;
    this.from = 0;
    this.to = 1;
    this.rows = 1;
    this.hovered = -1;
    this.selected = -1;
    /** Notes by node. @type {Map<number, string>} */
    this.pins = new Map();
    this.animation = 0;
    this.pending = 0;
    const { scroller, canvas } = this.sheet;
    new ResizeObserver(() => this.follow()).observe(scroller);
    scroller.addEventListener("scroll", () => {
      this.point(-1, 0, 0);
      this.redraw();
    });
    scroller.addEventListener("focus", () => this.events.enter());
    canvas.addEventListener("mousemove", (event) => {
      this.events.enter();
      this.point(this.nodeUnder(event), event.clientX, event.clientY);
    });
    canvas.addEventListener("mouseleave", () => this.point(-1, 0, 0));
    let clicked = "";
    canvas.addEventListener("click", (event) => {
      if (event.detail > 1) return; // the first click moved another frame under the pointer
      const node = this.nodeUnder(event);
      clicked = this.methodOf(node);
      if (node >= 0) this.events.zoom(node);
    });
    canvas.addEventListener("contextmenu", (event) => {
      const node = this.nodeUnder(event);
      if (node < 0) return;
      event.preventDefault();
      this.events.enter();
      this.events.menu(node, event.clientX, event.clientY);
    });
    canvas.addEventListener("dblclick", () => this.events.open(clicked));
    scroller.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || !this.key(event.key)) return;
      event.preventDefault();
      event.stopPropagation();
    });
  }

  /**
   * @param {string} key
   * @returns {boolean} whether it meant something here
   */
  key(key) {
    const { profile, flame, zoomed } = this;
    if (!profile) return false;
    if (key === "Enter" && this.selected >= 0) {
      this.events.zoom(this.selected);
      return true;
    }
    /** @type {Record<string, "in" | "out" | "left" | "right">} */
    const ways = { ArrowUp: flame ? "in" : "out", ArrowDown: flame ? "out" : "in", ArrowLeft: "left", ArrowRight: "right" };
    const way = ways[key];
    if (!way) return false;
    const from = this.selected >= 0 ? this.selected : zoomed;
    // The siblings of the frame that fills the width are not in view.
    const alone = (way === "left" || way === "right") && zoomed > 0 && !isInside(profile, zoomed, from);
    this.select(alone ? from : neighbour(profile, from, way));
    return true;
  }

  /**
   * @param {Profile} profile
   * @param {Look} look
   * @param {number} [zoomed] the node that fills the width
   */
  show(profile, look, zoomed = 0) {
    this.profile = profile;
    this.look = look;
    this.selected = -1;
    this.point(-1, 0, 0);
    this.aim(profile, zoomed);
    this.fitRows(profile);
    this.sheet.scroller.style.setProperty("--content", `${this.rows * ROW}px`);
    this.sheet.measure();
    this.settle();
  }

  /**
   * The same with more detail, or less, and the same frame in view.
   * @param {Profile} profile
   * @param {(node: number) => number} moved where a node of the profile before is now
   */
  replace(profile, moved) {
    this.profile = profile;
    this.selected = this.selected >= 0 ? moved(this.selected) : -1;
    this.point(-1, 0, 0);
    this.aim(profile, moved(this.zoomed));
    this.settle();
  }

  /** @param {Coloring} coloring */
  recolor(coloring) {
    this.painter.coloring = coloring;
    this.redraw();
  }

  /** @param {boolean} chosen what the reader chose */
  turn(chosen) {
    const flame = this.turnedBy(chosen);
    if (this.flame === flame) return;
    this.flame = flame;
    this.settle();
  }

  /** @param {Matches | null} matches */
  highlight(matches) {
    this.matches = matches;
    this.redraw();
  }

  /** @param {Map<number, string>} pins notes by node */
  pin(pins) {
    if (pins.size === 0 && this.pins.size === 0) return;
    this.pins = pins;
    this.redraw();
  }

  /**
   * Makes a node fill the width, gliding there so that the eye can follow.
   * @param {number} node
   */
  zoom(node) {
    if (!this.profile || node === this.zoomed) return;
    const begin = { from: this.from, to: this.to, time: performance.now() };
    this.selected = -1;
    this.aim(this.profile, node);
    this.point(-1, 0, 0);
    const { from, to } = this;
    const step = (/** @type {number} */ now) => {
      const t = Math.min(1, Math.max(0, (now - begin.time) / ZOOM_MILLISECONDS));
      const left = (1 - t) ** 3;
      this.from = from + (begin.from - from) * left;
      this.to = to + (begin.to - to) * left;
      if (t === 1) return this.settle();
      this.draw();
      this.animation = requestAnimationFrame(step);
    };
    if (window.matchMedia("(prefers-reduced-motion: reduce)").matches) this.settle();
    else this.animation = requestAnimationFrame(step);
    this.events.moved();
  }

  /**
   * @param {Profile} profile
   * @param {number} node that fills the width from now on
   */
  aim(profile, node) {
    cancelAnimationFrame(this.animation);
    this.zoomed = node;
    this.from = profile.startOf(node);
    this.to = this.from + profile.total[node];
  }

  /** As many rows as the frame in view needs, scrolled to where it begins. */
  settle() {
    if (!this.profile) return;
    this.fitRows(this.profile);
    const above = Math.max(0, this.profile.depth[this.zoomed] - ROWS_ABOVE) * ROW;
    this.sheet.scroller.scrollTop = this.flame ? this.rows * ROW - this.sheet.height - above : above;
    if (this.selected >= 0) this.reveal(this.selected);
    this.redraw();
  }

  /** @param {Profile} profile */
  fitRows(profile) {
    this.rows = deepest(profile, this.zoomed, this.sheet.width || SOME_WIDTH) + 1;
    this.sheet.reserve(this.rows * ROW);
    this.minimap.fit(deepest(profile, this.zoomed, this.element.clientWidth || SOME_WIDTH) + 1);
  }

  /** Fills its place on the page, whose size may have changed. */
  follow() {
    const shown = this.sheet.away;
    if (!this.sheet.measure()) return;
    if (shown || this.flame) this.settle();
    else if (this.profile) this.fitRows(this.profile);
    this.draw();
  }

  /** It is not on the page any more: it draws nothing, and reads no numbers. */
  leave() {
    if (this.profile) this.aim(this.profile, this.zoomed);
    cancelAnimationFrame(this.pending);
    this.pending = 0;
    this.sheet.leave();
  }

  /** It is on the page again, perhaps with the same size. */
  arrive() {
    if (this.sheet.away) this.follow();
  }

  /**
   * Paper does not scroll: for printing all rows are drawn.
   * @param {boolean} whole
   */
  unroll(whole) {
    const { sheet } = this;
    sheet.unrolled = whole;
    if (!whole) return this.follow();
    sheet.resize(sheet.width, Math.min(this.rows, MOST_PRINTED_ROWS) * ROW);
    this.draw();
  }

  /** A graph that is not on the page is drawn when it comes back. */
  redraw() {
    if (this.pending || this.sheet.away) return;
    this.pending = requestAnimationFrame(() => this.draw());
  }

  /**
   * The top edge of a depth, in canvas pixels.
   * @param {number} depth
   */
  top(depth) {
    const { height, scroller, unrolled } = this.sheet;
    const content = unrolled ? height : Math.max(this.rows * ROW, height);
    const y = this.flame ? content - (depth + 1) * ROW : depth * ROW;
    return unrolled ? y : y - scroller.scrollTop;
  }

  /** @param {number} y in canvas pixels */
  depthAt(y) {
    const zero = this.top(0);
    return this.flame ? Math.floor((zero + ROW - y) / ROW) : Math.floor((y - zero) / ROW);
  }

  draw() {
    cancelAnimationFrame(this.pending);
    this.pending = 0;
    const { profile } = this;
    if (!profile || this.sheet.width === 0) return;
    const zero = this.top(0); // asking where the scroller stands costs a layout
    const step = this.flame ? -ROW : ROW;
    const ends = [this.depthAt(0), this.depthAt(this.sheet.height)];
    this.painter.paint({
      profile, matches: this.matches, zoomed: this.zoomed, look: this.look,
      from: this.from, to: this.to, width: this.sheet.width, height: this.sheet.height,
      first: Math.max(0, Math.min(...ends)), last: Math.max(...ends),
      top: (depth) => zero + depth * step,
    });
    for (const node of this.pins.keys()) {
      const box = this.boxOf(node);
      if (box) this.painter.paintPin(box);
    }
    this.placeOutline();
    this.minimap.draw();
  }

  /** Whether there is something of it to be seen. */
  get seen() {
    return this.profile !== null && this.sheet.scroller.offsetParent !== null;
  }

  /** @param {MouseEvent} event */
  nodeUnder(event) {
    if (!this.profile) return -1;
    const box = this.sheet.canvas.getBoundingClientRect();
    const depth = this.depthAt(event.clientY - box.top);
    if (depth < 0 || depth >= this.rows) return -1;
    const position = this.from + ((event.clientX - box.left) / this.sheet.width) * (this.to - this.from);
    return nodeAt(this.profile, position, depth);
  }

  /**
   * The method a frame is of; "" for the root and for none.
   * @param {number} node
   */
  methodOf(node) {
    return this.profile && this.profile.name[node] >= 0 ? this.profile.nameOf(node) : "";
  }

  /** The frame that a key acts on: under the pointer, selected, or in view; -1 without a profile. */
  meant() {
    if (!this.profile) return -1;
    return this.hovered >= 0 ? this.hovered : this.selected >= 0 ? this.selected : this.zoomed;
  }

  /**
   * @param {number} node
   * @param {number} x
   * @param {number} y
   */
  point(node, x, y) {
    if (node < 0 && this.hovered < 0) return;
    this.hovered = node;
    this.placeOutline();
    this.events.point(node, x, y);
  }

  /** The frame under the pointer, or the one chosen by keys, gets a line around it. */
  placeOutline() {
    const box = this.boxOf(this.hovered >= 0 ? this.hovered : this.selected);
    this.outline.hidden = box === null;
    if (!box) return;
    this.outline.style.transform = `translate(${box.x}px, ${box.y}px)`;
    this.outline.style.width = `${Math.max(2, box.width)}px`;
    this.outline.style.height = `${ROW - 1}px`;
  }

  /**
   * Where a node is on the canvas, in pixels; null when it is out of sight.
   * @param {number} node
   */
  boxOf(node) {
    const { profile } = this;
    if (!profile || node < 0 || node >= profile.count) return null;
    const scale = this.sheet.width / (this.to - this.from);
    const start = profile.startOf(node);
    const left = Math.max(0, (start - this.from) * scale);
    const right = Math.min(this.sheet.width, (start + profile.total[node] - this.from) * scale);
    const y = this.top(profile.depth[node]);
    return right <= left || y + ROW <= 0 || y >= this.sheet.height ? null : { x: left, y, width: right - left };
  }

  /**
   * Chooses a node by keyboard and brings its row into sight.
   * @param {number} node
   */
  select(node) {
    if (!this.profile || node < 0) return;
    this.selected = node;
    this.hovered = -1;
    this.reveal(node);
    this.placeOutline();
    const { left, bottom } = this.placeOf(node);
    this.events.point(node, left, bottom);
  }

  /**
   * Scrolls a node's row into sight.
   * @param {number} node
   */
  reveal(node) {
    const y = this.top(this.profile?.depth[node] ?? 0);
    if (y < 0) this.sheet.scroller.scrollTop += y;
    if (y + ROW > this.sheet.height) this.sheet.scroller.scrollTop += y + ROW - this.sheet.height;
  }

  /**
   * The lower edge of a frame, in client pixels, not far from where it begins. A frame too narrow for a box has one, too.
   * @param {number} node
   */
  placeOf(node) {
    const box = this.boxOf(node) ?? { x: 0, y: this.top(this.profile?.depth[node] ?? 0), width: 0 };
    const canvas = this.sheet.canvas.getBoundingClientRect();
    return { left: canvas.left + box.x + Math.min(box.width, 40), bottom: canvas.top + box.y + ROW };
  }
}
