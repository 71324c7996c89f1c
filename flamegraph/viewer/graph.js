// @ts-check
/** The flame graph: which part of it is in view, what is under the pointer, and the glide from one view to the next. */

import { part } from "./dom.js";
import { deepest, nodeAt } from "./layout.js";
import { Painter, ROW } from "./painter.js";

/** @typedef {import("./profile.js").Profile} Profile */
/** @typedef {import("./search.js").Matches} Matches */

const ZOOM_MILLISECONDS = 170;
/** How many of the rows a zoomed frame stands on stay in sight. */
const ROWS_ABOVE = 2;
/** Pixels, as long as the graph is not on the page. */
const SOME_WIDTH = 1200;

/**
 * What the graph tells the page.
 * @typedef {object} GraphEvents
 * @property {(node: number) => void} zoom a frame was chosen
 * @property {(node: number, x: number, y: number) => void} point a frame is under the pointer, -1 for none; client pixels
 */

export class Graph {
  /** @param {GraphEvents} events */
  constructor(events) {
    this.events = events;
    this.scroller = part("graph-scroller", HTMLDivElement);
    this.canvas = part("graph-canvas", HTMLCanvasElement);
    this.spacer = part("graph-spacer", HTMLDivElement);
    this.outline = part("graph-outline", HTMLDivElement);
    this.painter = new Painter(this.canvas);
    /** @type {Profile | null} */
    this.profile = null;
    /** @type {Matches | null} */
    this.matches = null;
    this.rootLabel = "";
    this.flame = false;
    this.zoomed = 0;
    this.from = 0;
    this.to = 1;
    this.rows = 1;
    this.width = 0;
    this.height = 0;
    this.hovered = -1;
    this.selected = -1;
    this.animation = 0;
    this.pending = 0;
    this.listen();
  }

  listen() {
    new ResizeObserver(() => this.measure()).observe(this.scroller);
    this.scroller.addEventListener("scroll", () => {
      this.point(-1, 0, 0);
      this.redraw();
    });
    this.canvas.addEventListener("mousemove", (event) => {
      this.point(this.nodeUnder(event), event.clientX, event.clientY);
    });
    this.canvas.addEventListener("mouseleave", () => this.point(-1, 0, 0));
    this.canvas.addEventListener("click", (event) => {
      const node = this.nodeUnder(event);
      if (node >= 0) this.events.zoom(node);
    });
  }

  /**
   * @param {Profile} profile
   * @param {string} rootLabel what the bottom frame says
   */
  show(profile, rootLabel) {
    this.profile = profile;
    this.rootLabel = rootLabel;
    this.matches = null;
    this.zoomed = 0;
    this.selected = -1;
    this.point(-1, 0, 0);
    this.fitRows(profile);
    this.scroller.style.setProperty("--content", `${this.rows * ROW}px`);
    this.measure();
    this.jump(0);
  }

  /** @param {boolean} dark */
  recolor(dark) {
    this.painter.recolor(dark);
    this.redraw();
  }

  /** @param {boolean} flame */
  turn(flame) {
    if (this.flame === flame) return;
    this.flame = flame;
    this.settle();
  }

  /** @param {Matches | null} matches */
  highlight(matches) {
    this.matches = matches;
    this.redraw();
  }

  /**
   * Makes a node fill the width, gliding there so that the eye can follow.
   * @param {number} node
   */
  zoom(node) {
    if (!this.profile || node === this.zoomed) return;
    const still = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.zoomed = node;
    this.selected = -1;
    this.point(-1, 0, 0);
    if (still) this.jump(node);
    else this.glide(this.profile.start[node], this.profile.start[node] + this.profile.total[0][node]);
  }

  /** @param {number} node */
  jump(node) {
    if (!this.profile) return;
    cancelAnimationFrame(this.animation);
    this.zoomed = node;
    this.from = this.profile.start[node];
    this.to = this.from + this.profile.total[0][node];
    this.settle();
  }

  /**
   * @param {number} from
   * @param {number} to
   */
  glide(from, to) {
    cancelAnimationFrame(this.animation);
    const begin = { from: this.from, to: this.to, time: performance.now() };
    const step = (/** @type {number} */ now) => {
      const t = Math.min(1, Math.max(0, (now - begin.time) / ZOOM_MILLISECONDS));
      const eased = 1 - (1 - t) ** 3;
      this.from = begin.from + (from - begin.from) * eased;
      this.to = begin.to + (to - begin.to) * eased;
      if (t < 1) {
        this.draw();
        this.animation = requestAnimationFrame(step);
      } else {
        this.settle();
      }
    };
    this.animation = requestAnimationFrame(step);
  }

  /** As many rows as the frame in view needs, scrolled to where it begins. */
  settle() {
    if (!this.profile) return;
    this.fitRows(this.profile);
    const above = Math.max(0, this.profile.depth[this.zoomed] - ROWS_ABOVE) * ROW;
    this.scroller.scrollTop = this.flame ? this.rows * ROW - this.height - above : above;
    this.redraw();
  }

  /** @param {Profile} profile */
  fitRows(profile) {
    this.rows = deepest(profile, this.zoomed, this.width || SOME_WIDTH) + 1;
    this.spacer.style.height = `${Math.max(0, this.rows * ROW - this.height)}px`;
  }

  measure() {
    const ratio = window.devicePixelRatio || 1;
    const width = this.scroller.clientWidth;
    const height = this.scroller.clientHeight;
    const same = width === this.width && height === this.height && this.canvas.width === Math.round(width * ratio);
    if (width === 0 || same) return;
    const first = this.width === 0;
    this.width = width;
    this.height = height;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    if (first || this.flame) this.settle();
    else if (this.profile) this.fitRows(this.profile);
    this.draw();
  }

  redraw() {
    if (this.pending) return;
    this.pending = requestAnimationFrame(() => {
      this.pending = 0;
      this.draw();
    });
  }

  /**
   * The top edge of a depth, in canvas pixels.
   * @param {number} depth
   */
  top(depth) {
    const content = Math.max(this.rows * ROW, this.flame ? this.height : 0);
    const y = this.flame ? content - (depth + 1) * ROW : depth * ROW;
    return y - this.scroller.scrollTop;
  }

  /** @param {number} y in canvas pixels */
  depthAt(y) {
    const zero = this.top(0);
    return this.flame ? Math.floor((zero + ROW - y) / ROW) : Math.floor((y - zero) / ROW);
  }

  draw() {
    const { profile } = this;
    if (!profile || this.width === 0) return;
    const ends = [this.depthAt(0), this.depthAt(this.height)];
    this.painter.paint({
      profile, matches: this.matches, zoomed: this.zoomed, rootLabel: this.rootLabel,
      from: this.from, to: this.to, width: this.width, height: this.height,
      first: Math.max(0, Math.min(...ends)), last: Math.max(...ends),
      top: (depth) => this.top(depth),
    });
    this.placeOutline();
  }

  /** @param {MouseEvent} event */
  nodeUnder(event) {
    if (!this.profile) return -1;
    const box = this.canvas.getBoundingClientRect();
    const depth = this.depthAt(event.clientY - box.top);
    if (depth < 0 || depth >= this.rows) return -1;
    const position = this.from + ((event.clientX - box.left) / this.width) * (this.to - this.from);
    return nodeAt(this.profile, position, depth);
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
    const node = this.hovered >= 0 ? this.hovered : this.selected;
    const box = this.boxOf(node);
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
    const scale = this.width / (this.to - this.from);
    const left = Math.max(0, (profile.start[node] - this.from) * scale);
    const right = Math.min(this.width, (profile.start[node] + profile.total[0][node] - this.from) * scale);
    const y = this.top(profile.depth[node]);
    return right <= left || y + ROW <= 0 || y >= this.height ? null : { x: left, y, width: right - left };
  }

  /**
   * Chooses a node by keyboard and brings its row into sight.
   * @param {number} node
   */
  select(node) {
    if (!this.profile || node < 0) return;
    this.selected = node;
    this.hovered = -1;
    const y = this.top(this.profile.depth[node]);
    if (y < 0) this.scroller.scrollTop += y;
    if (y + ROW > this.height) this.scroller.scrollTop += y + ROW - this.height;
    this.placeOutline();
    const box = this.boxOf(node);
    const canvas = this.canvas.getBoundingClientRect();
    if (box) this.events.point(node, canvas.left + box.x + Math.min(box.width, 40), canvas.top + box.y + ROW);
  }
}
