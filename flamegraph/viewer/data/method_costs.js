// @ts-check
/**
 * What columns spend on each method, read in the background.
 *
 * Only nodes that the columns have something of are visited, and those above them: a process has a small part of the
 * cluster's tree.
 */

import { outermostOf } from "./methods.js";

/** @import { Tree } from "./tree.js" */

/** After so many milliseconds of work the page gets its turn. */
const TURN = 8;

/**
 * Does all of it, unless it is stopped.
 * @param {Iterator<void>} work yields so that other work can run
 * @param {() => boolean} stopped
 * @returns {Promise<boolean>} whether all was done
 */
export async function inTurns(work, stopped) {
  // A hidden page is not drawn, and may read on.
  if (!document.hidden) await new Promise((drawn) => requestAnimationFrame(drawn));
  for (let turn = true; turn; ) {
    await new Promise((resolve) => setTimeout(resolve));
    if (stopped()) return false;
    turn = isLeft(work);
  }
  return true;
}

/**
 * One turn.
 * @param {Iterator<void>} work
 * @returns {boolean} whether anything is left to do
 */
function isLeft(work) {
  const begin = performance.now();
  do {
    if (work.next().done) return false;
  } while (performance.now() - begin < TURN);
  return true;
}

/** Entries in one turn. */
const ENTRIES_AT_ONCE = 1000;

export class MethodCosts {
  /** @param {Tree} tree */
  constructor(tree) {
    this.tree = tree;
    this.outermost = outermostOf(tree);
    /** By name: what it costs itself, and with all it calls. */
    this.own = new Float64Array(tree.names.length);
    this.all = new Float64Array(tree.names.length);
    /** The names that cost anything. */
    this.found = new Int32Array(tree.names.length);
    this.count = 0;
    this.whole = 0;
    /** What was summed up below the open frame of each depth. */
    this.below = new Float64Array(deepestOf(tree) + 1);
    this.entries = new Runs();
  }

  /** The names that cost anything. */
  get names() {
    return this.found.subarray(0, this.count);
  }

  /**
   * Adds up these columns alone; yields so that other work can run.
   * @param {{column: number, weight: number}[]} columns
   */
  *read(columns) {
    for (const name of this.names) this.own[name] = this.all[name] = 0;
    this.count = 0;
    const { entries } = this;
    entries.clear();
    for (const { column, weight } of columns) entries.add(this.tree.unpack(column), weight);
    entries.merge();
    yield;
    for (let from = 0; from < entries.count; from += ENTRIES_AT_ONCE) {
      this.walk(from, Math.min(entries.count, from + ENTRIES_AT_ONCE));
      yield;
    }
    if (entries.count > 0) this.close(entries.nodes[entries.count - 1], this.tree.count);
    this.whole = this.below[0];
    this.below[0] = 0;
  }

  /**
   * Entries stand in preorder: what is below a frame is summed up while it is open, and goes to its parent as it
   * closes. So each frame is looked at once, however deep the tree is.
   * @param {number} from
   * @param {number} to
   */
  walk(from, to) {
    const { own, below } = this;
    const { nodes, values } = this.entries;
    const { name, depth, end } = this.tree;
    for (let i = from; i < to; i++) {
      const node = nodes[i];
      if (i > 0 && end[nodes[i - 1]] <= node) this.close(nodes[i - 1], node);
      below[depth[node]] += values[i];
      if (node > 0) own[name[node]] += values[i];
    }
  }

  /**
   * Closes frames from the innermost outwards, up to one that the next node is in.
   * @param {number} last the innermost
   * @param {number} next
   */
  close(last, next) {
    const { all, below, outermost, found } = this;
    const { name, parent, depth, end } = this.tree;
    let cost = 0;
    let at = last;
    let level = depth[last];
    for (; at > 0 && end[at] <= next; at = parent[at]) {
      cost += below[level];
      below[level--] = 0;
      if (outermost[at] !== 1) continue;
      if (all[name[at]] === 0) found[this.count++] = name[at];
      all[name[at]] += cost;
    }
    below[level] += cost;
  }
}

/** Entries of columns, each of them in the order of the nodes, that become one list in that order. */
class Runs {
  constructor() {
    this.nodes = new Int32Array(0);
    this.values = new Float64Array(0);
    this.spare = { nodes: this.nodes, values: this.values };
    this.count = 0;
    /** Where each run ends. @type {number[]} */
    this.ends = [];
  }

  clear() {
    this.count = 0;
    this.ends = [];
  }

  /**
   * @param {{count: number, nodes: Int32Array, values: Float64Array}} column
   * @param {number} weight
   */
  add({ count, nodes, values }, weight) {
    const from = this.count;
    this.count += count;
    if (this.count > this.nodes.length) this.widen(Math.ceil(this.count * 1.5));
    for (let i = 0; i < count; i++) {
      this.nodes[from + i] = nodes[i];
      this.values[from + i] = values[i] * weight;
    }
    this.ends.push(this.count);
  }

  /** @param {number} room */
  widen(room) {
    const { nodes, values } = this;
    this.nodes = new Int32Array(room);
    this.values = new Float64Array(room);
    this.nodes.set(nodes);
    this.values.set(values);
  }

  /** Puts neighbours together until there is one. */
  merge() {
    const room = this.nodes.length;
    const few = this.ends.length < 2 || this.spare.nodes.length >= room;
    if (!few) this.spare = { nodes: new Int32Array(room), values: new Float64Array(room) };
    while (this.ends.length > 1) {
      /** @type {number[]} */
      const ends = [];
      for (let run = 0, from = 0; run < this.ends.length; run += 2) {
        const to = this.ends[run + 1] ?? this.ends[run];
        this.mergeTwo(from, this.ends[run], to);
        ends.push((from = to));
      }
      const { nodes, values } = this;
      [this.nodes, this.values, this.ends] = [this.spare.nodes, this.spare.values, ends];
      this.spare = { nodes, values };
    }
  }

  /**
   * @param {number} from
   * @param {number} middle where the second of them begins
   * @param {number} to
   */
  mergeTwo(from, middle, to) {
    const { nodes, values, spare } = this;
    let [one, other] = [from, middle];
    for (let at = from; at < to; at++) {
      const next = other === to || (one < middle && nodes[one] <= nodes[other]) ? one++ : other++;
      spare.nodes[at] = nodes[next];
      spare.values[at] = values[next];
    }
  }
}

/** @param {Tree} tree */
function deepestOf({ depth }) {
  let deep = 0;
  for (let node = 0; node < depth.length; node++) if (depth[node] > deep) deep = depth[node];
  return deep;
}
