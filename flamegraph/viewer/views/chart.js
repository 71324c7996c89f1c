// @ts-check
/** A chart of series over days, moments or numbers: lines with their noise, points, or stacked bars of a day each. */

import { chartFrame, drawn, momentText, momentTicks, NO_TEXT } from "./axes.js";

/** @import { ChartBlock, Mark, Series } from "../data/page.js" */
/** @import { Keys } from "./keys.js" */
/** Where a mark is drawn. @typedef {{series: Series, mark: Mark, x: number, y: number, element: SVGElement}} Spot */

const [CHART_ROOM, TOP_ROOM, FOOT] = [260, 12, 26];
const [DAY_LENGTH, WIDEST_DAY, TICK_ROOM] = [86_400_000, 72, 96];
/** Series beyond these have one colour; if there are more than so many, their noise is not drawn. */
const [MOST_COLORS, MOST_NOISES] = [8, 3];

export class LineChart {
  /**
   * @param {ChartBlock} block
   * @param {Keys} keys
   */
  constructor(block, keys) {
    this.block = block;
    this.keys = keys;
    const kind = block.stacked ? "stack" : "";
    const names = block.series.map(({ name, style }, at) => /** @type {[string, string]} */ ([name, `${colorOf(at)} ${kind} ${style}`]));
    const { element, picture, readout } = chartFrame(block.label, names);
    this.element = element;
    this.picture = picture;
    this.readout = readout;
    /** From the left. @type {Spot[]} */
    this.spots = [];
    this.at = -1;
    /** @type {Set<string> | null} */
    this.related = null;
    picture.addEventListener("pointermove", (event) => this.point(this.nearest(event)));
    picture.addEventListener("pointerleave", () => this.point(-1));
    picture.addEventListener("blur", () => this.point(-1));
    picture.addEventListener("click", () => this.follow());
    picture.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (event.altKey || event.ctrlKey || event.metaKey || (!step && event.key !== "Enter")) return;
      event.preventDefault();
      event.stopPropagation();
      if (step) this.point(Math.max(0, Math.min(this.spots.length - 1, this.at < 0 && step < 0 ? this.spots.length - 1 : this.at + step)));
      else this.follow();
    });
    new ResizeObserver(() => this.draw()).observe(picture);
  }

  /** @param {Set<string> | null} related */
  show(related) {
    this.related = related;
    this.draw();
  }

  follow() {
    const key = this.spots[this.at]?.mark[5];
    if (key && this.keys.leads(key)) this.keys.choose(key);
  }

  /** @param {number} at of the spots; -1 for none */
  point(at) {
    this.spots[this.at]?.element.classList.remove("pointed");
    this.at = at;
    const spot = this.spots[at];
    spot?.element.classList.add("pointed");
    this.readout.textContent = spot ? this.textOf(spot) : NO_TEXT;
  }

  /** @param {Spot} spot */
  textOf({ series, mark }) {
    const [x, , text] = mark;
    const { over, stacked } = this.block;
    const when = over ? `${over} = ${x}` : stacked ? momentText(x).slice(0, 10) : momentText(x);
    return `${when}, ${series.name}: ${text}`;
  }

  /** @param {PointerEvent} event */
  nearest({ clientX, clientY }) {
    const box = this.picture.getBoundingClientRect();
    const [x, y] = [clientX - box.left, clientY - box.top];
    let [found, least] = [-1, Infinity];
    this.spots.forEach((spot, at) => {
      // Of those above each other that which is nearest upright; bars are pointed at in their whole height.
      const distance = Math.abs(spot.x - x) * 4 + Math.abs(spot.y - y);
      if (distance < least) [found, least] = [at, distance];
    });
    return found;
  }

  draw() {
    const width = this.picture.clientWidth;
    const { block } = this;
    if (!width) return;
    const left = 12 + Math.max(...block.levels.map(([, text]) => text.length)) * 6.4;
    const ground = CHART_ROOM - FOOT;
    const highest = block.levels[block.levels.length - 1][0] || 1;
    const y = (/** @type {number} */ value) => ground - ((ground - TOP_ROOM) * Math.max(0, Math.min(highest, value))) / highest;
    const { x, ticks } = this.across(left, width - 14);
    const picture = drawn("svg", { viewBox: `0 0 ${width} ${CHART_ROOM}`, height: CHART_ROOM, "aria-hidden": "true" });
    for (const [value, text] of block.levels) {
      picture.append(drawn("path", { class: "grid", d: `M${left},${y(value)}H${width - 2}` }));
      picture.append(drawn("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, text));
    }
    for (const [at, text] of ticks) {
      const half = text.length * 3.2;
      const place = Math.max(left + half - 8, Math.min(width - half - 2, at));
      picture.append(drawn("path", { class: "grid", d: `M${at},${ground}v5` }), drawn("text", { x: place, y: CHART_ROOM - 8, "text-anchor": "middle" }, text));
    }
    const { at } = this;
    this.spots = [];
    this.at = -1;
    if (block.stacked) this.bars(picture, x, y);
    else for (const [number, series] of block.series.entries()) this.line(picture, series, number, x, y, width);
    this.spots.sort((a, b) => a.x - b.x);
    this.picture.replaceChildren(picture);
    this.point(at);
  }

  /**
   * Where things are from left to right, and the ticks there.
   * @param {number} left
   * @param {number} right
   * @returns {{x: (value: number) => number, ticks: [number, string][]}}
   */
  across(left, right) {
    const { over, stacked, series } = this.block;
    const values = series.flatMap(({ marks }) => marks.map(([value]) => value));
    const [first, last] = [Math.min(...values), Math.max(...values)];
    if (over) {
      const x = (/** @type {number} */ value) => left + ((right - left) * value) / (last || 1);
      const known = series.find(({ style }) => style === "points")?.marks ?? [];
      return { x, ticks: apart(known.map(([value]) => [x(value), value === last ? `${value} ${over}` : String(value)])) };
    }
    if (stacked) {
      const days = Math.round((last - first) / DAY_LENGTH) + 1;
      const room = Math.min(WIDEST_DAY, (right - left) / days);
      const x = (/** @type {number} */ day) => left + 4 + ((day - first) / DAY_LENGTH) * room;
      const each = Math.ceil(TICK_ROOM / room);
      const shown = Array.from({ length: Math.ceil(days / each) }, (_, at) => first + at * each * DAY_LENGTH);
      return { x, ticks: shown.map((day) => [x(day) + room * 0.4, momentText(day).slice(0, 10)]) };
    }
    const [begin, end] = [left + 10, right - 10];
    const x = (/** @type {number} */ moment) => (last > first ? begin + ((end - begin) * (moment - first)) / (last - first) : (begin + end) / 2);
    return { x, ticks: momentTicks(first, last, Math.floor((end - begin) / TICK_ROOM)).map(([at, text]) => [x(at), text]) };
  }

  /**
   * @param {SVGElement} picture
   * @param {Series} series
   * @param {number} number
   * @param {(value: number) => number} x
   * @param {(value: number) => number} y
   * @param {number} width
   */
  line(picture, { name, style, level, marks }, number, x, y, width) {
    const group = drawn("g", { class: `${colorOf(number)} ${style}` });
    const path = (/** @type {[number, number][]} */ places) => `M${places.map(([at, value]) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`).join("L")}`;
    const noisy = marks.filter(([, , , low, high]) => low !== null && high !== null);
    if (style === "points") {
      for (const [at, , , low, high] of noisy) group.append(drawn("path", { class: "line", d: `M${x(at)},${y(low ?? 0)}V${y(high ?? 0)}` }));
    } else {
      const upper = noisy.map(([at, , , , high]) => /** @type {[number, number]} */ ([at, high]));
      const lower = noisy.map(([at, , , low]) => /** @type {[number, number]} */ ([at, low])).reverse();
      // The noise of many series is one grey: it is read by pointing at them.
      if (noisy.length > 1 && this.block.series.length <= MOST_NOISES) group.append(drawn("path", { class: "band", d: `${path([...upper, ...lower])}Z` }));
      group.append(drawn("path", { class: "line", d: path(marks.map(([at, value]) => [at, value])) }));
    }
    if (level) group.append(drawn("path", { class: "line level", d: `M${x(marks[0][0])},${y(level[0])}H${width - 2}` }));
    if (style === "line" || style === "points") {
      for (const mark of marks) {
        const [cx, cy] = [x(mark[0]), y(mark[1])];
        const faint = this.related && mark[5] && !this.related.has(mark[5]);
        const element = drawn("circle", { class: faint ? "dot faint" : "dot", cx, cy, r: 3.5 });
        group.append(element);
        const text = level ? `${mark[2]} (before: ${level[1]})` : mark[2];
        this.spots.push({ series: { name, style, level, marks }, mark: [mark[0], mark[1], text, mark[3], mark[4], mark[5]], x: cx, y: cy, element });
      }
    }
    picture.append(group);
  }

  /**
   * Each series stands on those before.
   * @param {SVGElement} picture
   * @param {(value: number) => number} x
   * @param {(value: number) => number} y
   */
  bars(picture, x, y) {
    const room = x(DAY_LENGTH) - x(0);
    /** By day. @type {Map<number, number>} */
    const sums = new Map();
    for (const [number, series] of this.block.series.entries()) {
      for (const mark of series.marks) {
        const [day, value] = mark;
        const below = sums.get(day) ?? 0;
        sums.set(day, below + value);
        if (value <= 0) continue;
        const [top, foot] = [y(below + value), y(below)];
        const element = drawn("rect", { class: `stack fill ${colorOf(number)}`, x: x(day), y: top, width: Math.max(1, room * 0.8), height: foot - top });
        picture.append(element);
        this.spots.push({ series, mark, x: x(day) + room * 0.4, y: (top + foot) / 2, element });
      }
    }
  }
}

/** @param {number} number of a series */
function colorOf(number) {
  return number < MOST_COLORS ? `s${number}` : "others";
}

/**
 * Ticks without those that would touch the one before.
 * @param {[number, string][]} ticks
 */
function apart(ticks) {
  let free = -Infinity;
  return ticks.filter(([at, text]) => {
    if (at < free) return false;
    free = at + text.length * 7 + 10;
    return true;
  });
}
