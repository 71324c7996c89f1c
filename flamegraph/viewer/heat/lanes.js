// @ts-check
/** Spans above the heat map, on its axis: GC pauses, jobs, stages. */

import { make, sizedCanvas } from "../controls/dom.js";
import { GUTTER } from "./cell_map.js";

/** @import { Lane } from "../data/page.js" */

/** One of a lane, in seconds. @typedef {{lane: Lane, from: number, to: number, label: string}} Named */
/** Where a span is drawn. @typedef {{span: Named, x: number, y: number, width: number}} Box */

const LANE = 17;
/** Lanes of spans that overlap have at most this many lines. */
const MOST_LINES = 6;
/** A span is seen, however short. */
const LEAST_WIDTH = 2;
const TEXT_FROM_WIDTH = 26;
const LABEL = '11px ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif';
/** How strong a pixel is in which a pause is too short to be seen alone; it is full if all of it is a pause. */
const FAINTEST = 0.2;
/** How many spans further keys go within a lane. @type {Record<string, number>} */
const SPANS_OF_KEYS = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 };
/** How many lanes further keys go. @type {Record<string, number>} */
const LANES_OF_KEYS = { ArrowUp: -1, ArrowDown: 1 };
/** Light and dark; every other span of a lane is a little different. */
const COLORS = {
  gc: [["#c9771a", "#c9771a"], ["#d9953f", "#d9953f"]],
  job: [["#b9c4d6", "#cdd5e3"], ["#3d4a60", "#4a5871"]],
  stage: [["#a9d3cf", "#c2e1de"], ["#27514f", "#336463"]],
};

export class Lanes {
  /**
   * @param {(span: Named) => void} chosen
   * @param {(span: Named | null, x: number, y: number) => void} pointed client pixels
   * @param {(span: Named) => void} walked keys moved to a span
   */
  constructor(chosen, pointed, walked) {
    this.chosen = chosen;
    this.walked = walked;
    this.canvas = document.createElement("canvas");
    this.canvas.id = "lanes-canvas";
    this.canvas.setAttribute("role", "img");
    this.element = make("div", "lanes");
    this.element.id = "lanes";
    this.element.tabIndex = 0;
    this.element.setAttribute("role", "group");
    this.element.setAttribute("aria-label", "What else is known by time: arrow keys move, Enter selects");
    this.element.append(this.canvas);
    /** Lane by lane, in the order of time. @type {Box[]} */
    this.boxes = [];
    /** The box that keys are at. @type {Box | null} */
    this.at = null;
    /** How it was drawn. @type {{names: [name: string, y: number][], width: number, height: number, dark: boolean}} */
    this.drawn = { names: [], width: 0, height: 0, dark: false };
    this.processes = 1;
    this.canvas.addEventListener("mousemove", (event) => {
      const span = this.spanAt(event);
      this.canvas.style.cursor = span ? "pointer" : "default";
      pointed(span, event.clientX, event.clientY);
    });
    this.canvas.addEventListener("mouseleave", () => pointed(null, 0, 0));
    this.canvas.addEventListener("click", (event) => {
      const span = this.spanAt(event);
      if (span) chosen(span);
    });
    this.element.addEventListener("keydown", (event) => {
      if (event.altKey || event.ctrlKey || event.metaKey || !this.key(event.key)) return;
      event.preventDefault();
      event.stopPropagation();
    });
    this.element.addEventListener("blur", () => this.walkTo(null));
  }

  /**
   * @param {string} key
   * @returns {boolean} whether it meant something
   */
  key(key) {
    const { at, boxes } = this;
    if (key === "Enter" && at) {
      this.chosen(at.span);
      return true;
    }
    const [spans, lanes] = [SPANS_OF_KEYS[key], LANES_OF_KEYS[key]];
    if ((!spans && !lanes) || boxes.length === 0) return false;
    if (!at) this.walkTo(boxes[0]);
    else if (lanes) this.walkTo(this.inLane(at, lanes));
    else this.walkTo(boxes[Math.max(0, Math.min(boxes.length - 1, boxes.indexOf(at) + spans))]);
    return true;
  }

  /**
   * The span above or below that ends after the begin of this one, or the last one there.
   * @param {Box} at
   * @param {number} step
   */
  inLane(at, step) {
    const names = [...new Set(this.boxes.map(({ span }) => span.lane.name))];
    const name = names[names.indexOf(at.span.lane.name) + step];
    const boxes = this.boxes.filter(({ span }) => span.lane.name === name);
    return boxes.find(({ span }) => span.to > at.span.from) ?? boxes[boxes.length - 1] ?? at;
  }

  /** @param {Box | null} box */
  walkTo(box) {
    if (box === this.at) return;
    this.at = box;
    this.draw();
    if (box) this.walked(box.span);
  }

  /**
   * @param {Lane[]} lanes
   * @param {number} perSecond pixels
   * @param {number} width in pixels, of all seconds
   * @param {boolean} dark
   */
  show(lanes, perSecond, width, dark) {
    /** Lanes of one name are drawn as one. @type {Map<string, Named[]>} */
    const groups = new Map();
    for (const lane of lanes) {
      const spans = groups.get(lane.name) ?? [];
      groups.set(lane.name, spans);
      for (const [from, to, label] of lane.spans) spans.push({ lane, from, to, label });
    }
    this.element.hidden = groups.size === 0;
    this.boxes = [];
    this.at = null;
    /** @type {[name: string, y: number][]} */
    const names = [];
    let y = 0;
    for (const [name, spans] of groups) {
      names.push([name, y]);
      y += this.place(spans.sort((a, b) => a.from - b.from), y, perSecond, width) * LANE;
    }
    /** Processes whose pauses are drawn as one lane. */
    this.processes = Math.max(1, lanes.filter(({ kind }) => kind === "gc").length);
    const counted = [...groups].map(([name, spans]) => `${name}: ${spans.length}`).join(", ");
    this.canvas.setAttribute("aria-label", counted);
    this.drawn = { names, width: GUTTER + width + 2, height: y, dark };
    this.draw();
  }

  /**
   * Places spans so that none hides another, as far as there is room; GC pauses need none.
   * @param {Named[]} spans by their begin
   * @param {number} top
   * @param {number} perSecond
   * @param {number} width
   * @returns {number} of lines
   */
  place(spans, top, perSecond, width) {
    /** Where each line is free again, in pixels. */
    const free = [0];
    for (const span of spans) {
      const x = Math.max(0, span.from * perSecond);
      const exact = Math.min(width, span.to * perSecond) - x;
      if (x >= width) continue;
      const wide = span.lane.kind === "gc" ? exact : Math.max(LEAST_WIDTH, exact);
      let line = span.lane.kind === "gc" ? 0 : free.findIndex((end) => end <= x);
      if (line < 0) line = free.length < MOST_LINES ? free.length : MOST_LINES - 1;
      free[line] = Math.max(free[line] ?? 0, x + wide);
      this.boxes.push({ span, x: GUTTER + x, y: top + line * LANE, width: wide });
    }
    return free.length;
  }

  draw() {
    const { canvas, at } = this;
    const { names, width, height, dark } = this.drawn;
    const context = sizedCanvas(canvas, width, height);
    if (!context) return;
    context.font = LABEL;
    context.textBaseline = "middle";
    context.textAlign = "right";
    context.fillStyle = dark ? "#9aa3ad" : "#5c6570";
    for (const [name, y] of names) context.fillText(name, GUTTER - 8, y + LANE / 2, GUTTER - 10);
    context.textAlign = "left";
    this.drawPauses(context, dark);
    for (const [at, { span, x, y, width }] of this.boxes.entries()) {
      if (span.lane.kind === "gc") continue;
      context.fillStyle = COLORS[span.lane.kind][dark ? 1 : 0][at % 2];
      context.fillRect(x, y + 2, width > LEAST_WIDTH + 2 ? width - 1 : width, LANE - 4);
      if (width < TEXT_FROM_WIDTH) continue;
      context.save();
      context.beginPath();
      context.rect(x, y, width - 4, LANE);
      context.clip();
      context.fillStyle = dark ? "#f1f3f5" : "#16191d";
      context.fillText(span.label, x + 4, y + LANE / 2 + 0.5);
      context.restore();
    }
    if (!at) return;
    context.strokeStyle = dark ? "#ffffff" : "#000000";
    context.lineWidth = 2;
    context.strokeRect(at.x, at.y + 1, Math.max(LEAST_WIDTH, at.width), LANE - 2);
  }

  /**
   * Pauses are often shorter than a pixel, and many: each pixel shows what part of it they are.
   * @param {CanvasRenderingContext2D} context
   * @param {boolean} dark
   */
  drawPauses(context, dark) {
    /** By pixel. @type {Map<number, {y: number, part: number}>} */
    const pixels = new Map();
    for (const { span, x, y, width } of this.boxes) {
      if (span.lane.kind !== "gc") continue;
      for (let pixel = Math.floor(x); pixel <= x + width; pixel++) {
        const covered = pixels.get(pixel) ?? { y, part: 0 };
        covered.part += Math.max(0, Math.min(pixel + 1, x + width) - Math.max(pixel, x));
        pixels.set(pixel, covered);
      }
    }
    context.fillStyle = COLORS.gc[dark ? 1 : 0][0];
    for (const [pixel, { y, part }] of pixels) {
      context.globalAlpha = FAINTEST + (1 - FAINTEST) * Math.min(1, part / this.processes);
      context.fillRect(pixel, y + 2, 1, LANE - 4);
    }
    context.globalAlpha = 1;
  }

  /**
   * The span under the pointer; of several the shortest.
   * @param {MouseEvent} event
   */
  spanAt(event) {
    const canvas = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - canvas.left, event.clientY - canvas.top];
    const under = this.boxes.filter((box) => y >= box.y && y < box.y + LANE && x >= box.x - 1 && x <= box.x + box.width + 1);
    return under.sort((a, b) => a.width - b.width)[0]?.span ?? null;
  }
}
