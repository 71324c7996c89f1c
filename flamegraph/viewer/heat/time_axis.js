// @ts-check
/** The axis of all that is drawn over time: as many columns as there is room for, and ticks. */

import { SECOND } from "../data/range.js";
import { TimeGrid } from "../data/time_grid.js";
import { GUTTER } from "./cell_map.js";

/** @import { TimeInfo } from "../data/page.js" */

/** In pixels. */
const [LEAST_COLUMN, WIDEST_COLUMN, LEAST_TICK, LEAST_STEP] = [4, 112, 64, 3];
/** Seconds between ticks. */
const TICK_STEPS = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14_400, 28_800, 86_400];

/**
 * The columns of a map with labels at its left, how wide a column and a second are in pixels, and where ticks are and
 * what they say.
 * @typedef {{grid: TimeGrid, columnWidth: number, perSecond: number, ticks: [column: number, text: string][]}} TimeAxis
 */

/** @typedef {{columns: number, span: number}} Steps `span` is in microseconds */

/**
 * @param {TimeInfo} time
 * @param {number} width of the map, in pixels
 * @param {number} [least] width of a column
 * @param {number} [widest]
 * @returns {TimeAxis}
 */
export function timeAxis(time, width, least = LEAST_COLUMN, widest = WIDEST_COLUMN) {
  const room = Math.max(least, width - GUTTER - 4);
  const grid = new TimeGrid(time, Math.floor(room / least));
  const columnWidth = Math.min(widest, room / grid.columns);
  return { grid, columnWidth, perSecond: (columnWidth * SECOND) / grid.span, ticks: ticksOf(grid, columnWidth) };
}

/**
 * @param {Steps} steps
 * @param {number} columnWidth
 */
function ticksOf({ columns, span }, columnWidth) {
  const perSecond = (columnWidth * SECOND) / span;
  const step = TICK_STEPS.find((seconds) => seconds * perSecond >= LEAST_TICK) ?? TICK_STEPS[TICK_STEPS.length - 1];
  /** @type {TimeAxis["ticks"]} */
  const ticks = [];
  for (let second = 0; second * SECOND < columns * span; second += step) ticks.push([(second * SECOND) / span, `${second}\u202fs`]);
  return ticks;
}

/**
 * As many columns as there is room for, each of some buckets, but not more than there are samples for.
 * @param {TimeInfo} time
 * @param {number} width of the map, in pixels
 * @param {number} most
 * @returns {{steps: Steps, columnWidth: number, ticks: TimeAxis["ticks"]}}
 */
export function fineAxis({ seconds, width: bucket }, width, most) {
  const room = Math.max(LEAST_STEP, width - GUTTER - 4);
  const buckets = Math.max(1, Math.ceil((seconds * SECOND) / bucket));
  const each = Math.ceil(buckets / Math.max(1, Math.min(most, room / LEAST_STEP)));
  const steps = { columns: Math.ceil(buckets / each), span: each * bucket };
  const columnWidth = room / steps.columns;
  return { steps, columnWidth, ticks: ticksOf(steps, columnWidth) };
}

/**
 * A line of steps, each for the width of a bucket, with gaps where nothing is known.
 * @param {(number | null)[]} values by bucket
 * @param {number} step width of a bucket, in pixels
 * @param {number} width of the recording
 * @param {(value: number) => number} y where a value is, in pixels
 */
export function stepsOf(values, step, width, y) {
  const path = new Path2D();
  let open = false;
  values.forEach((value, at) => {
    if (value !== null) {
      const [from, height] = [GUTTER + Math.min(width, at * step), y(value)];
      if (open) path.lineTo(from, height);
      else path.moveTo(from, height);
      path.lineTo(GUTTER + Math.min(width, (at + 1) * step), height);
    }
    open = value !== null;
  });
  return path;
}
