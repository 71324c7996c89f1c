// @ts-check
/** Methods of a profile: every frame of one name together, whatever tier it ran in. */

/** @typedef {import("./profile.js").Profile} Profile */
/**
 * Kind and depth are those of the frame where it has most.
 * @typedef {{name: number, self: number, total: number, kind: number, depth: number}} Method
 */

/**
 * Self and total of every method, in the first value's unit. A recursive method's total counts once a stack.
 * @param {Profile} profile
 * @returns {Method[]}
 */
export function collectMethods(profile) {
  const { count, name, kind, depth, end, parent } = profile;
  const self = profile.self[0];
  const total = profile.total[0];
  /** @type {Method[]} */
  const methods = profile.names.map((_, index) => ({ name: index, self: 0, total: 0, kind: 0, depth: 0 }));
  const open = new Int32Array(methods.length);
  const heaviest = new Float64Array(methods.length).fill(-1);
  let last = 0;
  for (let node = 1; node < count; node++) {
    while (end[last] <= node) {
      if (last > 0) open[name[last]]--;
      last = parent[last];
    }
    const method = methods[name[node]];
    method.self += self[node];
    if (open[name[node]]++ === 0) method.total += total[node];
    if (total[node] > heaviest[name[node]]) {
      heaviest[name[node]] = total[node];
      method.kind = kind[node];
      method.depth = depth[node];
    }
    last = node;
  }
  return methods.filter((method) => method.total > 0);
}

/**
 * @param {Method[]} methods
 * @param {"self" | "total"} by
 */
export function sortMethods(methods, by) {
  const other = by === "self" ? "total" : "self";
  return methods.slice().sort((a, b) => b[by] - a[by] || b[other] - a[other] || a.name - b.name);
}
