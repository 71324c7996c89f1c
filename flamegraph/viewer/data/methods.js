// @ts-check
/** Methods of a profile: all frames of one name together, in any tier. */

import { once } from "./format.js";
import { isClass, KERNEL } from "./frame_kinds.js";
import { countsWaits, knowsWaits, waitsOf } from "./waits.js";

/** @import { Profile, Shape } from "./profile.js" */

/**
 * `origin` is its heaviest node. `does` is what threads do that wait in it, as a number of `waits.js`: waits have rows of
 * their own; 0 for the method itself.
 * @typedef {{name: number, self: number, total: number, origin: number, does: number}} Method
 */

/**
 * Self and total of every method that the profile has, in the event's unit.
 * @param {Profile} profile
 * @param {Int32Array | null} [payers] of `payersOf`: without frames that others pay for, wherever they do
 * @returns {Method[]} the highest total first
 */
export function collectMethods(profile, payers = null) {
  if (countsWaits(profile.event.type) && knowsWaits(profile.shape)) return collectWaits(profile);
  const { count, name, end, self, total } = profile;
  const outermost = outermostOf(profile.shape);
  const names = profile.names.length;
  const selves = new Float64Array(names);
  const totals = new Float64Array(names);
  const origins = new Int32Array(names);
  const heaviest = new Float64Array(names);
  const kept = payers ? keptOf(profile, payers) : total;
  for (let node = 1; node < count; ) {
    if (total[node] === 0) {
      node = end[node];
      continue;
    }
    const at = name[node];
    selves[payers ? name[payers[node]] : at] += self[node];
    if (outermost[node]) totals[at] += kept[node];
    if (kept[node] > heaviest[at]) {
      heaviest[at] = kept[node];
      origins[at] = node;
    }
    node++;
  }
  /** @type {Method[]} */
  const methods = [];
  for (let at = 0; at < names; at++) {
    if (totals[at] > 0) methods.push({ name: at, self: selves[at], total: totals[at], origin: origins[at], does: 0 });
  }
  return methods.sort((a, b) => b.total - a.total || b.self - a.self);
}

/**
 * Classes that the profile's stacks end in, with what was allocated of them, or waited for; `total` is the same.
 * @param {Profile} profile
 * @returns {Method[]} the highest first
 */
export function collectClasses({ count, name, kind, self }) {
  /** @type {Map<number, Method>} */
  const classes = new Map();
  for (let node = 1; node < count; node++) {
    if (self[node] === 0 || !isClass(kind[node])) continue;
    const one = classes.get(name[node]) ?? { name: name[node], self: 0, total: 0, origin: node, does: 0 };
    if (self[node] > self[one.origin]) one.origin = node;
    one.self = one.total += self[node];
    classes.set(name[node], one);
  }
  return [...classes.values()].sort((a, b) => b.self - a.self);
}

/**
 * For each node the frame that its own cost counts for, as in the tables of `analysis/attribution.py`: a class is
 * allocated by the method above it, and of what a wait ends in the innermost other frame is who waits. A stack of
 * nothing else keeps its outermost frame.
 * @param {Profile} profile
 * @returns {Int32Array | null} null where each frame's cost is its own
 */
export function payersOf(profile) {
  profile.sum(); // classes are marked while numbers are read
  const { count, parent, name, kind, names, event } = profile;
  const ends = event.ends ?? [];
  const patterns = ends.map((pattern) => new RegExp(pattern, "s"));
  /** By name: 1 if stacks end in it. */
  const known = Uint8Array.from(names, (one) => (patterns.some((pattern) => pattern.test(one)) ? 1 : 0));
  const payers = new Int32Array(count);
  const head = new Uint8Array(count);
  head[0] = 1;
  let some = false;
  for (let node = 1; node < count; node++) {
    const above = parent[node];
    const text = names[name[node]] ?? "";
    head[node] = head[above] && text.startsWith("[") && text.endsWith("]") ? 1 : 0;
    const isEnd = isClass(kind[node]) || (name[node] >= 0 && known[name[node]] === 1) || (event.kernel_ends === true && kind[node] === KERNEL);
    payers[node] = isEnd && !head[above] ? payers[above] : node;
    some ||= payers[node] !== node;
  }
  return some ? payers : null;
}

/**
 * What of each node's total is left where costs count for their payers.
 * @param {Profile} profile
 * @param {Int32Array} payers
 */
function keptOf({ count, parent, total }, payers) {
  const kept = new Float64Array(count);
  for (let node = count - 1; node > 0; node--) {
    if (payers[node] === node) kept[node] = total[node];
    const above = parent[node];
    if (payers[above] !== above) kept[above] += kept[node];
  }
  return kept;
}

/**
 * The same where threads wait: a wait is a row of its own, and of the method that waits, not of what serves it.
 * @param {Profile} profile
 */
function collectWaits(profile) {
  const { count, name, parent, self, shape } = profile;
  const outermost = outermostOf(shape);
  const { does, above } = waitsOf(shape);
  const names = profile.names.length;
  /** By what is done and name. @type {Map<number, Method>} */
  const methods = new Map();
  const methodOf = (/** @type {number} */ what, /** @type {number} */ origin) => {
    const key = what * names + name[origin];
    const known = methods.get(key) ?? { name: name[origin], self: 0, total: 0, origin, does: what };
    methods.set(key, known);
    return known;
  };
  const total = new Float64Array(count);
  for (let node = 1; node < count; node++) {
    if (self[node] === 0) continue;
    let at = node;
    for (let left = above[node]; left > 0; left--) at = parent[at];
    total[at] += self[node];
    const method = methodOf(does[node], at);
    method.self += self[node];
    if (does[node] > 0) method.total += self[node];
  }
  const heaviest = new Float64Array(names);
  for (let node = count - 1; node > 0; node--) {
    if (total[node] === 0) continue;
    total[parent[node]] += total[node];
    const method = methodOf(0, node);
    if (outermost[node]) method.total += total[node];
    if (total[node] < heaviest[name[node]]) continue;
    heaviest[name[node]] = total[node];
    method.origin = node;
  }
  return [...methods.values()].sort((a, b) => b.total - a.total || b.self - a.self);
}

/**
 * Self values divided by those of another event, by name.
 * @param {Profile} part
 * @param {Profile} whole
 * @returns {Map<number, number>} only of methods that both have
 */
export function ratiosOf(part, whole) {
  // Pooled numbers are read one after the other.
  const selves = new Map(collectMethods(whole).map(({ name, self }) => [name, self]));
  /** @type {Map<number, number>} */
  const ratios = new Map();
  for (const { name, self } of collectMethods(part)) {
    const divisor = selves.get(name) ?? 0;
    if (self > 0 && divisor > 0) ratios.set(name, self / divisor);
  }
  return ratios;
}

/** For each node 1 if no frame of its name is above it. */
export const outermostOf = once((/** @type {Shape} */ tree) => {
  const { count, name, end, parent } = tree;
  const outermost = new Uint8Array(count);
  const open = new Int32Array(tree.names.length);
  let last = 0;
  for (let node = 1; node < count; node++) {
    while (end[last] <= node) {
      if (last > 0) open[name[last]]--;
      last = parent[last];
    }
    if (open[name[node]]++ === 0) outermost[node] = 1;
    last = node;
  }
  return outermost;
});
