// @ts-check
/** Trees merged anew from a profile: its stacks from the leaves, and what stands above and below one method. */

import { Entries, Grower, inwards, outwards } from "./branches.js";
import { endsOf } from "./comparison.js";
import { Profile } from "./profile.js";

/** @import { Branch, Step } from "./branches.js" */
/** @import { Shape } from "./profile.js" */

class MergedProfile extends Profile {
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

/** A merged tree that is looked into more closely where the reader zooms. */
export class Merged {
  /**
   * @param {Profile} base
   * @param {Step} step from one level to the next
   * @param {Entries} entries what the first level is made of
   * @param {Branch} root
   */
  constructor(base, step, entries, root) {
    this.base = base;
    this.entries = entries;
    this.root = root;
    this.grower = new Grower(base, step);
    this.whole = this.grower.grow(entries, root);
    this.profile = new MergedProfile(base, root);
  }

  /**
   * Makes room for what was too narrow below a node, if anything was: `profile` is another one then. What stands for
   * smaller frames has them below it from then on.
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
   * The node at the end of a path of names, or as far along it as there is any; what was too narrow gets its room.
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
 * What costs by itself first, who called it below.
 * @param {Profile} profile
 */
export function mergedFromLeaves(profile) {
  const self = profile.self[0];
  const total = profile.total[0];
  const { count, end } = profile;
  const entries = new Entries();
  for (let node = 1; node < count; node = total[node] > 0 ? node + 1 : end[node]) {
    if (self[node] > 0) entries.push(node, self[node]);
  }
  return new Merged(profile, outwards(profile), entries, rootBranch(-1, 0, entries.sum()));
}

/**
 * Who calls a method, and what it calls. All its frames are one, of recursion only the outermost.
 * @param {Profile} profile
 * @param {Uint8Array} outermost from `outermostFrames`
 * @param {number} name
 * @returns {{callers: Merged, callees: Merged} | null} null when this profile has nothing of it
 */
export function mergedAround(profile, outermost, name) {
  const above = new Entries();
  const below = new Entries();
  const { count, end, name: names } = profile;
  const total = profile.total[0];
  const [out, into] = [outwards(profile), inwards(profile)];
  let sum = 0;
  let origin = 0;
  for (let node = 1; node < count; node = total[node] > 0 ? node + 1 : end[node]) {
    if (names[node] !== name || !outermost[node] || total[node] === 0) continue;
    out(node, total[node], above);
    into(node, total[node], below);
    sum += total[node];
    if (origin === 0 || total[node] > total[origin]) origin = node;
  }
  if (origin === 0) return null;
  return {
    callers: new Merged(profile, out, above, rootBranch(name, origin, sum)),
    callees: new Merged(profile, into, below, rootBranch(name, origin, sum)),
  };
}

/**
 * @param {number} name
 * @param {number} origin
 * @param {number} total
 * @returns {Branch}
 */
function rootBranch(name, origin, total) {
  return { name, total, origin, smaller: 0, children: [] };
}
