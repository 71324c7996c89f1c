// @ts-check
/** When samples were taken: lanes, heat map and timeline on one axis, maps of durations, the flame graph of the range. */

import { filled, make } from "../controls/dom.js";
import { isDark } from "../controls/theme.js";
import { amounts, countOf, grouped, percent, quantity } from "../data/format.js";
import { formatBands, formatRange, microsecondsText, rangeText, SECOND } from "../data/range.js";
import { countCells, countDurations, countMatches, countSpans } from "../data/time_grid.js";
import { hideTooltip, showTip } from "../graph/frame_details.js";
import { ScopeGraph } from "../graph/scope_graph.js";
import { CellMap } from "../heat/cell_map.js";
import { Curves } from "../heat/curves.js";
import { DurationsMap } from "../heat/durations_map.js";
import { Lanes } from "../heat/lanes.js";
import { Ramp, showRamp, topOf } from "../heat/ramp.js";
import { ThreadTracks } from "../heat/thread_tracks.js";
import { timeAxis } from "../heat/time_axis.js";

/** @import { Context, View } from "../controls/context.js" */
/** @import { TimeInfo } from "../data/page.js" */
/** @import { Bands, Range } from "../data/range.js" */
/** @import { Scope } from "../data/scopes.js" */
/** @import { State } from "../data/state.js" */
/** @import { CellCounts, Durations, TimeGrid } from "../data/time_grid.js" */
/** @import { TooltipRow } from "../graph/frame_details.js" */
/** @import { Cell } from "../heat/cell_map.js" */
/** @import { MapPicture } from "../heat/durations_map.js" */
/** @import { TimeAxis } from "../heat/time_axis.js" */
/** Of cells in the order of time. @typedef {{from: number, to: number, color: string}} TimeMark */

/** In pixels. */
const [HEAT_HEIGHT, TIMELINE_HEIGHT] = [300, 40];
/** How strong a bar of the timeline is. */
const BAR = 0.42;

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
      ({ lane, from, to, label }) => {
        const range = { from: Math.round(from * SECOND), to: Math.round(to * SECOND) };
        const lasted = microsecondsText(range.to - range.from);
        this.note.textContent = `${label || lane.name}: ${rangeText(range)}, ${lasted}. Enter selects.`;
      },
    );
    const clear = () => context.clearTime();
    this.heat = new CellMap("heat", "Heat map of samples by time", {
      select: (from, to, compared) => this.selectRange(this.grid?.rangeOf(this.cellOf(from), this.cellOf(to)), compared),
      point: (cell, x, y) => (cell ? this.showCell(this.cellOf(cell), 1, x, y) : hideTooltip()),
      walk: (from, to) => this.tellCells(this.cellOf(from), this.cellOf(to)),
      clear,
    });
    const rows = () => this.grid?.rows ?? 1;
    this.timeline = new CellMap("timeline", "Samples by time", {
      select: (from, to, compared) => this.selectRange(this.grid?.rangeOfColumns(from.column, to.column), compared),
      point: (cell, x, y) => (cell ? this.showCell(cell.column * rows(), rows(), x, y) : hideTooltip()),
      walk: (from, to) => this.tellCells(from.column * rows(), (to.column + 1) * rows() - 1),
      clear,
    });
    this.ramp = make("p", "ramp");
    this.note = make("p", "time-note");
    this.note.id = "time-note";
    this.note.setAttribute("aria-live", "polite");
    this.durations = new DurationsMap(context, "durations", "Durations", (from, to) => {
      this.selectRange(this.grid?.rangeOfColumns(from.column, to.column), false, this.durations.bandsOf(from, to));
    }, clear);
    this.pauses = new DurationsMap(context, "pauses", "GC pauses", (from, to) => {
      this.selectRange(this.grid?.rangeOfColumns(from.column, to.column), false);
    }, clear);
    const flames = make("div");
    this.graph = new ScopeGraph(context, flames, "time-graph");
    const foot = filled("div", "time-foot", this.ramp, this.note);
    this.curves = new Curves();
    const maps = [this.curves.element, this.lanes.element, this.heat.element, this.timeline.element, foot];
    this.tracks = new ThreadTracks(context);
    this.body = filled("div", "", this.hint, ...maps, this.tracks.element, this.durations.element, flames, this.pauses.element);
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
    const axis = timeAxis(page.time, this.width);
    if (!this.grid || this.grid.cell !== axis.grid.cell) this.grid = axis.grid;
    this.count(this.grid);
    this.drawMaps(this.grid, axis);
    this.tracks.show(this.width, this.dark);
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
    const { page, recorded, numbers, times, scope, event, thread, category, matches, source } = this.context;
    const columns = recorded.columns(scope, event, thread);
    const counted = [scope.key, event, thread, category, recorded, grid];
    const chosen = (/** @type {number} */ column) => numbers.chosenIn(column);
    if (counted.some((one, at) => one !== this.counted[at])) {
      this.counts = countCells(times, columns, grid, chosen);
      const timed = page.events[event].unit === "nanoseconds";
      const gc = this.lanesOf(scope).filter(({ kind }) => kind === "gc");
      this.lasted = { samples: countDurations(times, columns, grid, timed, chosen), pauses: countSpans(gc, grid) };
      this.counted = counted;
      this.matchedFor = [];
    }
    if (matches !== this.matchedFor[0] || this.matchedFor.length === 0) {
      this.matched = matches && countMatches(times, columns, grid, source, matches, chosen);
      this.matchedFor = [matches];
    }
  }

  /**
   * @param {TimeGrid} grid
   * @param {TimeAxis} axis
   */
  drawMaps(grid, { columnWidth, perSecond, ticks }) {
    const { context, dark } = this;
    const { page, scope, range, otherRange, bands, state } = context;
    const width = grid.columns * columnWidth;
    // There may be many thousand spans, and a range changes none.
    const drawn = [scope.key, perSecond, width, dark];
    if (drawn.some((one, at) => one !== this.drawnLanes[at])) {
      this.curves.show(page.curves, perSecond, width, dark);
      this.lanes.show(this.lanesOf(scope), perSecond, width, dark);
    }
    this.drawnLanes = drawn;

    const mark = (/** @type {Range} */ one, /** @type {string} */ color) => ({ ...grid.cellsOf(one), color });
    const [first, second] = dark ? ["#ffffff", "#7fb2ff"] : ["#16191d", "#1f5fc4"];
    const marks = [...(range ? [mark(range, first)] : []), ...(otherRange ? [mark(otherRange, second)] : [])];
    const picture = { columns: grid.columns, columnWidth, ticks, dark };
    const ramp = new Ramp(dark, this.matched !== null);
    this.drawHeat(grid, picture, ramp, marks);
    this.drawTimeline(grid, picture, ramp, marks);
    this.hint.textContent =
      `A column is ${microsecondsText(grid.span)}, upwards in cells of ${microsecondsText(grid.cell)}. Drag over cells to see ` +
      `that range alone in every view; drag with Ctrl to compare two ranges.${page.clock && ` ${page.clock[0].toUpperCase()}${page.clock.slice(1)}.`}`;
    this.tell();
    const across = range && { from: Math.floor(range.from / grid.span), to: Math.ceil(range.to / grid.span) - 1 };
    this.durations.show(this.lasted.samples, picture, grid, across, bands, state.intensity);
    this.pauses.show(this.lasted.pauses, picture, grid, across, null, state.intensity);
  }

  /**
   * @param {TimeGrid} grid
   * @param {MapPicture} picture
   * @param {Ramp} ramp
   * @param {TimeMark[]} marks
   */
  drawHeat(grid, picture, ramp, marks) {
    const { matched, dark } = this;
    const { samples, values } = this.counts;
    const { top, largest } = topOf(values);
    const empty = dark ? "#22272e" : "#eceef1";
    /** @type {[number, string][]} */
    const labels = [0, 0.25, 0.5, 0.75].map((part) => [part * grid.rows, `+${microsecondsText(part * grid.span)}`]);
    labels[0][1] = "0";
    this.heat.show({
      ...picture, rows: grid.rows, rowHeight: Math.max(5, Math.floor(HEAT_HEIGHT / grid.rows)), labels, inTime: true,
      cells: grid.at(grid.end - 1) + 1,
      color: (column, row) => {
        const cell = column * grid.rows + row;
        if (samples[cell] === 0) return "";
        if (!matched) return ramp.of(values[cell] / top);
        return matched[cell] > 0 ? ramp.of(matched[cell] / values[cell]) : empty;
      },
    }, marks);
    this.heat.element.dataset.cells = `${grid.columns} × ${grid.rows}`;
    const { page, event } = this.context;
    const most = `${quantity(top, page.events[event])}${top < largest ? " or more" : ""} in ${microsecondsText(grid.cell)}`;
    if (matched) showRamp(this.ramp, ramp, "no match", "all samples of the cell");
    else showRamp(this.ramp, ramp, "0", most);
  }

  /**
   * @param {TimeGrid} grid
   * @param {MapPicture} picture
   * @param {Ramp} ramp
   * @param {TimeMark[]} marks
   */
  drawTimeline(grid, picture, ramp, marks) {
    const { matched, context } = this;
    const sums = new Float64Array(grid.columns);
    const found = new Float64Array(grid.columns);
    for (let cell = 0; cell < grid.count; cell++) {
      sums[Math.floor(cell / grid.rows)] += this.counts.values[cell];
      if (matched) found[Math.floor(cell / grid.rows)] += matched[cell];
    }
    const highest = sums.reduce((one, other) => Math.max(one, other), 0);
    this.timeline.show({
      ...picture, rows: 1, rowHeight: TIMELINE_HEIGHT, ticks: [], inTime: true,
      labels: [[1, perSecondText(context, highest, grid.span)]],
      height: (column) => sums[column] / (highest || 1),
      color: (column) => (sums[column] === 0 ? "" : matched ? ramp.of(found[column] / sums[column]) : ramp.of(BAR)),
    }, marks.map((one) => ({ ...one, from: one.from / grid.rows, to: one.to / grid.rows })));
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
   * @param {Bands | null} [bands] that are shown from now on, null for all; else they stay
   */
  selectRange(range, compared, bands) {
    if (!range) return;
    const { context } = this;
    hideTooltip();
    const time = formatRange(range);
    if (compared && context.range) context.go({ view: "compare", time2: time, with: "" });
    else context.go({ time, time2: "", ...(bands === undefined ? {} : { band: bands ? formatBands(bands) : "" }) });
  }

  /** Says what is selected. */
  tell() {
    const { profile, part, scope, recorded, event, thread, idleHidden } = this.context;
    const whole = recorded.amounts(scope, event, thread).amount;
    const amount = part ? profile.sum() : whole;
    const share = part ? [`${percent(amount, whole)} of the recording`] : [];
    const what = [part || "The whole recording", idleHidden].filter(Boolean).join(", ");
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

/** @param {number} samples */
function samplesText(samples) {
  return `${countOf(samples)} ${samples === 1 ? "sample" : "samples"}`;
}

/**
 * The height of the timeline: "1,234/s".
 * @param {Context} context
 * @param {number} most
 * @param {number} span
 */
export function perSecondText({ page, event }, most, span) {
  const info = page.events[event];
  const perSecond = (most * SECOND) / span;
  return info.unit === "count" ? `${countOf(perSecond)}/s` : `${quantity(perSecond, info)}/s`;
}

/**
 * The time of day, in UTC.
 * @param {number} microseconds since 1970
 */
function clockText(microseconds) {
  const moment = new Date(Math.floor(microseconds / 1000));
  return `${moment.toISOString().slice(11, 23)} UTC`;
}
