// @ts-check
/**
 * A tree in which frames of one name below one parent are one frame, whatever tier they ran in. What ran interpreted
 * on one side of a comparison and compiled on the other has not changed.
 */

import { isClass } from "./families.js";
import { LentProfile, Places } from "./lent.js";

/** @typedef {import("./profile.js").Profile} Profile */
/** @typedef {import("./profile.js").Shape} Shape */

/**
 * A tree without kinds of frames, and where each node of the tree with them is in it.
 * @typedef {{shape: Shape, node: Int32Array | null, places: Places}} Plain `node` is null where both are the same
 */

/** Both sides of a comparison. */
const SIDES = 2;

/** @type {WeakMap<Shape, Plain>} */
const plainByTree = new WeakMap();

/**
 * Found out once for each tree.
 * @param {Shape} tree
 */
export function plainOf(tree) {
  const plain = plainByTree.get(tree) ?? mergeKinds(tree);
  plainByTree.set(tree, plain);
  return plain;
}

/**
 * @param {Profile} profile
 * @param {Plain} plain of its tree
 */
export function plainProfile(profile, { shape, node, places }) {
  if (!node) return profile;
  const { kind } = profile;
  return new LentProfile(shape, profile.event, places, (self) => {
    const [own] = profile.self;
    for (let at = 0; at < node.length; at++) {
      self[node[at]] += own[at];
      if (isClass(kind[at])) shape.kind[node[at]] = kind[at]; // told since the tree was made
    }
  });
}

/**
 * @param {Shape} tree
 * @returns {Plain}
 */
function mergeKinds(tree) {
  const torn = tornSubtrees(tree);
  const places = new Places(SIDES);
  if (!torn[0]) return { shape: tree, node: null, places };
  const { count, name, kind } = tree;
  const node = new Int32Array(count);
  const parent = new Int32Array(count);
  const first = new Int32Array(count);
  let made = 0;
  const waiting = [{ nodes: [0], above: -1 }];
  for (let at = waiting.pop(); at; at = waiting.pop()) {
    const whole = at.nodes.length === 1 && !torn[at.nodes[0]];
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
  return { shape, node, places };
}

/**
 * 1 for each node below which, at any depth, two frames of one name stand side by side. Children are in name order.
 * @param {Shape} tree
 */
function tornSubtrees({ count, name, parent, end }) {
  const torn = new Uint8Array(count);
  for (let node = count - 1; node > 0; node--) {
    const next = end[node];
    const above = parent[node];
    if (torn[node] || (next < end[above] && name[next] === name[node])) torn[above] = 1;
  }
  return torn;
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
