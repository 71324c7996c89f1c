// @ts-check
/** When samples were taken: each column's samples in time, unpacked when they are first asked for. */

import { damaged } from "./tree.js";

/** @import { Selection } from "./range.js" */
/** @import { PackedTimes, Tree } from "./tree.js" */

/** The samples of a column, in the order of time. A row is of one stack in one bucket, and of one band of durations. */
export class TimeTable {
  /**
   * @param {PackedTimes} packed
   * @param {number} count of nodes
   * @param {number} total of the column
   */
  constructor({ start, width, rows, buckets, nodes, samples, amounts, bands }, count, total) {
    this.node = new Int32Array(rows);
    this.samples = new Uint32Array(rows);
    /** Without them each sample stands for the same. */
    this.amounts = amounts && new Float64Array(rows);
    this.bands = bands && new Uint8Array(rows);
    samples.copy().unpack(this.samples);
    if (this.amounts) amounts?.copy().unpack(this.amounts);
    if (this.bands) bands?.copy().unpack(this.bands);
    let distinct = 0;
    for (let steps = buckets.copy(), at = 0; at < rows; at++) if (steps.varint() > 0 || at === 0) distinct++;
    /** When each bucket begins; only those with samples. */
    this.begins = new Float64Array(distinct);
    /** The first row of each, and the number of rows. */
    this.first = new Int32Array(distinct + 1).fill(rows);
    /** What each has in all: samples, and value. */
    this.counts = new Float64Array(distinct);
    this.values = new Float64Array(distinct);
    const [steps, moves] = [buckets.copy(), nodes.copy()];
    let bucket = 0;
    let node = 0;
    let at = -1;
    let taken = 0;
    for (let row = 0; row < rows; row++) {
      const step = steps.varint();
      if (step > 0 || row === 0) {
        bucket += step;
        node = 0;
        this.begins[++at] = start + bucket * width;
        this.first[at] = row;
      }
      node += moves.varint();
      if (node >= count) throw damaged("an unknown node");
      this.node[row] = node;
      this.counts[at] += this.samples[row];
      taken += this.samples[row];
    }
    steps.end();
    moves.end();
    /** What a sample stands for. */
    this.per = taken ? total / taken : 0;
    for (let at = 0; at < distinct; at++) {
      if (!this.amounts) this.values[at] = this.counts[at] * this.per;
      else for (let row = this.first[at]; row < this.first[at + 1]; row++) this.values[at] += this.amounts[row];
    }
  }

  /** @param {number} row */
  valueOf(row) {
    return this.amounts ? this.amounts[row] : this.samples[row] * this.per;
  }

  /**
   * The buckets that begin in the selection's range: the first, and one past the last.
   * @param {Selection} selection
   */
  bucketsIn({ range }) {
    if (!range) return [0, this.begins.length];
    return [range.from, range.to].map((time) => {
      let [low, high] = [0, this.begins.length];
      while (low < high) {
        const middle = (low + high) >> 1;
        if (this.begins[middle] < time) low = middle + 1;
        else high = middle;
      }
      return low;
    });
  }

  /**
   * Calls `entry` for each row of the selection, in the order of time.
   * @param {Selection} selection
   * @param {(node: number, value: number) => void} entry
   */
  eachRow(selection, entry) {
    const [from, to] = this.bucketsIn(selection).map((bucket) => this.first[bucket]);
    const { node, bands } = this;
    const { least, most } = selection.bands ?? { least: 0, most: Infinity };
    for (let row = from; row < to; row++) {
      // Of events without durations a band has nothing.
      if (selection.bands && !(bands && bands[row] >= least && bands[row] <= most)) continue;
      entry(node[row], this.valueOf(row));
    }
  }
}

export class Times {
  /** @param {Tree} tree */
  constructor(tree) {
    this.tree = tree;
    /** @type {Map<number, TimeTable>} */
    this.tables = new Map();
    /** For adding up the rows of a column. */
    this.sums = new Float64Array(0);
  }

  /**
   * The samples of a column in time; null if it is not known when they were taken.
   * @param {number} column
   */
  of(column) {
    const known = this.tables.get(column);
    const packed = this.tree.times.get(column);
    if (known || !packed) return known ?? null;
    let total = 0;
    this.tree.eachEntry(column, (_, value) => (total += value));
    const table = new TimeTable(packed, this.tree.count, total);
    this.tables.set(column, table);
    return table;
  }

  /**
   * Adds a column's self values in the selection, times a weight, to an entry a node; returns their sum without the weight.
   * @param {number} column
   * @param {Selection} selection
   * @param {number} weight
   * @param {Float64Array} self
   */
  addTo(column, selection, weight, self) {
    let sum = 0;
    this.of(column)?.eachRow(selection, (node, value) => {
      self[node] += value * weight;
      sum += value;
    });
    return sum;
  }

  /**
   * Calls `entry` for each node that the column has a value of in the selection, in their order.
   * @param {number} column
   * @param {Selection} selection
   * @param {(node: number, value: number) => void} entry
   */
  eachEntry(column, selection, entry) {
    if (this.sums.length === 0) this.sums = new Float64Array(this.tree.count);
    const { sums } = this;
    /** @type {number[]} */
    const met = [];
    this.of(column)?.eachRow(selection, (node, value) => {
      if (value > 0 && sums[node] === 0) met.push(node);
      sums[node] += value;
    });
    for (const node of Int32Array.from(met).sort()) {
      entry(node, sums[node]);
      sums[node] = 0;
    }
  }

  /**
   * @param {number} column
   * @param {Selection} selection
   */
  sumOf(column, selection) {
    const table = this.of(column);
    let sum = 0;
    if (!table) return sum;
    if (selection.bands) table.eachRow(selection, (_, value) => (sum += value));
    else for (let [at, to] = table.bucketsIn(selection); at < to; at++) sum += table.values[at];
    return sum;
  }
}
