// @ts-check
/** Trees merged anew from a profile: its stacks from the leaves, and the callers and callees of a method. */

import { Entries, Grower } from "./branches.js";
import { endsOf } from "./comparison.js";
import { outermostOf } from "./methods.js";
import { Profile } from "./profile.js";

/** @import { Branch, Step } from "./branches.js" */

class MergedProfile extends Profile {
  /**
   * @param {Profile} base whose nodes were merged
   * @param {Branch} root
   */
  constructor(base, root) {
    // In preorder, without an object for each: there may be tens of thousands at each change of scope.
    /** @type {Branch[]} */
    const branches = [];
    /** @type {number[]} */
    const parents = [];
    const waiting = [root];
    const above = [-1];
    for (let branch = waiting.pop(); branch; branch = waiting.pop()) {
      const node = branches.push(branch) - 1;
      parents.push(above.pop() ?? -1);
      for (let i = branch.children.length - 1; i >= 0; i--) {
        waiting.push(branch.children[i]);
        above.push(node);
      }
    }
    const count = branches.length;
    const parent = new Int32Array(parents);
    const [depth, name, kindDepth] = [new Int32Array(count), new Int32Array(count), new Int32Array(count)];
    const kind = new Uint8Array(count);
    const total = new Float64Array(count);
    for (let node = 0; node < count; node++) {
      const branch = branches[node];
      depth[node] = node > 0 ? depth[parent[node]] + 1 : 0;
      name[node] = branch.name;
      kind[node] = branch.name < 0 ? 0 : base.kind[branch.origin];
      kindDepth[node] = base.depth[branch.origin];
      total[node] = branch.total;
    }
    // Self is the total minus the children's. The remainders of fractions are 0.
    const self = total.slice();
    for (let node = 1; node < count; node++) self[parent[node]] -= total[node];
    for (let node = 0; node < count; node++) if (self[node] < total[node] * 1e-9) self[node] = 0;
    const shape = { count, parent, depth, end: endsOf(parent, count), names: base.names, name, kind, kindDepth };
    super(shape, base.event, self, total);
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
   * @override
   * @param {number} node
   */
  waitKindOf(node) {
    return this.base.waitKindOf(this.branches[node].origin);
  }

  /** @override */
  get waitSums() {
    return this.base.waitSums;
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

/** A merged tree that gets more detail where the reader zooms. */
export class Merged {
  /**
   * @param {Profile} base
   * @param {Step} step from one level to the next
   * @param {Entries} entries what the first level is made of
   * @param {{name: number, origin: number, total: number}} method whose graph it is; name -1 for all
   */
  constructor(base, step, entries, { name, origin, total }) {
    this.base = base;
    this.entries = entries;
    /** @type {Branch} */
    this.root = { name, total, origin, smaller: 0, children: [] };
    this.grower = new Grower(base, step);
    this.whole = this.grower.grow(entries, this.root);
    this.profile = new MergedProfile(base, this.root);
  }

  /**
   * Adds the frames that were too narrow below a node. If there are any, `profile` is a new one, in which the frame for
   * the smaller ones has them as children.
   * @param {number} node
   * @returns {number} the same frame's node
   */
  lookInto(node) {
    const { branches, end } = this.profile;
    const narrow = branches.slice(node, end[node]).some(({ smaller, children }) => smaller && !children.length);
    if (node === 0 || (this.whole && !narrow)) return node;
    const path = this.profile.pathOf(node).map((at) => branches[at]);
    const below = this.grower.follow(this.entries, this.root, path);
    if (!this.grower.grow(below, branches[node])) this.whole = false;
    const names = this.profile.namesTo(node);
    this.profile = new MergedProfile(this.base, this.root);
    return this.profile.find(names);
  }

  /**
   * The node at the end of a path of names, or as far along it as there is any; narrow frames on the path are added.
   * @param {number[]} names
   */
  reach(names) {
    for (let before = -1; ; ) {
      const node = this.lookInto(this.profile.find(names));
      const along = this.profile.depth[node]; // numbers of nodes are another tree's each time
      if (along <= before || this.profile.find(names) === node) return node;
      before = along;
    }
  }
}

/**
 * Stacks from the leaves: self costs first, their callers below.
 * @param {Profile} profile
 */
export function mergedFromLeaves(profile) {
  const { count, end, self, total } = profile;
  const entries = new Entries();
  let sum = 0;
  for (let node = 1; node < count; node = total[node] > 0 ? node + 1 : end[node]) {
    if (self[node] === 0) continue;
    entries.push(node, self[node]);
    sum += self[node];
  }
  return new Merged(profile, outwards(profile), entries, { name: -1, origin: 0, total: sum });
}

/**
 * The callers and callees of a method. All its frames are one; of recursion only the outermost counts.
 * @param {Profile} profile
 * @param {number} name
 * @returns {{callers: Merged, callees: Merged} | null} null when this profile has nothing of it
 */
export function mergedAround(profile, name) {
  const [above, below] = [new Entries(), new Entries()];
  const { count, end, name: names, total } = profile;
  const outermost = outermostOf(profile.shape);
  const [out, into] = [outwards(profile), inwards(profile)];
  const method = { name, origin: 0, total: 0 };
  for (let node = 1; node < count; node = total[node] > 0 ? node + 1 : end[node]) {
    if (names[node] !== name || !outermost[node] || total[node] === 0) continue;
    out(node, total[node], above);
    into(node, total[node], below);
    method.total += total[node];
    if (method.origin === 0 || total[node] > total[method.origin]) method.origin = node;
  }
  if (method.origin === 0) return null;
  return { callers: new Merged(profile, out, above, method), callees: new Merged(profile, into, below, method) };
}

/**
 * Towards the root: who called.
 * @param {Profile} profile
 * @returns {Step}
 */
function outwards({ parent }) {
  return (node, amount, next) => {
    if (parent[node] <= 0) return;
    next.push(parent[node], amount);
  };
}

/**
 * Towards the leaves: what is called.
 * @param {Profile} profile
 * @returns {Step}
 */
function inwards(profile) {
  const { end } = profile;
  return (node, _, next) => {
    const total = profile.total; // where the numbers are changes
    for (let child = node + 1; child < end[node]; child = end[child]) {
      if (total[child] === 0) continue;
      next.push(child, total[child]);
    }
  };
}
