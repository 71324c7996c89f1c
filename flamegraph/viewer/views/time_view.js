// @ts-check
/** When samples were taken: lanes, heat map and timeline on one axis, maps of durations, the flame graph of the range. */

import { filled, make } from "../controls/dom.js";
import { isDark } from "../controls/theme.js";
import { amounts, grouped, percent, quantity } from "../data/format.js";
import { bandsText, formatBands, formatRange, microsecondsText, rangeText, SECOND } from "../data/range.js";
import { ALL_TIME } from "../data/state.js";
import { countCells, countDurations, countMatches, countSpans, TimeGrid } from "../data/time_grid.js";
import { hideTooltip, showTip } from "../graph/frame_details.js";
import { ScopeGraph } from "../graph/scope_graph.js";
import { CellMap, GUTTER } from "../heat/cell_map.js";
import { Lanes } from "../heat/lanes.js";
import { Ramp, topOf } from "../heat/ramp.js";

/** @import { Context, View } from "../controls/context.js" */
/** @import { TimeInfo } from "../data/page.js" */
/** @import { Bands, Range } from "../data/range.js" */
/** @import { Scope } from "../data/scopes.js" */
/** @import { State } from "../data/state.js" */
/** @import { CellCounts, Durations } from "../data/time_grid.js" */
/** @import { TooltipRow } from "../graph/frame_details.js" */
/** @import { Cell, CellPicture, Mark } from "../heat/cell_map.js" */

/** Widths and heights in pixels. */
const [LEAST_COLUMN, WIDEST_COLUMN] = [4, 112];
const [HEAT_HEIGHT, TIMELINE_HEIGHT, BAND_HEIGHT] = [300, 40, 13];
const [LEAST_TICK, LEAST_LABEL] = [64, 26];
/** Seconds between ticks. */
const TICK_STEPS = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14_400, 28_800, 86_400];

/**
 * Why there is nothing to be shown.
 * @param {Context} context
 */
function reasonOf({ page, event }) {
  if (page.time) return `It is not known when samples of ${page.events[event].title} were taken.`;
  if (page.runs.length > 1) return "The two runs have no time in common. Their own reports have heat maps.";
  if (!page.run) return "This page was made from a file that does not say when its samples were taken.";
  return "The run does not say when its samples were taken: it was recorded with --no-timeline, or by an older version.";
}

/** @implements {View} */
export class TimeView {
  /**
   * @param {Context} context
   * @param {HTMLElement} panel
   */
  constructor(context, panel) {
    this.context = context;
    this.none = make("p", "none");
    this.hint = make("p", "lead");
    this.lanes = new Lanes(
      ({ from, to }) => this.selectRange(this.whole(from * SECOND, to * SECOND), false),
      (span, x, y) => {
        if (!span) return hideTooltip();
        const { process } = span.lane;
        const [from, to] = [span.from, span.to].map((time) => Math.round(time * SECOND));
        /** @type {TooltipRow[]} */
        const rows = [["Time", rangeText({ from, to })], ["Duration", microsecondsText(to - from)]];
        if (process !== null) rows.push(["Process", context.scopes.labelOf({ ...context.scope, kind: "process", index: process })]);
        showTip(span.label || span.lane.name, rows, x, y);
      },
    );
    const clear = () => this.clear();
    this.heat = new CellMap("heat", "Heat map of samples by time", {
      select: (from, to, compared) => this.selectRange(this.grid?.rangeOf(this.cellOf(from), this.cellOf(to)), compared),
      point: (cell, x, y) => (cell ? this.showCell(this.cellOf(cell), 1, x, y) : hideTooltip()),
      walk: (from, to) => this.tellCells(this.cellOf(from), this.cellOf(to)),
      clear,
    });
    const rows = () => this.grid?.rows ?? 1;
    this.timeline = new CellMap("timeline", "Samples by time", {
      select: (from, to, compared) => this.selectRange(this.columnsRange(from, to), compared),
      point: (cell, x, y) => (cell ? this.showCell(cell.column * rows(), rows(), x, y) : hideTooltip()),
      walk: (from, to) => this.tellCells(from.column * rows(), (to.column + 1) * rows() - 1),
      clear,
    });
    this.ramp = make("p", "ramp");
    this.note = make("p", "time-note");
    this.note.id = "time-note";
    this.note.setAttribute("aria-live", "polite");
    this.durations = new DurationsMap(context, "durations", (from, to) => {
      this.selectRange(this.columnsRange(from, to), false, this.durations.bandsOf(from, to));
    }, clear);
    this.pauses = new DurationsMap(context, "pauses", (from, to) => {
      this.selectRange(this.columnsRange(from, to), false);
    }, clear);
    const element = make("div");
    element.id = "time-graph";
    this.graph = new ScopeGraph(context, element);
    const foot = filled("div", "time-foot", this.ramp, this.note);
    const maps = [this.lanes.element, this.heat.element, this.timeline.element, foot];
    this.body = filled("div", "", this.hint, ...maps, this.durations.element, element, this.pauses.element);
    panel.replaceChildren(this.none, this.body);
    /** @type {TimeGrid | null} */
    this.grid = null;
    /** @type {CellCounts} */
    this.counts = { samples: new Float64Array(0), values: new Float64Array(0) };
    /** How long samples and GC pauses lasted. @type {{samples: Durations | null, pauses: Durations | null}} */
    this.lasted = { samples: null, pauses: null };
    /** What the counts are of. @type {unknown[]} */
    this.counted = [];
    /** The values of stacks with a match; null without a search. @type {Float64Array | null} */
    this.matched = null;
    /** @type {unknown[]} */
    this.matchedFor = [];
    /** What the lanes were drawn for. @type {unknown[]} */
    this.drawnLanes = [];
    this.width = 0;
    this.dark = isDark();
    new ResizeObserver(() => {
      if (panel.clientWidth > 0 && this.body.clientWidth !== this.width && !panel.hidden) this.draw();
    }).observe(panel);
  }

  /** @param {State} state */
  update(state) {
    const { context } = this;
    const known = context.page.time !== null && context.untimed.length < context.columns(context.scope).length;
    this.none.hidden = known;
    this.body.hidden = !known;
    if (!known) this.none.textContent = reasonOf(context);
    else {
      this.draw();
      this.graph.update(state);
    }
  }

  /** Draws the maps. */
  draw() {
    const { page } = this.context;
    if (!page.time || this.body.hidden) return;
    this.width = this.body.clientWidth;
    const room = Math.max(LEAST_COLUMN, this.width - GUTTER - 4);
    const grid = new TimeGrid(page.time, Math.floor(room / LEAST_COLUMN));
    if (!this.grid || this.grid.cell !== grid.cell) this.grid = grid;
    this.count(this.grid);
    this.columnWidth = Math.min(WIDEST_COLUMN, room / this.grid.columns);
    this.drawMaps(this.grid);
  }

  /** @param {boolean} dark */
  recolor(dark) {
    if (dark === this.dark) return;
    this.dark = dark;
    this.draw();
  }

  /**
   * Counts cells, if others are to be shown than before.
   * @param {TimeGrid} grid
   */
  count(grid) {
    const { page, recorded, times, scope, event, thread, matches, tree } = this.context;
    const columns = recorded.columns(scope, event, thread);
    const counted = [scope.key, event, thread, grid];
    if (counted.some((one, at) => one !== this.counted[at])) {
      this.counts = countCells(times, columns, grid);
      const timed = page.events[event].unit === "nanoseconds";
      const gc = this.lanesOf(scope).filter(({ kind }) => kind === "gc");
      this.lasted = { samples: countDurations(times, columns, grid, timed), pauses: countSpans(gc, grid) };
      this.counted = counted;
      this.matchedFor = [];
    }
    if (matches !== this.matchedFor[0] || this.matchedFor.length === 0) {
      this.matched = matches && countMatches(times, columns, grid, tree, matches);
      this.matchedFor = [matches];
    }
  }

  /** @param {TimeGrid} grid */
  drawMaps(grid) {
    const { context, matched, dark, columnWidth = LEAST_COLUMN } = this;
    const { page, scope, event, range, otherRange, bands, state } = context;
    const { samples, values } = this.counts;
    const ramp = new Ramp(dark, matched !== null);
    const { top, largest } = topOf(values);
    const width = grid.columns * columnWidth;
    const perSecond = (columnWidth * SECOND) / grid.span;
    const mark = (/** @type {Range} */ one, /** @type {string} */ color) => ({ ...grid.cellsOf(one), color });
    const [first, second] = dark ? ["#ffffff", "#7fb2ff"] : ["#16191d", "#1f5fc4"];
    const marks = [...(range ? [mark(range, first)] : []), ...(otherRange ? [mark(otherRange, second)] : [])];
    // There may be many thousand spans, and a range changes none.
    const drawn = [scope.key, perSecond, width, dark];
    if (drawn.some((one, at) => one !== this.drawnLanes[at])) this.lanes.show(this.lanesOf(scope), perSecond, width, dark);
    this.drawnLanes = drawn;

    const ticks = ticksOf(grid, columnWidth);
    const empty = dark ? "#22272e" : "#eceef1";
    const rowHeight = Math.max(5, Math.floor(HEAT_HEIGHT / grid.rows));
    const each = grid.span / grid.rows;
    /** @type {[number, string][]} */
    const labels = [0, 0.25, 0.5, 0.75].map((part) => [part * grid.rows, `+${microsecondsText(part * grid.rows * each)}`]);
    labels[0][1] = "0";
    this.heat.show({
      columns: grid.columns, rows: grid.rows, rowHeight, columnWidth, labels, ticks, inTime: true, dark,
      cells: grid.at(grid.end - 1) + 1,
      color: (column, row) => {
        const cell = column * grid.rows + row;
        if (samples[cell] === 0) return "";
        if (!matched) return ramp.of(values[cell] / top);
        return matched[cell] > 0 ? ramp.of(matched[cell] / values[cell]) : empty;
      },
    }, marks);
    this.heat.element.dataset.cells = `${grid.columns} × ${grid.rows}`;

    const sums = new Float64Array(grid.columns);
    const found = new Float64Array(grid.columns);
    for (let cell = 0; cell < grid.count; cell++) {
      sums[Math.floor(cell / grid.rows)] += values[cell];
      if (matched) found[Math.floor(cell / grid.rows)] += matched[cell];
    }
    const highest = sums.reduce((one, other) => Math.max(one, other), 0);
    this.timeline.show({
      columns: grid.columns, rows: 1, rowHeight: TIMELINE_HEIGHT, columnWidth, ticks: [], inTime: true, dark,
      labels: [[1, perSecondText(context, highest, grid.span)]],
      height: (column) => sums[column] / (highest || 1),
      color: (column) => (sums[column] === 0 ? "" : matched ? ramp.of(found[column] / sums[column]) : ramp.of(0.42)),
    }, marks.map((one) => ({ ...one, from: one.from / grid.rows, to: one.to / grid.rows })));

    const info = page.events[event];
    const least = matched ? "no match" : "0";
    const most = `${quantity(top, info)}${top < largest ? " or more" : ""} in ${microsecondsText(grid.cell)}`;
    showRamp(this.ramp, ramp, least, matched ? "all samples of the cell" : most);
    this.hint.textContent =
      `A column is ${microsecondsText(grid.span)}, upwards in cells of ${microsecondsText(grid.cell)}. Drag over cells to see ` +
      `that range alone in every view; drag with Ctrl to compare two ranges.${page.clock && ` ${page.clock[0].toUpperCase()}${page.clock.slice(1)}.`}`;
    this.tell();

    const picture = { columns: grid.columns, columnWidth, ticks, dark };
    const across = range && { from: Math.floor(range.from / grid.span), to: Math.ceil(range.to / grid.span) - 1 };
    this.durations.show(this.lasted.samples, "Durations", picture, grid, across, bands, state.intensity);
    this.pauses.show(this.lasted.pauses, "GC pauses", picture, grid, across, null, state.intensity);
  }

  /**
   * What else is known of a scope by time.
   * @param {Scope} scope
   */
  lanesOf(scope) {
    const { page, scopes } = this.context;
    return page.lanes.filter(({ process }) => process === null || scopes.holds(scope, process));
  }

  /** @param {Cell} cell */
  cellOf({ column, row }) {
    return column * (this.grid?.rows ?? 1) + row;
  }

  /**
   * All time in two columns and between them.
   * @param {Cell} from
   * @param {Cell} to
   */
  columnsRange(from, to) {
    const rows = this.grid?.rows ?? 1;
    const [first, last] = [from.column, to.column].sort((a, b) => a - b);
    return this.grid?.rangeOf(first * rows, (last + 1) * rows - 1);
  }

  /**
   * The buckets that a span touches: buckets are of a range if they begin in it.
   * @param {number} from
   * @param {number} to
   * @returns {Range}
   */
  whole(from, to) {
    const { width } = /** @type {TimeInfo} */ (this.context.page.time);
    return { from: Math.floor(from / width) * width, to: Math.max(1, Math.ceil(to / width)) * width };
  }

  /**
   * Shows a range in every view, or compares it with the range that is shown.
   * @param {Range | undefined} range
   * @param {boolean} compared
   * @param {Bands | null} [bands] that are shown from now on
   */
  selectRange(range, compared, bands) {
    if (!range) return;
    const { context } = this;
    hideTooltip();
    const time = formatRange(range);
    if (compared && context.range) context.go({ view: "compare", time2: time, with: "" });
    else context.go({ time, time2: "", ...(bands ? { band: formatBands(bands) } : {}) });
  }

  /** Shows the whole recording again. */
  clear() {
    const { range, otherRange, bands } = this.context;
    if (!range && !otherRange && !bands) return false;
    this.context.go(ALL_TIME);
    return true;
  }

  /** Says what is selected. */
  tell() {
    const { profile, part, scope, recorded, event, thread } = this.context;
    const whole = recorded.amounts(scope, event, thread).amount;
    const amount = part ? profile.sum() : whole;
    const share = part ? [`${percent(amount, whole)} of the recording`] : [];
    const what = part || "The whole recording";
    this.note.replaceChildren(make("b", "", what), `: ${[...amounts(amount, profile.event), ...share].join(" · ")}`);
  }

  /**
   * Says what the keys' cursor is on.
   * @param {number} one
   * @param {number} other
   */
  tellCells(one, other) {
    if (!this.grid) return;
    const { samples } = this.counts;
    let sum = 0;
    for (let cell = Math.min(one, other); cell <= Math.max(one, other); cell++) sum += samples[cell];
    this.note.textContent = `${rangeText(this.grid.rangeOf(one, other))}: ${samplesText(sum)}. Enter selects.`;
  }

  /**
   * The tooltip of cells.
   * @param {number} cell the first
   * @param {number} count
   * @param {number} x client pixels
   * @param {number} y client pixels
   */
  showCell(cell, count, x, y) {
    const { grid, matched, context } = this;
    if (!grid) return;
    const sumOf = (/** @type {Float64Array} */ amounts) => amounts.subarray(cell, cell + count).reduce((sum, one) => sum + one, 0);
    const [samples, value] = [sumOf(this.counts.samples), sumOf(this.counts.values)];
    const info = context.page.events[context.event];
    /** @type {TooltipRow[]} */
    const rows = [["Samples", grouped(samples)]];
    if (info.unit !== "count") rows.push(["Amount", quantity(value, info)]);
    if (matched) rows.push(["Matched", percent(sumOf(matched), value)]);
    const { start } = /** @type {TimeInfo} */ (context.page.time);
    rows.push(["Clock", clockText(start + cell * grid.cell)]);
    showTip(rangeText(grid.rangeOf(cell, cell + count - 1)), rows, x, y);
  }
}

/** Durations over time: how many events of each band, or how much time. */
class DurationsMap {
  /**
   * @param {Context} context
   * @param {string} id
   * @param {(from: Cell, to: Cell) => void} select
   * @param {() => boolean} clear
   */
  constructor(context, id, select, clear) {
    this.context = context;
    this.title = make("span");
    this.frequency = make("button", "", "Frequency");
    this.intensity = make("button", "", "Intensity");
    this.frequency.title = "How many, each second";
    this.intensity.title = "How much time in all, each second";
    this.frequency.addEventListener("click", () => context.set({ intensity: false }));
    this.intensity.addEventListener("click", () => context.set({ intensity: true }));
    const choice = filled("div", "switch", this.frequency, this.intensity);
    choice.setAttribute("role", "group");
    choice.setAttribute("aria-label", "What colours show");
    this.ramp = make("p", "ramp");
    this.note = make("p", "time-note");
    this.note.setAttribute("aria-live", "polite");
    this.map = new CellMap(id, "Durations by time", {
      select,
      point: (cell, x, y) => {
        if (!cell) return hideTooltip();
        const [name, ...rows] = this.textsOf(cell);
        showTip(name, rows.map((text) => /** @type {TooltipRow} */ (text.split(": "))), x, y);
      },
      walk: (_, to) => (this.note.textContent = `${this.textsOf(to).join(", ")}. Enter selects.`),
      clear,
    });
    const foot = filled("div", "time-foot", this.ramp, this.note);
    this.element = filled("section", "durations", filled("div", "controls", filled("h3", "", this.title), choice), this.map.element, foot);
    this.element.hidden = true;
    /** @type {Durations | null} */
    this.durations = null;
    /** @type {TimeGrid | null} */
    this.grid = null;
  }

  /**
   * @param {Durations | null} durations nothing is shown without
   * @param {string} title
   * @param {Pick<CellPicture, "columns" | "columnWidth" | "ticks" | "dark">} picture
   * @param {TimeGrid} grid
   * @param {Range | null} across the columns of the range shown, both ends included
   * @param {Bands | null} bands shown
   * @param {boolean} intensity
   */
  show(durations, title, picture, grid, across, bands, intensity) {
    this.element.hidden = durations === null;
    this.durations = durations;
    this.grid = grid;
    if (!durations) return;
    const { least, bands: rows, events, time } = durations;
    this.title.textContent = title;
    this.frequency.setAttribute("aria-pressed", String(!intensity));
    this.intensity.setAttribute("aria-pressed", String(intensity));
    const shown = intensity ? time : events;
    const top = shown.reduce((one, other) => Math.max(one, other), 0);
    const ramp = new Ramp(picture.dark, false);
    /** @type {[number, string][]} */
    const labels = [];
    const step = Math.ceil(LEAST_LABEL / BAND_HEIGHT);
    for (let row = 0; row < rows; row += step) labels.push([row, least + row ? microsecondsText(2 ** (least + row - 1)) : "0"]);
    /** @type {Mark[]} */
    const marks = [];
    if (across || bands) {
      const columns = across ? /** @type {[number, number]} */ ([across.from, across.to]) : /** @type {[number, number]} */ ([0, grid.columns - 1]);
      const from = bands ? bands.least - least : 0;
      const to = bands ? bands.most - least : rows - 1;
      marks.push({ columns, rows: [from, to], color: picture.dark ? "#ffffff" : "#16191d" });
    }
    this.map.show({
      ...picture, rows, rowHeight: BAND_HEIGHT, labels, inTime: false,
      // A rare slow event is to be seen beside many fast ones.
      color: (column, row) => {
        const amount = shown[column * rows + row];
        return amount > 0 ? ramp.of(Math.sqrt(amount / top)) : "";
      },
    }, marks);
    const perSecond = (top * SECOND) / grid.span;
    showRamp(this.ramp, ramp, "0", intensity ? `${microsecondsText(perSecond)} a second` : `${countText(perSecond)} a second`);
    this.note.textContent = "";
  }

  /**
   * The bands of two cells and between them.
   * @param {Cell} from
   * @param {Cell} to
   * @returns {Bands | null} null where that is all
   */
  bandsOf(from, to) {
    const { least, bands } = this.durations ?? { least: 0, bands: 1 };
    const [low, high] = [from.row, to.row].sort((a, b) => a - b);
    return low === 0 && high === bands - 1 ? null : { least: least + low, most: least + high };
  }

  /**
   * What a cell has.
   * @param {Cell} cell
   */
  textsOf({ column, row }) {
    const { durations, grid } = this;
    if (!durations || !grid) return [];
    const at = column * durations.bands + row;
    const band = durations.least + row;
    return [
      bandsText({ least: band, most: band }),
      `Time: ${rangeText({ from: column * grid.span, to: (column + 1) * grid.span })}`,
      `Events: ${countText(durations.events[at])}`,
      `In all: ${microsecondsText(durations.time[at])}`,
    ];
  }
}

/**
 * Where ticks are, and what they say.
 * @param {TimeGrid} grid
 * @param {number} columnWidth
 * @returns {[number, string][]}
 */
function ticksOf(grid, columnWidth) {
  const perSecond = (columnWidth * SECOND) / grid.span;
  const step = TICK_STEPS.find((seconds) => seconds * perSecond >= LEAST_TICK) ?? TICK_STEPS[TICK_STEPS.length - 1];
  /** @type {[number, string][]} */
  const ticks = [];
  for (let second = 0; second * SECOND < grid.columns * grid.span; second += step) {
    ticks.push([(second * SECOND) / grid.span, `${second}\u202fs`]);
  }
  return ticks;
}

/**
 * @param {HTMLElement} element
 * @param {Ramp} ramp
 * @param {string} least
 * @param {string} most
 */
function showRamp(element, ramp, least, most) {
  const swatches = make("span", "swatches");
  for (let part = 0; part < 1; part += 0.125) {
    const swatch = make("i");
    swatch.style.background = ramp.of(part + 0.06);
    swatches.append(swatch);
  }
  element.replaceChildren(least, swatches, most);
}

/** @param {number} samples */
function samplesText(samples) {
  return `${countText(samples)} ${samples === 1 ? "sample" : "samples"}`;
}

/** @param {number} count */
function countText(count) {
  return count < 10 && !Number.isInteger(count) ? count.toFixed(1) : grouped(count);
}

/**
 * The height of the timeline: "1,234/s".
 * @param {Context} context
 * @param {number} most
 * @param {number} span
 */
function perSecondText({ page, event }, most, span) {
  const info = page.events[event];
  const perSecond = (most * SECOND) / span;
  return info.unit === "count" ? `${countText(perSecond)}/s` : `${quantity(perSecond, info)}/s`;
}

/**
 * The time of day, in UTC.
 * @param {number} microseconds since 1970
 */
function clockText(microseconds) {
  const moment = new Date(Math.floor(microseconds / 1000));
  return `${moment.toISOString().slice(11, 23)} UTC`;
}
