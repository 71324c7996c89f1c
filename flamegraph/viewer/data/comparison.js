// @ts-check
/** Two scopes on one tree: what has more, what has less, what is in one of them only. */

import { isClass } from "./frame_kinds.js";
import { PooledProfile, BufferPool } from "./profile.js";

/** @import { Method } from "./methods.js" */
/** @import { Profile, Shape } from "./profile.js" */

/**
 * Both sides of a comparison, in shares of their own wholes or in amounts.
 * @typedef {object} Sides
 * @property {Profile} here
 * @property {Profile} there
 * @property {number} hereWhole what an amount of the one is divided by
 * @property {number} thereWhole
 */

/**
 * A method on both sides.
 * @typedef {object} Change
 * @property {number} name
 * @property {number} origin
 * @property {number} here total, as a part of its whole
 * @property {number} there
 * @property {number} change here less there
 * @property {number} selfChange
 */

/**
 * A path that only one side has, with all below it.
 * @typedef {{node: number, part: number}} UniquePath
 */
/**
 * The heaviest of them, and how many there are in all.
 * @typedef {{paths: UniquePath[], count: number, chance: number}} UniquePaths `chance` are those that may be chance, besides
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
 * @param {Method[]} there
 * @param {Sides} sides
 * @returns {Change[]} the largest change of totals first
 */
export function methodChanges(here, there, sides) {
  const { hereWhole, thereWhole } = sides;
  /** @type {Map<number, Change>} */
  const changes = new Map();
  for (const { name, origin, total, self } of here) {
    const part = total / hereWhole;
    changes.set(name, { name, origin, here: part, there: 0, change: part, selfChange: self / hereWhole });
  }
  for (const { name, origin, total, self } of there) {
    const part = total / thereWhole;
    const both = changes.get(name) ?? { name, origin, here: 0, there: 0, change: 0, selfChange: 0 };
    both.there = part;
    both.change = both.here - part;
    both.selfChange -= self / thereWhole;
    changes.set(name, both);
  }
  return [...changes.values()];
}

/**
 * The outermost frames that one profile has and the other has not, the heaviest first.
 * @param {Profile} one
 * @param {Profile} other
 * @param {number} whole of the one
 * @param {number} most how many
 * @param {(node: number) => boolean} isChance
 * @returns {UniquePaths}
 */
export function uniquePaths(one, other, whole, most, isChance) {
  const { count, end } = one;
  const total = one.total[0];
  const missing = other.total[0];
  /** @type {UniquePath[]} */
  const found = [];
  for (let node = 1; node < count; ) {
    if (total[node] === 0) {
      node = end[node];
    } else if (missing[node] === 0) {
      found.push({ node, part: total[node] / whole });
      node = end[node];
    } else {
      node++;
    }
  }
  const beyond = found.filter(({ node }) => !isChance(node));
  beyond.sort((a, b) => b.part - a.part || a.node - b.node);
  return { paths: beyond.slice(0, most), count: beyond.length, chance: found.length - beyond.length };
}

/**
 * The totals that the picture of a comparison shows: a frame is as wide as both sides have it on average,
 * so that what only one of them has is there too.
 * @param {Sides} sides
 * @param {Float64Array} total is filled with that of each node
 */
export function fillAverage({ here, there, hereWhole, thereWhole }, total) {
  const [[one], [other]] = [here.total, there.total];
  const [half, otherHalf] = [0.5 / hereWhole, 0.5 / thereWhole];
  for (let node = 0; node < total.length; node++) {
    total[node] = one[node] * half + other[node] * otherHalf;
  }
}

/**
 * A tree without kinds of frames, and where each node of the tree with them is in it.
 * @typedef {{shape: Shape, node: Int32Array | null, pool: BufferPool}} Kindless `node` is null where both are the same
 */

/** Both sides of a comparison. */
const SIDES = 2;

/** @type {WeakMap<Shape, Kindless>} */
const kindlessByTree = new WeakMap();

/**
 * Found out once for each tree.
 * @param {Shape} tree
 */
export function kindlessOf(tree) {
  const kindless = kindlessByTree.get(tree) ?? mergeKinds(tree);
  kindlessByTree.set(tree, kindless);
  return kindless;
}

/**
 * @param {Profile} profile
 * @param {Kindless} kindless of its tree
 */
export function kindlessProfile(profile, { shape, node, pool }) {
  if (!node) return profile;
  const { kind } = profile;
  return new PooledProfile(shape, profile.event, pool, (self) => {
    const [own] = profile.self;
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
  const mixed = subtreesWithTwins(tree);
  const pool = new BufferPool(SIDES);
  if (!mixed[0]) return { shape: tree, node: null, pool };
  const { count, name, kind } = tree;
  const node = new Int32Array(count);
  const parent = new Int32Array(count);
  const first = new Int32Array(count);
  let made = 0;
  const waiting = [{ nodes: [0], above: -1 }];
  for (let at = waiting.pop(); at; at = waiting.pop()) {
    const whole = at.nodes.length === 1 && !mixed[at.nodes[0]];
    const last = whole ? tree.end[at.nodes[0]] : at.nodes[0] + 1;
    const offset = made - at.nodes[0];
    for (let old = at.nodes[0]; old < last; old++) {
      node[old] = made;
      first[made] = old;
      parent[made++] = old === at.nodes[0] ? at.above : tree.parent[old] + offset;
    }
    if (whole) continue;
    for (const old of at.nodes) node[old] = made - 1;
    for (const nodes of childrenByName(tree, at.nodes).reverse()) waiting.push({ nodes, above: made - 1 });
  }
  const shape = {
    names: tree.names, count: made, parent: parent.slice(0, made),
    name: Int32Array.from({ length: made }, (_, at) => name[first[at]]),
    kind: Uint8Array.from({ length: made }, (_, at) => kind[first[at]]),
    depth: Int32Array.from({ length: made }, (_, at) => tree.depth[first[at]]),
    end: endsOf(parent, made),
  };
  return { shape, node, pool };
}

/**
 * 1 for each node below which, at any depth, two frames of one name stand side by side. Children are in name order.
 * @param {Shape} tree
 */
function subtreesWithTwins({ count, name, parent, end }) {
  const mixed = new Uint8Array(count);
  for (let node = count - 1; node > 0; node--) {
    const next = end[node];
    const above = parent[node];
    if (mixed[node] || (next < end[above] && name[next] === name[node])) mixed[above] = 1;
  }
  return mixed;
}

/**
 * @param {Shape} tree
 * @param {number[]} nodes
 */
function childrenByName({ name, end }, nodes) {
  /** @type {Map<number, number[]>} */
  const children = new Map();
  for (const node of nodes) {
    for (let child = node + 1; child < end[node]; child = end[child]) {
      const same = children.get(name[child]);
      if (same) same.push(child);
      else children.set(name[child], [child]);
    }
  }
  return [...children].sort((a, b) => a[0] - b[0]).map(([, same]) => same);
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
