// @ts-check
/** Merged trees of a profile: its stacks from their leaves, and what stands above and below one method. */

import { Entries, Grower, inwards, outwards } from "./branches.js";
import { Regrown } from "./regrown.js";

/** @typedef {import("./branches.js").Branch} Branch */
/** @typedef {import("./branches.js").Step} Step */
/** @typedef {import("./profile.js").Profile} Profile */

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
    this.profile = new Regrown(base, root);
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
    this.profile = new Regrown(this.base, this.root);
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
 * @param {Uint8Array} outermost as `outermostFrames` tells
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
