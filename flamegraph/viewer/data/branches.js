// @ts-check
/**
 * Trees merged anew from a profile's nodes: its stacks from the leaves, the callers of a method, what it calls.
 * They grow level by level, as far as frames are wide enough to be seen. Narrower frames become one.
 */

/** @import { Profile } from "./profile.js" */

/**
 * A frame of such a tree.
 * @typedef {object} Branch
 * @property {number} name index into the profile's names; -1 for the root and for what stands for `smaller` frames
 * @property {number} total
 * @property {number} origin the heaviest of the profile's nodes that it was merged from
 * @property {number} smaller how many narrow frames it stands for, else 0
 * @property {Branch[]} children the widest first
 */

/** Some of them are below a branch. @typedef {{branch: Branch, from: number, to: number}} Span */

/**
 * Adds to `next` each node, with its amount, that stands one level further out or in.
 * @typedef {(node: number, amount: number, next: Entries) => void} Step
 */

/** Frames below this part of the width in view are merged. */
const NARROWEST = 0.0005;
/** At least so many frames of the first level are shown, however narrow. */
const AT_LEAST = 200;
/** Bounds against endless recursion: frames made, nodes visited. */
const MOST_BRANCHES = 100_000;
const MOST_STEPS = 6_000_000;

/** Nodes of the profile, each with its amount, in typed arrays that are used again: a large page has many of them. */
export class Entries {
  constructor() {
    this.count = 0;
    this.nodes = new Int32Array(256);
    this.amounts = new Float64Array(256);
  }

  /**
   * @param {number} node
   * @param {number} amount
   */
  push(node, amount) {
    if (this.count === this.nodes.length) {
      const { nodes, amounts } = this;
      this.nodes = new Int32Array(this.count * 2);
      this.amounts = new Float64Array(this.count * 2);
      this.nodes.set(nodes);
      this.amounts.set(amounts);
    }
    this.nodes[this.count] = node;
    this.amounts[this.count++] = amount;
  }
}

export class Grower {
  /**
   * @param {Profile} profile
   * @param {Step} step
   */
  constructor(profile, step) {
    const names = profile.names.length;
    this.step = step;
    this.name = profile.name;
    /** Of a branch's entries by name: how many, their sum, the heaviest and its node, and where the next one goes. */
    this.count = new Int32Array(names);
    this.total = new Float64Array(names);
    this.heaviest = new Float64Array(names);
    this.origin = new Int32Array(names);
    this.place = new Int32Array(names);
    this.order = new Int32Array(256);
  }

  /**
   * A tree of everything above or below the entries, whose names are its first level.
   * @param {Entries} entries
   * @param {Branch} root
   * @returns {boolean} false when a bound kept it from going as deep as there are wide frames
   */
  grow(entries, root) {
    /** @type {Span[]} */
    let level = [{ branch: root, from: 0, to: entries.count }];
    let branches = 0;
    let steps = 0;
    let [next, spare] = [new Entries(), new Entries()];
    while (level.length > 0 && branches < MOST_BRANCHES && steps < MOST_STEPS) {
      next.count = 0;
      /** @type {Span[]} */
      const below = [];
      for (const span of level) {
        this.split(span, entries, root, next, below);
        branches += span.branch.children.length;
      }
      steps += entries.count;
      entries = next;
      [next, spare] = [spare, next];
      level = below;
    }
    return level.length === 0;
  }

  /**
   * Gives a branch its children: one for each wide name, one for all that are narrow.
   * @param {Span} span
   * @param {Entries} entries
   * @param {Branch} root
   * @param {Entries} next gets what the wide children's own children are made of
   * @param {Span[]} below and where in it
   */
  split({ branch, from, to }, { nodes, amounts }, root, next, below) {
    const { name, count, total, heaviest, origin, place } = this;
    const found = [];
    for (let i = from; i < to; i++) {
      const of = name[nodes[i]];
      if (count[of]++ === 0) {
        found.push(of);
        total[of] = heaviest[of] = 0;
      }
      total[of] += amounts[i];
      if (amounts[i] > heaviest[of]) {
        heaviest[of] = amounts[i];
        origin[of] = nodes[i];
      }
    }
    found.sort((a, b) => total[b] - total[a] || a - b);
    let least = root.total * NARROWEST;
    if (branch === root && found.length > 0) least = Math.min(least, total[found[Math.min(AT_LEAST, found.length) - 1]]);
    let wide = 0;
    let room = 0;
    for (; wide < found.length && total[found[wide]] >= least; wide++) {
      place[found[wide]] = room;
      room += count[found[wide]];
    }
    branch.children = found.slice(0, wide).map((of) => ({ name: of, total: total[of], origin: origin[of], smaller: 0, children: [] }));
    if (wide < found.length) {
      let rest = 0;
      for (let i = wide; i < found.length; i++) {
        rest += total[found[i]];
        place[found[i]] = -1;
      }
      branch.children.push({ name: -1, total: rest, origin: branch.origin, smaller: found.length - wide, children: [] });
    }
    // Order the entries by child.
    if (this.order.length < room) this.order = new Int32Array(room * 2);
    const { order } = this;
    for (let i = from; i < to; i++) {
      const of = name[nodes[i]];
      if (place[of] >= 0) order[place[of]++] = i;
    }
    let at = 0;
    for (let child = 0; child < wide; child++) {
      const begin = next.count;
      for (const last = at + count[found[child]]; at < last; at++) this.step(nodes[order[at]], amounts[order[at]], next);
      const end = next.count;
      if (end > begin) below.push({ branch: branch.children[child], from: begin, to: end });
    }
    for (const of of found) count[of] = 0;
  }

  /**
   * What is below the branches of a path, each a child of the one before.
   * @param {Entries} entries what is below the first one's parent
   * @param {Branch} root that parent
   * @param {Branch[]} path
   */
  follow(entries, root, path) {
    let above = root;
    for (const branch of path) {
      const next = new Entries();
      const wide = new Set(above.children.filter(({ smaller }) => !smaller).map(({ name }) => name));
      for (let i = 0; i < entries.count; i++) {
        const [node, amount] = [entries.nodes[i], entries.amounts[i]];
        const name = this.name[node];
        if (branch.smaller ? !wide.has(name) : name === branch.name) {
          if (branch.smaller) next.push(node, amount);
          else this.step(node, amount, next);
        }
      }
      entries = next;
      above = branch;
    }
    return entries;
  }
}
