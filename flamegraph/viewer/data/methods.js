// @ts-check
/** Methods of a profile: all frames of one name together, in any tier. */

import { once } from "./format.js";

/** @import { Profile, Shape } from "./profile.js" */

/**
 * `origin` is its heaviest node.
 * @typedef {{name: number, self: number, total: number, origin: number}} Method
 */

/**
 * Self and total of every method that the profile has, in the event's unit.
 * @param {Profile} profile
 * @returns {Method[]} the highest total first
 */
export function collectMethods(profile) {
  const { count, name, end, self, total } = profile;
  const outermost = outermostOf(profile.shape);
  const names = profile.names.length;
  const selves = new Float64Array(names);
  const totals = new Float64Array(names);
  const origins = new Int32Array(names);
  const heaviest = new Float64Array(names);
  for (let node = 1; node < count; ) {
    if (total[node] === 0) {
      node = end[node];
      continue;
    }
    const at = name[node];
    selves[at] += self[node];
    if (outermost[node]) totals[at] += total[node];
    if (total[node] > heaviest[at]) {
      heaviest[at] = total[node];
      origins[at] = node;
    }
    node++;
  }
  /** @type {Method[]} */
  const methods = [];
  for (let at = 0; at < names; at++) {
    if (totals[at] > 0) methods.push({ name: at, self: selves[at], total: totals[at], origin: origins[at] });
  }
  return methods.sort((a, b) => b.total - a.total || b.self - a.self);
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
