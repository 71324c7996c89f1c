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
    this.entries = { count: 0, nodes: new Int32Array(0), values: new Float64Array(0) };
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
    const entries = (this.entries = entriesOf(this.tree, columns));
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

/**
 * All entries of the columns, in the order of the nodes.
 * @param {Tree} tree
 * @param {{column: number, weight: number}[]} columns
 */
function entriesOf(tree, columns) {
  const count = columns.reduce((sum, { column }) => sum + tree.columns[column].entries, 0);
  const nodes = new Int32Array(count);
  const values = new Float64Array(count);
  let at = 0;
  for (const { column, weight } of columns) {
    tree.eachEntry(column, (node, value) => {
      nodes[at] = node;
      values[at++] = value * weight;
    });
  }
  if (columns.length < 2) return { count, nodes, values };
  // A key holds a node and its place: numbers sort much faster than places by a function.
  const keys = Float64Array.from(nodes, (node, place) => node * count + place).sort();
  return { count, nodes: Int32Array.from(keys, (key) => key / count), values: Float64Array.from(keys, (key) => values[key % count]) };
}

/** @param {Tree} tree */
function deepestOf({ depth }) {
  let deep = 0;
  for (let node = 0; node < depth.length; node++) if (depth[node] > deep) deep = depth[node];
  return deep;
}
