// @ts-check
/** What each process of a comparison spends on each method, read while the page stays alive: by it one knows what chance makes. */

import { SideSpread } from "./noise.js";
import { outermostOf } from "./outermost.js";

/** @typedef {import("./context.js").Context} Context */
/** @typedef {import("./scopes.js").Scope} Scope */

/** After so many milliseconds of work the page gets its turn. */
const READ_AT_ONCE = 10;
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
    const names = context.tree.names.length;
    this.own = new Float64Array(names);
    this.all = new Float64Array(names);
    this.stopped = false;
  }

  /** @returns {Promise<boolean>} whether all was read, and nobody stopped it */
  async read() {
    let begin = performance.now();
    for (const [side, chosen] of this.chosen.entries()) {
      for (const [process, columns] of byProcess(this.context, chosen)) {
        if (this.stopped) return false;
        this.readProcess(this.sides[side], process, columns);
        if (performance.now() - begin < READ_AT_ONCE) continue;
        await new Promise((resolve) => setTimeout(resolve));
        begin = performance.now();
      }
    }
    return !this.stopped;
  }

  /**
   * @param {SideSpread} side
   * @param {number} process
   * @param {{column: number, weight: number}[]} columns
   */
  readProcess(side, process, columns) {
    const { own, all } = this;
    const { tree, page } = this.context;
    const { name, parent } = tree;
    const outermost = outermostOf(tree);
    /** @type {Set<number>} */
    const names = new Set();
    let whole = 0;
    for (const { column, weight } of columns) {
      tree.eachEntry(column, (node, value) => {
        const cost = value * weight;
        whole += cost;
        if (node > 0) own[name[node]] += cost;
        for (let at = node; at > 0; at = parent[at]) {
          if (outermost[at] !== 1) continue;
          if (all[name[at]] === 0) names.add(name[at]);
          all[name[at]] += cost;
        }
      });
    }
    const perSample = this.perSample(process) * (columns[0]?.weight ?? 1);
    side.add({ names, own, all, whole }, perSample, page.processes[process].name.replace(NUMBERED, "N"));
    for (const one of names) own[one] = all[one] = 0;
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
