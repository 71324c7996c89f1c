// @ts-check
/** Two scopes on one tree: changes by method, paths that only one of them has, their average. */

import { mayBeElsewhere } from "./callers.js";
import { once } from "./format.js";
import { isClass } from "./frame_kinds.js";
import { PooledProfile, BufferPool } from "./profile.js";

/** @import { Method } from "./methods.js" */
/** @import { Profile, Shape } from "./profile.js" */

/**
 * Both sides of a comparison; amounts are divided by the wholes, which are 1 where amounts are compared.
 * @typedef {{here: Profile, there: Profile, hereWhole: number, thereWhole: number}} Sides
 */

/**
 * A method, or a wait, on both sides: its total as a part of each whole, how much more that and its self part are here.
 * @typedef {{row: number, name: number, does: number, here: number, there: number, change: number, selfChange: number}} Change
 */

/**
 * The heaviest paths that only one side has, how many there are beyond noise, how many within it, and how many beyond it may
 * only be below wrong callers.
 * @typedef {{paths: {node: number, part: number}[], count: number, chance: number, unsure: number}} UniquePaths
 */

/**
 * @param {Profile} here
 * @param {Profile} there
 * @param {boolean} normalised
 * @returns {Sides}
 */
export function sidesOf(here, there, normalised) {
  if (normalised) return { here, there, hereWhole: here.sum() || 1, thereWhole: there.sum() || 1 };
  return { here, there, hereWhole: 1, thereWhole: 1 };
}

/**
 * @param {Method[]} here
 * @param {Method[]} there by the same attribution
 * @param {Sides} sides
 * @returns {Change[]}
 */
export function methodChanges(here, there, { hereWhole, thereWhole }) {
  /** @type {Map<number, Change>} */
  const changes = new Map();
  for (const { row, name, does, total, self } of here) {
    const part = total / hereWhole;
    changes.set(row, { row, name, does, here: part, there: 0, change: part, selfChange: self / hereWhole });
  }
  for (const { row, name, does, total, self } of there) {
    const part = total / thereWhole;
    const both = changes.get(row) ?? { row, name, does, here: 0, there: 0, change: 0, selfChange: 0 };
    both.there = part;
    both.change = both.here - part;
    both.selfChange -= self / thereWhole;
    changes.set(row, both);
  }
  return [...changes.values()];
}

/**
 * The outermost frames that only one profile has, the heaviest first.
 * @param {Profile} one
 * @param {Profile} other
 * @param {number} whole of the one
 * @param {number} most how many
 * @param {(node: number) => boolean} isChance
 * @returns {UniquePaths}
 */
export function uniquePaths(one, other, whole, most, isChance) {
  const { count, end } = one;
  const [total, missing] = [one.total, other.total];
  const beyond = [];
  let [chance, unsure] = [0, 0];
  for (let node = 1; node < count; ) {
    const unique = total[node] > 0 && missing[node] === 0;
    if (unique && isChance(node)) chance++;
    else if (unique && mayBeElsewhere(one, node)) unsure++;
    else if (unique) beyond.push({ node, part: total[node] / whole });
    node = unique || total[node] === 0 ? end[node] : node + 1;
  }
  beyond.sort((a, b) => b.part - a.part || a.node - b.node);
  return { paths: beyond.slice(0, most), count: beyond.length, chance, unsure };
}

/**
 * The totals that a comparison shows: the average of both sides, so frames that only one side has are visible.
 * @param {Sides} sides
 * @param {Float64Array} total is filled with that of each node
 */
export function fillAverage({ here, there, hereWhole, thereWhole }, total) {
  const [one, other] = [here.total, there.total];
  const [half, otherHalf] = [0.5 / hereWhole, 0.5 / thereWhole];
  for (let node = 0; node < total.length; node++) {
    total[node] = one[node] * half + other[node] * otherHalf;
  }
}

/**
 * A tree without kinds of frames, and where each node of the tree with them is in it.
 * @typedef {{shape: Shape, node: Int32Array | null, pool: BufferPool}} Kindless `node` is null where both are the same
 */

/** Buffers for both sides. */
const SIDES = 2;

export const kindlessOf = once(mergeKinds);

/**
 * @param {Profile} profile
 * @param {Kindless} kindless of its tree
 */
export function kindlessProfile(profile, { shape, node, pool }) {
  if (!node) return profile;
  const { kind } = profile;
  return new PooledProfile(shape, profile.event, pool, (self) => {
    const own = profile.self;
    for (let at = 0; at < node.length; at++) {
      self[node[at]] += own[at];
      if (isClass(kind[at])) shape.kind[node[at]] = kind[at]; // marked since the tree was made
    }
  });
}

/**
 * @param {Shape} tree
 * @returns {Kindless}
 */
function mergeKinds(tree) {
  const { count, name, kind, end, parent } = tree;
  // 1 for nodes with two siblings of one name somewhere below them. Children are in name order.
  const mixed = new Uint8Array(count);
  for (let node = count - 1; node > 0; node--) {
    const next = end[node];
    if (mixed[node] || (next < end[parent[node]] && name[next] === name[node])) mixed[parent[node]] = 1;
  }
  const pool = new BufferPool(SIDES);
  if (!mixed[0]) return { shape: tree, node: null, pool };
  const node = new Int32Array(count);
  const above = new Int32Array(count);
  const first = new Int32Array(count);
  let made = 0;
  const waiting = [{ nodes: [0], below: -1 }];
  for (let at = waiting.pop(); at; at = waiting.pop()) {
    const whole = at.nodes.length === 1 && !mixed[at.nodes[0]];
    const last = whole ? end[at.nodes[0]] : at.nodes[0] + 1;
    const offset = made - at.nodes[0];
    for (let old = at.nodes[0]; old < last; old++) {
      node[old] = made;
      first[made] = old;
      above[made++] = old === at.nodes[0] ? at.below : parent[old] + offset;
    }
    if (whole) continue;
    /** @type {Map<number, number[]>} */
    const children = new Map();
    for (const old of at.nodes) {
      node[old] = made - 1;
      for (let child = old + 1; child < end[old]; child = end[child]) {
        const twins = children.get(name[child]);
        if (twins) twins.push(child);
        else children.set(name[child], [child]);
      }
    }
    const byName = [...children].sort((a, b) => b[0] - a[0]);
    for (const [, nodes] of byName) waiting.push({ nodes, below: made - 1 });
  }
  const shape = {
    names: tree.names, count: made, parent: above.slice(0, made),
    name: Int32Array.from({ length: made }, (_, at) => name[first[at]]),
    kind: Uint8Array.from({ length: made }, (_, at) => kind[first[at]]),
    depth: Int32Array.from({ length: made }, (_, at) => tree.depth[first[at]]),
    end: endsOf(above, made),
  };
  return { shape, node, pool };
}

/**
 * @param {Int32Array} parent
 * @param {number} count
 */
export function endsOf(parent, count) {
  const end = new Int32Array(count);
  for (let node = count - 1; node >= 0; node--) {
    end[node] ||= node + 1;
    if (node > 0) end[parent[node]] ||= end[node];
  }
  return end;
}
