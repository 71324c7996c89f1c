// @ts-check
/**
 * The noise of a change, by how much processes vary: docs/diff.md explains it, hprofiler/analysis/noise.py computes
 * the same, and tests/viewer/vectors.json has test cases for both.
 */

import { inTurns, MethodCosts } from "./method_costs.js";

/** @import { Context } from "../controls/context.js" */
/** @import { Columns } from "./method_costs.js" */
/** @import { Attribution } from "./methods.js" */
/** @import { Numbers } from "./numbers.js" */

/** @typedef {"own" | "all"} Which of a method's cost: its own code's, or with all it calls */
/** Costs by row. @typedef {{rows: Iterable<number>, own: ArrayLike<number>, all: ArrayLike<number>, whole: number}} Costs */
/**
 * Of one row over processes: its cost, that squared, times its process's whole, times a sample.
 * @typedef {{cost: number, squared: number, weighted: number, sampled: number}} Sums
 */

const SIGMAS = 4.5;
/** The variance of a method counts if it has this many samples per process. */
const ENOUGH = 5;
/** The ratio of all methods weighs as much as this many processes of the method. */
const POOLED = 10;

/** Processes of the same kind. */
class Kind {
  constructor() {
    this.parts = 0;
    this.cost = 0;
    this.squared = 0;
    this.sampled = 0;
    /** @type {Record<Which, Map<number, Sums>>} */
    this.sums = { own: new Map(), all: new Map() };
  }

  /**
   * @param {Costs} costs of a process
   * @param {number} perSample
   */
  add(costs, perSample) {
    const { rows, whole } = costs;
    this.parts++;
    this.cost += whole;
    this.squared += whole * whole;
    this.sampled += whole * perSample;
    for (const which of /** @type {Which[]} */ (["own", "all"])) {
      for (const row of rows) {
        const cost = costs[which][row];
        if (!cost) continue;
        const sums = this.sums[which].get(row) ?? { cost: 0, squared: 0, weighted: 0, sampled: 0 };
        this.sums[which].set(row, sums);
        sums.cost += cost;
        sums.squared += cost * cost;
        sums.weighted += cost * whole;
        sums.sampled += cost * perSample;
      }
    }
  }

  /**
   * The variance of a cost due to sampling.
   * @param {Sums} sums
   */
  byChance({ cost, sampled }) {
    return sampled * (1 - cost / this.cost);
  }

  /**
   * The variance of a cost between processes, each by what it used; 0 for one process.
   * @param {Sums} sums
   */
  between({ cost, squared, weighted }) {
    if (this.parts < 2) return 0;
    const share = cost / this.cost;
    const apart = squared - 2 * share * weighted + share * share * this.squared;
    return (Math.max(apart, 0) * this.parts) / (this.parts - 1);
  }
}

/** One side: its processes by kind. Costs are compared within a kind. */
export class SideSpread {
  constructor() {
    this.parts = 0;
    this.total = 0;
    this.known = true;
    this.sampled = 0;
    /** @type {Map<string, Kind>} */
    this.kinds = new Map();
  }

  /**
   * A process.
   * @param {Costs} costs
   * @param {number} perSample what a sample stands for, 0 where unknown
   * @param {string} name of its kind
   */
  add(costs, perSample, name) {
    const { whole } = costs;
    if (!whole) return;
    const kind = this.kinds.get(name) ?? new Kind();
    this.kinds.set(name, kind);
    kind.add(costs, perSample);
    this.parts++;
    this.total += whole;
    this.known &&= perSample > 0;
    this.sampled += whole * perSample;
  }

  /** Degrees of freedom of the variance between processes. */
  get freedom() {
    return this.parts - this.kinds.size;
  }

  /** What a sample stands for, on average. */
  get perSample() {
    return this.total ? this.sampled / this.total : 0;
  }

  /**
   * A method's cost, and its variances in kinds with several processes.
   * @param {Which} which
   * @param {number} row
   */
  measure(which, row) {
    const found = { cost: 0, sampled: 0, chance: 0, between: 0 };
    for (const kind of this.kinds.values()) {
      const sums = kind.sums[which].get(row);
      if (!sums) continue;
      found.cost += sums.cost;
      found.sampled += sums.sampled;
      if (kind.parts > 1) found.chance += kind.byChance(sums);
      found.between += kind.between(sums);
    }
    return found;
  }
}

/** The noise of changes between two sides. */
export class Noise {
  /**
   * @param {SideSpread} here
   * @param {SideSpread} there
   * @param {boolean} absolute amounts are compared, not shares
   */
  constructor(here, there, absolute) {
    this.sides = [here, there];
    this.absolute = absolute;
    this.known = here.known && there.known && here.total > 0 && there.total > 0;
    const freedom = here.freedom + there.freedom;
    /** The variance between processes is unknown. */
    this.countedAlone = freedom === 0;
    this.pooled = pooledOf([...here.kinds.values(), ...there.kinds.values()]);
    // The deviation is itself measured, as in Student's distribution.
    const known = POOLED + freedom;
    this.limit = freedom ? Math.sqrt(known * Math.expm1(SIGMAS ** 2 / known)) : SIGMAS;
    /** The ratios of methods, kept for paths, which are many. @type {Map<number, number[]>} */
    this.timesByName = new Map();
    /** What an amount of each side is divided by. */
    this.wholes = this.sides.map(({ total }) => (absolute ? 1 : total));
    /** How many samples of each side stand for a cost of 1. */
    this.weights = this.sides.map(({ perSample }, side) => this.wholes[side] / perSample);
  }

  /**
   * The noise of a method's change; null if unknown.
   * @param {Which} which
   * @param {number} row
   */
  of(which, row) {
    if (!this.known) return null;
    const found = this.sides.map((side) => side.measure(which, row));
    const own = found.map(({ cost, sampled }, side) => {
      const { total, perSample } = this.sides[side];
      if (this.absolute || !sampled) return sampled;
      // A share of 0 or 1 is uncertain too: one sample might have been another.
      return Math.max(sampled * (1 - cost / total), perSample ** 2) / total ** 2;
    });
    const [here, there] = found.map(({ cost }, side) => cost / this.wholes[side]);
    return this.bound(own[0], own[1], here, there, this.times(which, row));
  }

  /**
   * The noise of a path's change, by its parts of both sides; null if unknown. Paths to a method vary from process to
   * process as the method does.
   * @param {number} name of its last frame
   * @param {number} here
   * @param {number} there
   */
  ofPath(name, here, there) {
    if (!this.known) return null;
    let times = this.timesByName.get(name);
    if (!times) this.timesByName.set(name, (times = this.times("all", name)));
    const { weights } = this;
    return this.bound(this.spread(here) / weights[0], this.spread(there) / weights[1], here, there, times);
  }

  /**
   * The larger of two: by each side's own variance, or as if both sides had the mean of both parts. A side with few
   * samples and none of the method is uncertain, too. There are many paths, so numbers are not put into arrays.
   * @param {number} ownHere
   * @param {number} ownThere
   * @param {number} here
   * @param {number} there
   * @param {number[]} times
   */
  bound(ownHere, ownThere, here, there, times) {
    const { weights } = this;
    const mean = this.spread((here * weights[0] + there * weights[1]) / (weights[0] + weights[1]));
    const alike = (mean / weights[0]) * times[0] + (mean / weights[1]) * times[1];
    return this.limit * Math.sqrt(Math.max(ownHere * times[0] + ownThere * times[1], alike));
  }

  /**
   * The variance that one sample makes of a part.
   * @param {number} part
   */
  spread(part) {
    return this.absolute ? part : part * Math.max(0, 1 - part);
  }

  /**
   * How many times the sampling variance a method varies on each side, pooled with the ratio of all methods.
   * @param {Which} which
   * @param {number} row
   */
  times(which, row) {
    return this.sides.map((side) => {
      const { chance, between } = side.measure(which, row);
      if (chance <= 0) return this.pooled;
      return Math.max(1, (POOLED * this.pooled + (side.freedom * between) / chance) / (POOLED + side.freedom));
    });
  }
}

/**
 * How many times the sampling variance methods vary, weighted by degrees of freedom; at least 1.
 * @param {Kind[]} kinds
 */
function pooledOf(kinds) {
  let [sum, weight] = [0, 0];
  for (const kind of kinds.filter(({ parts }) => parts > 1)) {
    const least = (ENOUGH * kind.parts * kind.sampled) / kind.cost;
    for (const sums of kind.sums.own.values()) {
      const chance = kind.byChance(sums);
      if (sums.cost < least || chance <= 0) continue;
      sum += (kind.between(sums) / chance) * (kind.parts - 1);
      weight += kind.parts - 1;
    }
  }
  return weight ? Math.max(1, sum / weight) : 1;
}

/** Processes whose names differ only in numbers are of one kind: "executor 3", "executor 17". */
const NUMBERED = /[\p{L}\p{N}]*\p{Nd}[\p{L}\p{N}]*/gu;
/** Counts that are estimated from fewer samples. */
const ESTIMATED = new Set(["contentions", "alloc_objects", "inuse_objects", "native_allocs", "native_inuse_allocs"]);

/**
 * Reads what the processes of both sides cost, in the background.
 * @param {Context} context
 * @param {{columns: Columns, numbers: Numbers}[]} chosen of each side
 * @param {Attribution} attribution
 * @param {() => boolean} stopped
 * @returns {Promise<SideSpread[] | null>} null where it was stopped
 */
export async function readSides(context, chosen, attribution, stopped) {
  const { page, tree, event } = context;
  const sides = [new SideSpread(), new SideSpread()];
  const work = function* () {
    const costs = new MethodCosts(tree, attribution);
    for (const [side, { columns, numbers }] of chosen.entries()) {
      /** @type {Map<number, Columns>} */
      const byProcess = new Map();
      for (const one of columns) {
        const { process } = page.columns[one.column];
        byProcess.set(process, [...(byProcess.get(process) ?? []), one]);
      }
      for (const [process, columns] of byProcess) {
        costs.read(columns, numbers);
        const kind = page.processes[process].name.replace(NUMBERED, "N");
        sides[side].add(costs, perSample(context, event, process) * columns[0].weight, kind);
        yield;
      }
    }
  };
  return (await inTurns(work(), stopped)) ? sides : null;
}

/**
 * How much of the value a sample of the process stands for; 0 if unknown.
 * @param {Context} context
 * @param {number} event
 * @param {number} process
 */
function perSample({ page, scopes, unchanged }, event, process) {
  const { type, unit } = page.events[event];
  if (unit === "count" && type === "samples") return 1;
  const { host } = page.processes[process];
  const { hosts } = page.summaries[event];
  const taken = page.trimmed ? 0 : (hosts?.rows.find((one) => one.host === host)?.taken ?? 0);
  if (taken === 0) return !hosts && unit === "count" && !ESTIMATED.has(type) ? 1 : 0;
  const sums = unchanged.processSums(event, -1, scopes.whole);
  return page.processes.reduce((sum, one, at) => sum + (one.host === host ? sums[at] : 0), 0) / taken;
}
