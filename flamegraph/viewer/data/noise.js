// @ts-check
/**
 * What chance makes of a method's change, by how much processes vary: docs/diff.md explains the sums, and
 * hprofiler/analysis/noise.py has the same; tests/viewer/vectors.json holds both together.
 */

import { inTurns, MethodCosts } from "./method_costs.js";

/** @import { Context } from "../controls/context.js" */
/** @import { Scope } from "./scopes.js" */

/** @typedef {"own" | "all"} Which of a method's cost: its own code's, or with all it calls */

const SIGMAS = 4.5;
/** A method shows how processes vary if it has this many samples a process. */
const ENOUGH = 5;
/** All methods together weigh as much as this many processes of its own. */
const POOLED = 10;

/** Over the parts of a side, for each thing summed: its cost, that squared, times its part's whole, times a sample. */
class CostSums {
  constructor() {
    /** @type {Map<number, number>} */
    this.place = new Map();
    /** @type {number[]} */
    this.cost = [];
    /** @type {number[]} */
    this.squared = [];
    /** @type {number[]} */
    this.weighted = [];
    /** @type {number[]} */
    this.sampled = [];
  }

  /**
   * @param {number} name
   * @param {number} cost
   * @param {number} whole
   * @param {number} perSample
   */
  add(name, cost, whole, perSample) {
    let at = this.place.get(name);
    if (at === undefined) {
      at = this.cost.length;
      this.place.set(name, at);
      for (const list of [this.cost, this.squared, this.weighted, this.sampled]) list.push(0);
    }
    this.cost[at] += cost;
    this.squared[at] += cost * cost;
    this.weighted[at] += cost * whole;
    this.sampled[at] += cost * perSample;
  }
}

/** Processes that do the same. */
class Kind {
  constructor() {
    this.parts = 0;
    this.cost = 0;
    this.squared = 0;
    this.sampled = 0;
    /** @type {Record<Which, CostSums>} */
    this.sums = { own: new CostSums(), all: new CostSums() };
  }

  /**
   * The variance of a cost that taking samples makes.
   * @param {CostSums} sums
   * @param {number} at
   */
  byChance(sums, at) {
    return sums.sampled[at] * (1 - sums.cost[at] / this.cost);
  }

  /**
   * The variance of a cost between processes, each by what it used; 0 for one process.
   * @param {CostSums} sums
   * @param {number} at
   */
  between(sums, at) {
    if (this.parts < 2) return 0;
    const share = sums.cost[at] / this.cost;
    const apart = sums.squared[at] - 2 * share * sums.weighted[at] + share * share * this.squared;
    return (Math.max(apart, 0) * this.parts) / (this.parts - 1);
  }

  /** How many times chance's the costs vary, of each method that has enough samples. */
  ratios() {
    const { own } = this.sums;
    const least = (ENOUGH * this.parts * this.sampled) / this.cost;
    return own.cost.flatMap((cost, at) => {
      const chance = this.byChance(own, at);
      return cost >= least && chance > 0 ? [this.between(own, at) / chance] : [];
    });
  }
}

/** One side: its processes by kind, whose costs are not expected to be alike. */
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
   * @param {{names: Iterable<number>, own: Float64Array, all: Float64Array, whole: number}} costs by name
   * @param {number} perSample what a sample stands for, 0 where unknown
   * @param {string} name of its kind
   */
  add({ names, own, all, whole }, perSample, name) {
    if (!whole) return;
    const kind = this.kinds.get(name) ?? new Kind();
    this.kinds.set(name, kind);
    this.parts++;
    this.total += whole;
    this.known &&= perSample > 0;
    this.sampled += whole * perSample;
    kind.parts++;
    kind.cost += whole;
    kind.squared += whole * whole;
    kind.sampled += whole * perSample;
    for (const one of names) {
      kind.sums.all.add(one, all[one], whole, perSample);
      if (own[one]) kind.sums.own.add(one, own[one], whole, perSample);
    }
  }

  /** Degrees of freedom of the variance between processes. */
  get freedom() {
    let freedom = 0;
    for (const kind of this.kinds.values()) freedom += kind.parts - 1;
    return freedom;
  }

  /** What a sample stands for, on average. */
  get perSample() {
    return this.total ? this.sampled / this.total : 0;
  }

  /**
   * @param {Which} which
   * @param {number} name
   */
  *found(which, name) {
    for (const kind of this.kinds.values()) {
      const sums = kind.sums[which];
      const at = sums.place.get(name);
      if (at !== undefined) yield { kind, sums, at };
    }
  }

  /**
   * @param {Which} which
   * @param {number} name
   */
  cost(which, name) {
    let cost = 0;
    for (const { sums, at } of this.found(which, name)) cost += sums.cost[at];
    return cost;
  }

  /**
   * The variance that taking samples makes, of a method's share or of its amount.
   * @param {Which} which
   * @param {number} name
   * @param {boolean} absolute
   */
  byChance(which, name, absolute) {
    let sampled = 0;
    for (const { sums, at } of this.found(which, name)) sampled += sums.sampled[at];
    if (absolute || !sampled) return sampled;
    const share = this.cost(which, name) / this.total;
    // A share of 0 or 1 is uncertain too: one sample might have been another.
    return Math.max(sampled * (1 - share), this.perSample ** 2) / this.total ** 2;
  }

  /**
   * How many times what chance makes a method varies; null where nothing shows it.
   * @param {Which} which
   * @param {number} name
   */
  times(which, name) {
    let [chance, between] = [0, 0];
    for (const { kind, sums, at } of this.found(which, name)) {
      if (kind.parts < 2) continue;
      chance += kind.byChance(sums, at);
      between += kind.between(sums, at);
    }
    return chance > 0 ? between / chance : null;
  }
}

/** What chance makes of a method's change, at most, from one side to the other. */
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
    /** It is not known how processes vary. */
    this.countedAlone = freedom === 0;
    this.pooled = pooledOf(this.sides.flatMap((side) => [...side.kinds.values()]));
    this.limit = freedom ? limitOf(POOLED + freedom) : SIGMAS;
    /** What was asked for of paths, which are many. @type {Map<number, number[]>} */
    this.timesByName = new Map();
    /** How many samples of each side stand for a cost of 1. */
    this.weights = this.sides.map((side) => this.whole(side) / side.perSample);
  }

  /**
   * A change beyond this is more than chance; null where unknown.
   * @param {Which} which
   * @param {number} name
   */
  of(which, name) {
    if (!this.known) return null;
    const times = this.sides.map((side) => this.times(side, which, name));
    const own = this.sides.map((side) => side.byChance(which, name, this.absolute));
    return this.limit * Math.sqrt(Math.max(scaled(own, times), scaled(this.alike(which, name), times)));
  }

  /**
   * A path's change beyond this is more than chance, by its parts of both sides; null where unknown. Paths to a
   * method vary from process to process as it does itself.
   * @param {number} name of its last frame
   * @param {number[]} parts
   */
  ofPath(name, parts) {
    if (!this.known) return null;
    const times = this.timesOf(name);
    const chance = parts.map((part, side) => this.spread(part) / this.weights[side]);
    return this.limit * Math.sqrt(Math.max(scaled(chance, times), scaled(this.evenly(parts), times)));
  }

  /** @param {number} name */
  timesOf(name) {
    const times = this.timesByName.get(name) ?? this.sides.map((side) => this.times(side, "all", name));
    this.timesByName.set(name, times);
    return times;
  }

  /**
   * The variance that one sample makes of a part.
   * @param {number} part
   */
  spread(part) {
    return this.absolute ? part : part * Math.max(0, 1 - part);
  }

  /**
   * Each side's variance if the method costs the same on both: a side of few samples that has none of it is as
   * uncertain as the other makes it.
   * @param {Which} which
   * @param {number} name
   */
  alike(which, name) {
    return this.evenly(this.sides.map((side) => side.cost(which, name) / this.whole(side)));
  }

  /**
   * Each side's variance if both have the same part, the mean of both.
   * @param {number[]} parts
   */
  evenly(parts) {
    const { weights } = this;
    const same = scaled(parts, weights) / (weights[0] + weights[1]);
    return weights.map((weight) => this.spread(same) / weight);
  }

  /** @param {SideSpread} side */
  whole(side) {
    return this.absolute ? 1 : side.total;
  }

  /**
   * Its own word on how much it varies, and that of all methods together; at least chance's.
   * @param {SideSpread} side
   * @param {Which} which
   * @param {number} name
   */
  times(side, which, name) {
    const own = side.times(which, name);
    if (own === null) return this.pooled;
    return Math.max(1, (POOLED * this.pooled + side.freedom * own) / (POOLED + side.freedom));
  }
}

/**
 * @param {number[]} values
 * @param {number[]} factors
 */
function scaled(values, factors) {
  return values.reduce((sum, value, at) => sum + value * factors[at], 0);
}

/**
 * How many times what chance makes most methods vary, each by its degrees of freedom; at least once.
 * @param {Kind[]} kinds
 */
function pooledOf(kinds) {
  let [sum, weight] = [0, 0];
  for (const kind of kinds.filter(({ parts }) => parts > 1)) {
    for (const times of kind.ratios()) {
      sum += times * (kind.parts - 1);
      weight += kind.parts - 1;
    }
  }
  return weight ? Math.max(1, sum / weight) : 1;
}

/**
 * So many deviations where the deviation is itself measured, as in Student's distribution.
 * @param {number} freedom
 */
function limitOf(freedom) {
  return Math.sqrt(freedom * Math.expm1(SIGMAS ** 2 / freedom));
}

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
    this.stopped = false;
  }

  /** @returns {Promise<boolean>} false where it was stopped */
  read() {
    return inTurns(this.work(), () => this.stopped);
  }

  /** Reads all; yields so that other work can run. */
  *work() {
    const costs = new MethodCosts(this.context.tree);
    for (const [side, chosen] of this.chosen.entries()) {
      for (const [process, columns] of byProcess(this.context, chosen)) {
        yield* costs.read(columns);
        const perSample = this.perSample(process) * (columns[0]?.weight ?? 1);
        const { name } = this.context.page.processes[process];
        this.sides[side].add(costs, perSample, name.replace(NUMBERED, "N"));
        yield;
      }
    }
  }

  /**
   * How much of the value a sample of the process stands for; 0 where the page does not say.
   * @param {number} process
   */
  perSample(process) {
    const { page, scopes } = this.context;
    const { type, unit } = page.events[this.event];
    if (unit === "count" && type === "samples") return 1;
    const { host } = page.processes[process];
    const { hosts } = page.summaries[this.event];
    const taken = page.trimmed ? 0 : (hosts?.rows.find((one) => one.host === host)?.taken ?? 0);
    if (taken === 0) return !hosts && unit === "count" && !ESTIMATED.has(type) ? 1 : 0;
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
