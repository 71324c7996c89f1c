// @ts-check
/** The flame graph on a canvas: draws what can be seen of it, and turns pointer and keys into steps. */

import { familyOf, makePalette } from "./colors.js";
import { part } from "./dom.js";
import { packageLength } from "./format.js";
import { deepest, layOut, nodeAt } from "./layout.js";

/** @typedef {import("./profile.js").Profile} Profile */
/** @typedef {import("./search.js").Matches} Matches */

const ROW = 20;
const FONT = '12px ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif';
const TEXT_FROM = 34;
const PADDING = 5;
const ZOOM_MILLISECONDS = 170;
const DIMMED = 0.28;

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
    const context = this.canvas.getContext("2d", { alpha: false });
    if (!context) throw new Error("this browser has no canvas");
    this.context = context;
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
    this.palette = makePalette(false);
    /** @type {string[]} */
    this.families = [];
    /** @type {Map<string, number>} */
    this.textWidths = new Map();
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
    this.families = [];
    this.zoomed = 0;
    this.selected = -1;
    this.point(-1, 0, 0);
    const rows = deepest(profile, 0, this.width || 1200) + 1;
    this.scroller.style.setProperty("--content", `${rows * ROW}px`);
    this.jump(0);
  }

  /** @param {boolean} dark */
  recolor(dark) {
    this.palette = makePalette(dark);
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

  /** Rows, height and scroll position for the frame in view. */
  settle() {
    if (!this.profile) return;
    const root = this.profile.depth[this.zoomed];
    this.rows = deepest(this.profile, this.zoomed, this.width || 1200) + 1;
    const content = this.rows * ROW;
    this.spacer.style.height = `${Math.max(0, content - this.height)}px`;
    const above = Math.max(0, root - 2) * ROW;
    this.scroller.scrollTop = this.flame ? content - this.height - above : above;
    this.redraw();
  }

  measure() {
    const ratio = window.devicePixelRatio || 1;
    const width = this.scroller.clientWidth;
    const height = this.scroller.clientHeight;
    if (width === 0 || (width === this.width && height === this.height && this.canvas.width === Math.round(width * ratio))) return;
    this.width = width;
    this.height = height;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    this.settle();
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

  /**
   * @param {number} y in canvas pixels
   */
  depthAt(y) {
    const zero = this.top(0);
    return this.flame ? Math.floor((zero + ROW - y) / ROW) : Math.floor((y - zero) / ROW);
  }

  draw() {
    const { profile, context } = this;
    if (!profile || this.width === 0) return;
    const ratio = this.canvas.width / this.width;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = this.palette.edge;
    context.fillRect(0, 0, this.width, this.height);
    context.font = FONT;
    context.textBaseline = "middle";
    const ends = [this.depthAt(0), this.depthAt(this.height)];
    const view = {
      from: this.from, to: this.to, width: this.width,
      first: Math.max(0, Math.min(...ends)), last: Math.max(...ends),
    };
    layOut(
      profile, view,
      (node, x, width) => this.drawFrame(profile, node, x, width),
      (depth, x, width) => this.drawRest(depth, x, width),
    );
    context.globalAlpha = 1;
    this.placeOutline();
  }

  /**
   * @param {Profile} profile
   * @param {number} node
   * @param {number} x
   * @param {number} width
   */
  drawFrame(profile, node, x, width) {
    const { context, palette } = this;
    const y = this.top(profile.depth[node]);
    const above = profile.depth[node] < profile.depth[this.zoomed];
    const matched = this.matches !== null && node > 0 && this.matches.names[profile.name[node]] === 1;
    context.globalAlpha = above || (this.matches && !matched) ? DIMMED : 1;
    context.fillStyle = node === 0 ? palette.root : matched ? palette.match : this.fillOf(profile, node);
    context.fillRect(x, y, width > 2 ? width - 0.8 : width, ROW - 1);
    if (width < TEXT_FROM) return;
    context.globalAlpha = above || (this.matches && !matched) ? 0.6 : 1;
    this.drawName(node === 0 ? this.rootLabel : profile.nameOf(node), x + PADDING, y + ROW / 2, width - 2 * PADDING);
  }

  /**
   * What is too small to tell apart stays visible as one grey piece.
   * @param {number} depth
   * @param {number} x
   * @param {number} width
   */
  drawRest(depth, x, width) {
    this.context.globalAlpha = 1;
    this.context.fillStyle = this.palette.rest;
    this.context.fillRect(x, this.top(depth), Math.max(width, 0.6), ROW - 1);
  }

  /**
   * @param {Profile} profile
   * @param {number} node
   */
  fillOf(profile, node) {
    const family = this.families[node] ??= familyOf(profile.kind[node], profile.nameOf(node));
    return this.palette.fill(family, profile.name[node]);
  }

  /**
   * The package soft and the rest firm; where there is no room the package goes first, then the end.
   * @param {string} name
   * @param {number} x
   * @param {number} y
   * @param {number} room
   */
  drawName(name, x, y, room) {
    const cut = packageLength(name);
    const prefix = name.slice(0, cut);
    const firm = name.slice(cut);
    const { context, palette } = this;
    const prefixWidth = prefix ? this.textWidth(prefix) : 0;
    if (prefix && prefixWidth + this.textWidth(firm) <= room) {
      context.fillStyle = palette.soft;
      context.fillText(prefix, x, y);
      x += prefixWidth;
    }
    context.fillStyle = palette.text;
    context.fillText(this.fit(firm, room), x, y);
  }

  /**
   * @param {string} text
   * @param {number} room in pixels
   */
  fit(text, room) {
    if (this.textWidth(text) <= room) return text;
    let least = 0;
    let most = Math.min(text.length, Math.ceil(room / 3));
    while (least < most) {
      const middle = (least + most + 1) >> 1;
      if (this.context.measureText(`${text.slice(0, middle)}…`).width <= room) least = middle;
      else most = middle - 1;
    }
    return least < 2 ? "" : `${text.slice(0, least)}…`;
  }

  /** @param {string} text */
  textWidth(text) {
    if (text.length > 500) return Infinity;
    let width = this.textWidths.get(text);
    if (width === undefined) {
      if (this.textWidths.size > 50000) this.textWidths.clear();
      width = this.context.measureText(text).width;
      this.textWidths.set(text, width);
    }
    return width;
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
