// @ts-check
/** A tree of branches as the graph draws it: a profile of its own shape, the widest children first. */

import { endsOf } from "./plain.js";
import { Profile } from "./profile.js";

/** @typedef {import("./branches.js").Branch} Branch */
/** @typedef {import("./profile.js").Shape} Shape */

export class Regrown extends Profile {
  /**
   * @param {Profile} base whose nodes were merged
   * @param {Branch} root
   */
  constructor(base, root) {
    const { branches, parent } = inPreorder(root);
    const total = new Float64Array(branches.length);
    for (let node = 0; node < total.length; node++) total[node] = branches[node].total;
    const shape = shapeOf(base, branches, parent);
    super(shape, base.event, ownPart(shape, total), total);
    this.base = base;
    this.branches = branches;
  }

  /**
   * @override
   * @param {number} node
   */
  nameOf(node) {
    const { smaller } = this.branches[node];
    return smaller ? `(${smaller} smaller ${smaller === 1 ? "frame" : "frames"})` : super.nameOf(node);
  }

  /**
   * @override
   * @param {number} node
   */
  familyOf(node) {
    return this.branches[node].smaller ? "rest" : super.familyOf(node);
  }

  /**
   * Indexes of the names from the root's child down to the node.
   * @param {number} node
   */
  namesTo(node) {
    return this.pathOf(node).map((at) => this.name[at]);
  }

  /**
   * The node at the end of a path of names, or as far along it as this tree goes.
   * @param {number[]} names
   */
  find(names) {
    let node = 0;
    for (const name of names) {
      let child = node + 1;
      while (child < this.end[node] && this.name[child] !== name) child = this.end[child];
      if (child >= this.end[node]) break;
      node = child;
    }
    return node;
  }
}

/**
 * There may be tens of thousands at each change of scope: no object is made for any of them.
 * @param {Branch} root
 */
function inPreorder(root) {
  /** @type {Branch[]} */
  const branches = [];
  /** @type {number[]} */
  const parents = [];
  const waiting = [root];
  const above = [-1];
  for (let branch = waiting.pop(); branch; branch = waiting.pop()) {
    const node = branches.push(branch) - 1;
    parents.push(above.pop() ?? -1);
    const { children } = branch;
    for (let i = children.length - 1; i >= 0; i--) {
      waiting.push(children[i]);
      above.push(node);
    }
  }
  return { branches, parent: new Int32Array(parents) };
}

/**
 * @param {Profile} base
 * @param {Branch[]} branches
 * @param {Int32Array} parent
 * @returns {Shape}
 */
function shapeOf(base, branches, parent) {
  const count = branches.length;
  const [depth, name, kindDepth] = [new Int32Array(count), new Int32Array(count), new Int32Array(count)];
  const kind = new Uint8Array(count);
  for (let node = 0; node < count; node++) {
    const branch = branches[node];
    depth[node] = node > 0 ? depth[parent[node]] + 1 : 0;
    name[node] = branch.name;
    kind[node] = branch.name < 0 ? 0 : base.kind[branch.origin];
    kindDepth[node] = base.depth[branch.origin];
  }
  return { count, parent, depth, end: endsOf(parent, count), names: base.names, name, kind, kindDepth };
}

/**
 * What is left of each frame beside its children; sums of fractions leave nothing behind.
 * @param {Shape} shape
 * @param {Float64Array} total
 */
function ownPart(shape, total) {
  const self = total.slice();
  for (let node = 1; node < shape.count; node++) self[shape.parent[node]] -= total[node];
  for (let node = 0; node < shape.count; node++) {
    if (self[node] < total[node] * 1e-9) self[node] = 0;
  }
  return self;
}
