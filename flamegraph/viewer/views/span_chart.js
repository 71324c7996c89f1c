// @ts-check
/** An application over time: curves by buckets, the first as an area, and lanes of spans below them. */

import { filled, make } from "../controls/dom.js";
import { grouped } from "../data/format.js";
import { chartFrame, countTicks, drawn, fitting, secondTicks } from "./axes.js";

/** @import { LaneSpan, TimelineBlock } from "../data/page.js" */
/** @import { Keys } from "./keys.js" */
/** Where a span is drawn. @typedef {{lane: number, span: LaneSpan, x: number, y: number, width: number, element: SVGElement}} Bar */

const [CURVES_ROOM, AXIS_ROOM, NAME_ROOM, BAR_ROOM, SPAN_LEFT] = [170, 24, 17, 15, 44];
/** Lanes of spans that overlap have at most so many lines. Where spans have states of their own, so many lines of all lanes are shown first. */
const [MOST_BAR_LINES, FIRST_BAR_LINES] = [12, 60];
/** The end of a span, where it has a mark. */
const CAP = 3;
const BAR_TEXT_FROM = 46;

export class SpanChart {
  /**
   * @param {TimelineBlock} block
   * @param {Keys} keys
   */
  constructor(block, keys) {
    this.block = block;
    this.keys = keys;
    const names = block.curves.map(({ name }, at) => /** @type {[string, string]} */ ([name, curveClass(name, at)]));
    const states = (block.states ?? []).map(([state, name]) => /** @type {[string, string]} */ ([name, `bar ${state}`]));
    const { element, picture, readout } = chartFrame(block.label, [...names, ...states]);
    this.width = 0;
    /** Whether all lines of all lanes are shown. */
    this.whole = false;
    this.more = make("button");
    this.more.addEventListener("click", () => {
      this.whole = !this.whole;
      this.draw();
    });
    this.foot = filled("div", "controls", this.more);
    element.append(this.foot);
    this.element = element;
    this.picture = picture;
    this.readout = readout;
    this.readout.textContent = this.rest;
    /** @type {Bar[]} */
    this.bars = [];
    /** What keys are at. @type {Bar | null} */
    this.at = null;
    this.bucket = -1;
    /** @type {Set<string> | null} */
    this.related = null;
    this.cursor = drawn("path", { class: "cursor" });
    picture.addEventListener("pointermove", (event) => {
      const { x, y } = this.placeOf(event);
      const bar = this.barAt(x, y);
      if (bar) this.point(bar);
      else this.read(Math.floor(((x - SPAN_LEFT) / this.perSecond) / block.width));
    });
    picture.addEventListener("pointerleave", () => this.read(-1));
    picture.addEventListener("blur", () => this.read(-1));
    picture.addEventListener("click", (event) => {
      const { x, y } = this.placeOf(event);
      this.follow(this.barAt(x, y));
    });
    picture.addEventListener("keydown", (event) => {
      if (event.altKey || event.ctrlKey || event.metaKey || !this.key(event.key)) return;
      event.preventDefault();
      event.stopPropagation();
    });
    new ResizeObserver(() => this.draw()).observe(picture);
  }

  /** What the line of text says while nothing is pointed at. */
  get rest() {
    return `${this.block.label}.`;
  }

  get perSecond() {
    return (this.width - SPAN_LEFT - 8) / this.block.seconds;
  }

  /** @param {Set<string> | null} related */
  show(related) {
    this.related = related;
    this.draw();
  }

  /**
   * Left and right walk over the curves, or over the spans of a lane; up and down go to another lane.
   * @param {string} key
   */
  key(key) {
    const across = { ArrowRight: 1, ArrowLeft: -1 }[key];
    const down = { ArrowDown: 1, ArrowUp: -1 }[key];
    if (key === "Enter") this.follow(this.at);
    else if (across && !this.at) {
      const buckets = this.block.curves[0]?.values.length ?? 0;
      this.read(Math.max(0, Math.min(buckets - 1, this.bucket + across)));
    } else if (across && this.at) {
      const lane = this.bars.filter((bar) => bar.lane === this.at?.lane);
      this.point(lane[Math.max(0, Math.min(lane.length - 1, lane.indexOf(this.at) + across))]);
    } else if (down) {
      const lane = (this.at?.lane ?? -1) + down;
      const bar = this.bars.find((one) => one.lane === lane);
      if (bar) this.point(bar);
      else if (lane < 0) this.read(0);
    } else return false;
    return true;
  }

  /** @param {Bar | null | undefined} bar */
  follow(bar) {
    const key = bar?.span[3];
    if (key && this.keys.leads(key)) this.keys.choose(key);
  }

  /** @param {MouseEvent} event */
  placeOf({ clientX, clientY }) {
    const box = this.picture.getBoundingClientRect();
    return { x: clientX - box.left, y: clientY - box.top };
  }

  /**
   * @param {number} x
   * @param {number} y
   */
  barAt(x, y) {
    const under = this.bars.filter((bar) => y >= bar.y && y < bar.y + BAR_ROOM && x >= bar.x - 1 && x <= bar.x + bar.width + 1);
    return under.sort((a, b) => a.width - b.width)[0];
  }

  /** @param {Bar} bar */
  point(bar) {
    this.at?.element.classList.remove("pointed");
    this.at = bar;
    bar.element.classList.add("pointed");
    const [, , label, key, , , about = label] = bar.span;
    this.picture.style.cursor = key && this.keys.leads(key) ? "pointer" : "";
    this.readout.textContent = about;
    this.cursor.setAttribute("d", "");
  }

  /** @param {number} bucket the values there; below 0 for none */
  read(bucket) {
    const { curves, width } = this.block;
    this.at?.element.classList.remove("pointed");
    this.at = null;
    this.picture.style.cursor = "";
    const known = bucket >= 0 && bucket < (curves[0]?.values.length ?? 0);
    this.bucket = known ? bucket : -1;
    const values = curves.map(({ name, values }) => `${name} ${values[bucket]}`).join(", ");
    this.readout.textContent = known ? `${secondsText(bucket * width)}: ${values}` : this.rest;
    const x = SPAN_LEFT + (bucket + 0.5) * width * this.perSecond;
    this.cursor.setAttribute("d", known ? `M${x},8V${CURVES_ROOM}` : "");
  }

  /**
   * Draw it although it is not seen, as for paper.
   * @param {number} width
   */
  lay(width) {
    if (!this.picture.clientWidth) this.draw(width);
  }

  draw(width = this.picture.clientWidth) {
    if (!width) return;
    this.width = width;
    const { block, perSecond } = this;
    this.bars = [];
    this.at = null;
    const picture = drawn("svg", { "aria-hidden": "true" });
    const highest = block.curves.reduce((most, { values }) => values.reduce((one, other) => Math.max(one, other), most), 1);
    const levels = countTicks(highest).filter((level) => !block.states || Number.isInteger(level));
    const top = levels[levels.length - 1];
    const y = (/** @type {number} */ value) => CURVES_ROOM - ((CURVES_ROOM - 10) * value) / top;
    const right = SPAN_LEFT + block.seconds * perSecond;
    const ticks = secondTicks(block.seconds, Math.max(2, Math.floor((right - SPAN_LEFT) / 72)));
    const grid = [...levels.map((value) => `M${SPAN_LEFT},${y(value)}H${right}`)];
    for (const value of levels) picture.append(drawn("text", { x: SPAN_LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, String(value)));
    for (const [at, { name, values }] of block.curves.entries()) {
      const steps = values.map((value, bucket) => {
        const [from, to] = [bucket, bucket + 1].map((edge) => SPAN_LEFT + Math.min(block.seconds, edge * block.width) * perSecond);
        return `${from.toFixed(1)},${y(value).toFixed(1)}H${to.toFixed(1)}`;
      });
      const line = `M${steps.join("L")}`;
      const kind = curveClass(name, at);
      picture.append(drawn("path", kind === "area" ? { class: "area fill", d: `${line}V${y(0)}H${SPAN_LEFT}Z` } : { class: `line ${kind}`, d: line }));
    }
    let bottom = CURVES_ROOM + AXIS_ROOM;
    let room = !block.states || this.whole ? Infinity : FIRST_BAR_LINES;
    let hidden = 0;
    block.lanes.forEach(({ name, spans }, lane) => {
      if (room <= 0) {
        hidden += spans.length;
        return;
      }
      const { lines, left } = this.lane(picture, spans, lane, bottom + NAME_ROOM, block.states ? room : MOST_BAR_LINES);
      const text = left ? `${name} (${block.states ? "" : "no room for "}${grouped(left)} more)` : name;
      picture.append(drawn("text", { class: "lane", x: SPAN_LEFT, y: bottom + 12 }, text));
      bottom += NAME_ROOM + lines * BAR_ROOM + 3;
      room -= lines;
      hidden += left;
    });
    this.fold(block.states ? hidden : 0);
    for (const [second, text] of ticks) {
      const x = SPAN_LEFT + second * perSecond;
      const half = text.length * 3.2;
      grid.push(`M${x},${CURVES_ROOM}V${bottom}`);
      picture.append(drawn("text", { x: Math.min(x, right - half + 6), y: CURVES_ROOM + 16, "text-anchor": "middle" }, text));
    }
    picture.prepend(drawn("path", { class: "grid", d: grid.join("") }));
    picture.append(this.cursor);
    picture.setAttribute("viewBox", `0 0 ${width} ${bottom}`);
    picture.setAttribute("height", String(bottom));
    this.picture.replaceChildren(picture);
  }

  /** @param {number} hidden spans, which the button shows */
  fold(hidden) {
    const all = this.block.lanes.reduce((sum, { spans }) => sum + spans.length, 0);
    this.foot.hidden = !hidden && !this.whole;
    this.more.textContent = this.whole ? "Show fewer" : `Show all ${grouped(all)}`;
  }

  /**
   * Draws spans so that none hides another, as far as there is room.
   * @param {SVGElement} picture
   * @param {LaneSpan[]} spans by their begin
   * @param {number} lane
   * @param {number} top
   * @param {number} most lines
   * @returns how many lines there are, and how many spans have no room
   */
  lane(picture, spans, lane, top, most) {
    /** Where each line is free again, in pixels. */
    const free = [0];
    let left = 0;
    for (const span of spans) {
      const [since, until, label, key, state, mark = since] = span;
      const x = SPAN_LEFT + since * this.perSecond;
      const width = Math.max(1.5, (until - since) * this.perSecond);
      let line = free.findIndex((end) => end <= x + 0.5);
      if (line < 0) line = free.length;
      if (line >= most) {
        left++;
        continue;
      }
      free[line] = Math.max(free[line] ?? 0, x + width);
      const y = top + line * BAR_ROOM;
      const faint = this.related && key && !this.related.has(key) ? "faint" : "";
      const shown = width > 4 ? width - 1 : width;
      const before = Math.max(0, Math.min(shown, (mark - since) * this.perSecond));
      const element = drawn("g", { class: `bar ${state} ${faint}` }, drawn("rect", { x, y, width: shown, height: BAR_ROOM - 2, rx: 1.5 }));
      if (before > 0) element.append(drawn("rect", { class: "before", x, y, width: before, height: BAR_ROOM - 2, rx: 1.5 }));
      if (this.block.states && state && shown > 2 * CAP) element.append(drawn("rect", { class: "cap", x: x + shown - CAP, y, width: CAP, height: BAR_ROOM - 2 }));
      if (width - before >= BAR_TEXT_FROM) element.append(drawn("text", { x: x + before + 4, y: y + 10.5 }, fitting(label, width - before - 8)));
      picture.append(element);
      this.bars.push({ lane, span, x, y, width, element });
    }
    return { lines: free.length, left };
  }
}

/**
 * The first is an area; the others keep their colours whichever are left out.
 * @param {string} name
 * @param {number} at
 */
function curveClass(name, at) {
  return at ? `curve-${name.replaceAll(" ", "-")}` : "area";
}

/** @param {number} seconds */
function secondsText(seconds) {
  return seconds < 120 ? `${seconds.toFixed(1)}\u202fs` : seconds < 7200 ? `${(seconds / 60).toFixed(1)}\u202fmin` : `${(seconds / 3600).toFixed(1)}\u202fh`;
}
