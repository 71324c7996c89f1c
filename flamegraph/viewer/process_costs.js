// @ts-check
/** What each process of a comparison spends on each method, read while the page stays alive: by it one knows what chance makes. */

import { SideSpread } from "./noise.js";
import { outermostOf } from "./outermost.js";

/** @typedef {import("./context.js").Context} Context */
/** @typedef {import("./scopes.js").Scope} Scope */

/** After so many milliseconds of work the page gets its turn. */
const READ_AT_ONCE = 10;
/** After so many entries of a column it looks at the clock. */
const ENTRIES_AT_ONCE = 1000;
/** Processes of which this is the same do the same: "executor 3", "executor 17". */
const NUMBERED = /[\p{L}\p{N}]*\p{Nd}[\p{L}\p{N}]*/gu;
/** Counts that are more than was sampled. */
const ESTIMATED = new Set(["contentions", "alloc_objects", "inuse_objects", "native_allocs"]);

export class ProcessCosts {
  /**
   * @param {Context} context
   * @param {Scope} one
   * @param {Scope} another
   */
  constructor(context, one, another) {
    this.context = context;
    this.event = context.event;
    this.chosen = [one, another].map((scope) => context.columns(scope));
    const columns = new Set(this.chosen[0].map(({ column }) => column));
    /** Both sides have samples in common: they are no two measurements. */
    this.overlap = this.chosen[1].some(({ column }) => columns.has(column));
    this.sides = [new SideSpread(), new SideSpread()];
    const { tree } = context;
    this.outermost = outermostOf(tree);
    this.own = new Float64Array(tree.names.length);
    this.all = new Float64Array(tree.names.length);
    /** What was summed up below the open frame of each depth. */
    this.below = new Float64Array(tree.depth.reduce((most, depth) => Math.max(most, depth), 0) + 1);
    this.stopped = false;
  }

  /** @returns {Promise<boolean>} whether all was read, and nobody stopped it */
  async read() {
    let begin = performance.now();
    for (const _ of this.work()) {
      if (this.stopped) return false;
      if (performance.now() - begin < READ_AT_ONCE) continue;
      await new Promise((resolve) => setTimeout(resolve));
      begin = performance.now();
    }
    return !this.stopped;
  }

  /** Reads all; stops for a moment wherever somebody else may go first. */
  *work() {
    for (const [side, chosen] of this.chosen.entries()) {
      for (const [process, columns] of byProcess(this.context, chosen)) {
        yield* this.readProcess(this.sides[side], process, columns);
      }
    }
  }

  /**
   * @param {SideSpread} side
   * @param {number} process
   * @param {{column: number, weight: number}[]} columns
   */
  *readProcess(side, process, columns) {
    const { own, all, below } = this;
    /** @type {Set<number>} */
    const names = new Set();
    for (const { column, weight } of columns) yield* this.readColumn(column, weight, names);
    const whole = below[0];
    below[0] = 0;
    const perSample = this.perSample(process) * (columns[0]?.weight ?? 1);
    const { name } = this.context.page.processes[process];
    side.add({ names, own, all, whole }, perSample, name.replace(NUMBERED, "N"));
    for (const one of names) own[one] = all[one] = 0;
  }

  /**
   * A column's entries stand in preorder: what is below a frame is summed up while it is open, and goes to its parent
   * as it closes. So each frame is looked at once, however deep the tree is.
   * @param {number} column
   * @param {number} weight
   * @param {Set<number>} names
   */
  *readColumn(column, weight, names) {
    const { own, below } = this;
    const { name, depth, count: end } = this.context.tree;
    const unpacked = this.context.tree.unpack(column);
    const { count } = unpacked;
    const nodes = unpacked.nodes.slice(0, count); // others unpack columns in the meantime
    const values = unpacked.values.slice(0, count);
    let last = 0;
    for (let i = 0; i < count; i++) {
      if (i % ENTRIES_AT_ONCE === 0) yield;
      const node = nodes[i];
      const cost = values[i] * weight;
      this.close(last, node, names);
      below[depth[node]] += cost;
      if (node > 0) own[name[node]] += cost;
      last = node;
    }
    this.close(last, end, names);
  }

  /**
   * Closes frames from the innermost outwards, up to one that the next node is in.
   * @param {number} last the innermost
   * @param {number} next
   * @param {Set<number>} names
   */
  close(last, next, names) {
    const { all, below, outermost } = this;
    const { name, parent, depth, end } = this.context.tree;
    for (let at = last; at > 0 && end[at] <= next; at = parent[at]) {
      const cost = below[depth[at]];
      below[depth[at]] = 0;
      below[depth[at] - 1] += cost;
      if (outermost[at] !== 1) continue;
      names.add(name[at]);
      all[name[at]] += cost;
    }
  }

  /**
   * How much of the value a sample of the process stands for; 0 where the page does not tell.
   * @param {number} process
   */
  perSample(process) {
    const { page, scopes } = this.context;
    const { type, unit } = page.events[this.event];
    if (unit === "count" && type === "samples") return 1;
    const { host } = page.processes[process];
    const numbers = page.hosts_by_event[this.event] ?? [];
    const taken = page.trimmed ? 0 : (numbers.find((one) => one.host === host)?.taken ?? 0);
    if (taken === 0) return numbers.length === 0 && unit === "count" && !ESTIMATED.has(type) ? 1 : 0;
    const sums = scopes.processSums(this.event, -1);
    return page.processes.reduce((sum, one, at) => sum + (one.host === host ? sums[at] : 0), 0) / taken;
  }
}

/**
 * @param {Context} context
 * @param {{column: number, weight: number}[]} chosen
 */
function byProcess({ page }, chosen) {
  /** @type {Map<number, {column: number, weight: number}[]>} */
  const columns = new Map();
  for (const one of chosen) {
    const { process } = page.columns[one.column];
    const known = columns.get(process);
    if (known) known.push(one);
    else columns.set(process, [one]);
  }
  return columns;
}
