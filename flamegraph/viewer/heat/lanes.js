// @ts-check
/** Spans above the heat map, on its axis: GC pauses, jobs, stages. */

import { make } from "../controls/dom.js";
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
   */
  constructor(chosen, pointed) {
    this.canvas = document.createElement("canvas");
    this.canvas.id = "lanes-canvas";
    this.canvas.setAttribute("role", "img");
    this.element = make("div", "lanes");
    this.element.append(this.canvas);
    /** @type {Box[]} */
    this.boxes = [];
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
    this.draw(names, GUTTER + width + 2, y, dark);
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

  /**
   * @param {[name: string, y: number][]} names
   * @param {number} width
   * @param {number} height
   * @param {boolean} dark
   */
  draw(names, width, height, dark) {
    const { canvas } = this;
    const context = canvas.getContext("2d");
    if (!context) return;
    const ratio = window.devicePixelRatio || 1;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
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
