// @ts-check
/** Time as a grid of cells: columns of a second or more, in each the cells upwards. What each cell has. */

import { bandOf, SECOND } from "./range.js";

/** @import { Columns } from "./method_costs.js" */
/** @import { Shape } from "./profile.js" */
/** @import { Range } from "./range.js" */
/** @import { Lane, TimeInfo } from "./page.js" */
/** @import { Matches } from "./search.js" */
/** @import { Times } from "./times.js" */

/** Cells of a second that is told apart as finely as usual, and else. */
const [ROWS, FEWER_ROWS] = [50, 25];
/** The middle of a band of durations, as a part of its upper end. */
const MIDDLE = 0.75;

/** Cells are numbered in the order of time: column by column, from the bottom up. */
export class TimeGrid {
  /**
   * @param {TimeInfo} time
   * @param {number} most columns that there is room for
   */
  constructor({ seconds, width }, most) {
    /** Cells of a column. */
    this.rows = width * ROWS <= SECOND ? ROWS : FEWER_ROWS;
    const length = Math.max(1, Math.ceil(seconds * SECOND));
    /** Length of a cell, in microseconds. */
    this.cell = width;
    while (Math.ceil(length / (this.cell * this.rows)) > Math.max(1, most)) this.cell *= 2;
    /** Length of a column. */
    this.span = this.cell * this.rows;
    this.columns = Math.ceil(length / this.span);
    this.count = this.columns * this.rows;
    /** When the recording ends. */
    this.end = length;
  }

  /**
   * The cell of a moment.
   * @param {number} time
   */
  at(time) {
    return Math.floor(time / this.cell);
  }

  /**
   * From the beginning of one cell to the end of another, in any order.
   * @param {number} one
   * @param {number} other
   * @returns {Range}
   */
  rangeOf(one, other) {
    return { from: Math.min(one, other) * this.cell, to: (Math.max(one, other) + 1) * this.cell };
  }

  /**
   * All time in two columns, in any order, and between them.
   * @param {number} one
   * @param {number} other
   * @returns {Range}
   */
  rangeOfColumns(one, other) {
    return { from: Math.min(one, other) * this.span, to: (Math.max(one, other) + 1) * this.span };
  }

  /**
   * The cells that a range touches: the first, and one past the last.
   * @param {Range} range
   */
  cellsOf({ from, to }) {
    return { from: Math.floor(from / this.cell), to: Math.ceil(to / this.cell) };
  }
}

/** Which nodes of a column count; null for all. @typedef {(column: number) => ((node: number) => boolean) | null} Counted */
/** Samples and value of each cell. @typedef {{samples: Float64Array, values: Float64Array}} CellCounts */

/**
 * @param {Times} times
 * @param {Columns} columns
 * @param {TimeGrid} grid
 * @param {Counted} counted
 * @returns {CellCounts}
 */
export function countCells(times, columns, grid, counted) {
  const samples = new Float64Array(grid.count);
  const values = new Float64Array(grid.count);
  for (const { column, weight } of columns) {
    const table = times.of(column);
    const counts = counted(column);
    if (!table) continue;
    for (let bucket = 0; bucket < table.buckets.length; bucket++) {
      const cell = grid.at(table.beginOf(bucket));
      if (cell >= grid.count) break;
      if (!counts) {
        samples[cell] += table.counts[bucket];
        values[cell] += table.amountOf(bucket) * weight;
        continue;
      }
      for (let row = table.first[bucket]; row < table.first[bucket + 1]; row++) {
        if (!counts(table.node[row])) continue;
        samples[cell] += table.samples[row];
        values[cell] += table.valueOf(row) * weight;
      }
    }
  }
  return { samples, values };
}

/**
 * What each column of the grid has of each category: the columns' numbers by category, one after the other.
 * @param {Times} times
 * @param {Columns} columns
 * @param {{columns: number, span: number}} grid
 * @param {(column: number) => Uint8Array} categories of a column's nodes
 * @param {number} count of categories
 * @param {Counted} counted
 */
export function countCategories(times, columns, grid, categories, count, counted) {
  const values = new Float64Array(grid.columns * count);
  for (const { column, weight } of columns) {
    const table = times.of(column);
    if (!table) continue;
    const of = categories(column);
    const counts = counted(column);
    for (let bucket = 0; bucket < table.buckets.length; bucket++) {
      const at = Math.floor(table.beginOf(bucket) / grid.span) * count;
      if (at >= values.length) break;
      for (let row = table.first[bucket]; row < table.first[bucket + 1]; row++) {
        if (!counts || counts(table.node[row])) values[at + of[table.node[row]]] += table.valueOf(row) * weight;
      }
    }
  }
  return values;
}

/**
 * The value of each cell in stacks with a match.
 * @param {Times} times
 * @param {Columns} columns
 * @param {TimeGrid} grid
 * @param {Shape} tree
 * @param {Matches} matches
 * @param {Counted} counted
 */
export function countMatches(times, columns, grid, { name, parent, count }, matches, counted) {
  // Everything below a match matches.
  const within = new Uint8Array(count);
  for (let node = 1; node < count; node++) within[node] = matches[name[node]] | within[parent[node]];
  const values = new Float64Array(grid.count);
  for (const { column, weight } of columns) {
    const table = times.of(column);
    const counts = counted(column);
    if (!table) continue;
    const { buckets, first, node } = table;
    for (let bucket = 0; bucket < buckets.length; bucket++) {
      const cell = grid.at(table.beginOf(bucket));
      if (cell >= grid.count) break;
      for (let row = first[bucket]; row < first[bucket + 1]; row++) {
        if (within[node[row]] && (!counts || counts(node[row]))) values[cell] += table.valueOf(row) * weight;
      }
    }
  }
  return values;
}

/**
 * Events by column of the grid and band of durations, from the shortest that occurs: how many, and how long in all, in
 * microseconds.
 * @typedef {{least: number, bands: number, events: Float64Array, time: Float64Array}} Durations
 */

/** As many as a band's byte can say. */
const MOST_BANDS = 256;

class DurationsBuilder {
  /** @param {TimeGrid} grid */
  constructor(grid) {
    this.grid = grid;
    /** By column and band. */
    this.events = new Float64Array(grid.columns * MOST_BANDS);
    this.time = new Float64Array(grid.columns * MOST_BANDS);
    this.least = MOST_BANDS;
    this.most = -1;
  }

  /**
   * @param {number} begin
   * @param {number} band
   * @param {number} events
   * @param {number} time
   */
  add(begin, band, events, time) {
    const { columns, span } = this.grid;
    const column = Math.floor(begin / span);
    if (column >= columns) return;
    this.least = Math.min(this.least, band);
    this.most = Math.max(this.most, band);
    this.events[column * MOST_BANDS + band] += events;
    this.time[column * MOST_BANDS + band] += time;
  }

  /** @returns {Durations | null} null without any */
  finish() {
    const { grid, least, most } = this;
    if (most < 0) return null;
    const bands = most - least + 1;
    const [events, time] = [this.events, this.time].map((all) =>
      Float64Array.from({ length: grid.columns * bands }, (_, at) => all[Math.floor(at / bands) * MOST_BANDS + least + (at % bands)]));
    return { least, bands, events, time };
  }
}

/**
 * The durations of an event's samples.
 * @param {Times} times
 * @param {Columns} columns
 * @param {TimeGrid} grid
 * @param {boolean} timed whether the event's value is time, in nanoseconds
 * @param {Counted} counted
 */
export function countDurations(times, columns, grid, timed, counted) {
  const builder = new DurationsBuilder(grid);
  for (const { column, weight } of columns) {
    const table = times.of(column);
    if (!table?.bands) continue;
    const counts = counted(column);
    const { buckets, first, node, bands, samples, amounts } = table;
    for (let bucket = 0; bucket < buckets.length; bucket++) {
      for (let row = first[bucket]; row < first[bucket + 1]; row++) {
        if (counts && !counts(node[row])) continue;
        const band = bands[row];
        const time = timed && amounts ? amounts[row] / 1000 : samples[row] * MIDDLE * 2 ** band;
        builder.add(table.beginOf(bucket), band, samples[row] * weight, time * weight);
      }
    }
  }
  return builder.finish();
}

/**
 * The durations of spans, by when they ended.
 * @param {Lane[]} lanes
 * @param {TimeGrid} grid
 */
export function countSpans(lanes, grid) {
  const builder = new DurationsBuilder(grid);
  for (const { spans } of lanes) {
    for (const [from, to] of spans) {
      const time = (to - from) * SECOND;
      if (time > 0) builder.add(Math.max(0, to * SECOND), bandOf(time), 1, time);
    }
  }
  return builder.finish();
}
