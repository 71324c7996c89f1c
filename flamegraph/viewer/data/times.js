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
    /** The buckets with samples, by number. A column has few samples in each: these arrays take as much as the rows. */
    this.buckets = new Uint32Array(distinct);
    this.start = start;
    this.width = width;
    /** The first row of each, and the number of rows. */
    this.first = new Uint32Array(distinct + 1).fill(rows);
    /** How many samples each has, and what they amount to, if each sample has its own amount. */
    this.counts = new Uint32Array(distinct);
    this.values = amounts && new Float64Array(distinct);
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
        this.buckets[++at] = bucket;
        this.first[at] = row;
      }
      node += moves.varint();
      if (node >= count) throw damaged("an unknown node");
      this.node[row] = node;
      this.counts[at] += this.samples[row];
      if (this.values && this.amounts) this.values[at] += this.amounts[row];
      taken += this.samples[row];
    }
    steps.end();
    moves.end();
    /** What a sample stands for. */
    this.per = taken ? total / taken : 0;
  }

  /**
   * When a bucket begins.
   * @param {number} at its place among those with samples
   */
  beginOf(at) {
    return this.start + this.buckets[at] * this.width;
  }

  /**
   * What a bucket amounts to.
   * @param {number} at
   */
  amountOf(at) {
    return this.values ? this.values[at] : this.counts[at] * this.per;
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
    if (!range) return [0, this.buckets.length];
    return [range.from, range.to].map((time) => {
      let [low, high] = [0, this.buckets.length];
      while (low < high) {
        const middle = (low + high) >> 1;
        if (this.beginOf(middle) < time) low = middle + 1;
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
    /** For adding up the rows of a column: by node, and the nodes that have any. */
    this.sums = new Float64Array(0);
    this.met = new Int32Array(0);
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
   * Calls `entry` for each node that the column has a value of in the selection, in their order.
   * @param {number} column
   * @param {Selection} selection
   * @param {(node: number, value: number) => void} entry
   */
  eachEntry(column, selection, entry) {
    const table = this.of(column);
    if (table) this.inOrder(this.tree.count, (add) => table.eachRow(selection, add), entry);
  }

  /**
   * Adds up values by node, and calls `entry` for each node that has any, in their order.
   * @param {number} nodes that there may be
   * @param {(add: (node: number, value: number) => void) => void} each
   * @param {(node: number, value: number) => void} entry
   */
  inOrder(nodes, each, entry) {
    if (this.sums.length < nodes) [this.sums, this.met] = [new Float64Array(nodes), new Int32Array(nodes)];
    const { sums, met } = this;
    let count = 0;
    each((node, value) => {
      if (value > 0 && sums[node] === 0) met[count++] = node;
      sums[node] += value;
    });
    for (const node of met.subarray(0, count).sort()) {
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
    else for (let [at, to] = table.bucketsIn(selection); at < to; at++) sum += table.amountOf(at);
    return sum;
  }
}
