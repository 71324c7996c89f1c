// @ts-check
/**
 * Trees merged anew from a profile's nodes: its stacks from the leaves, the callers of a method, what it calls.
 * They grow level by level, only as far as frames are wide enough to be seen: narrower ones become one frame.
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

/**
 * Adds to `next` each node, with its amount, that stands one level further out or in.
 * @typedef {(node: number, amount: number, next: Entries) => void} Step
 */

/** A frame below this part of the width in view is not looked into. */
const NARROWEST = 0.0005;
/** So many of the first level are shown by themselves however narrow. */
const AT_LEAST = 200;
/** Bounds for what recursion could make endless: frames made, nodes walked over. */
const MOST_BRANCHES = 100_000;
const MOST_STEPS = 6_000_000;

/** Nodes of the profile, each with the amount that it brings along. */
export class Entries {
  /** @param {number} [room] for how many at first */
  constructor(room = 256) {
    this.node = new Int32Array(room);
    this.amount = new Float64Array(room);
    this.count = 0;
  }

  /**
   * @param {number} node
   * @param {number} amount
   */
  push(node, amount) {
    if (this.count === this.node.length) this.widen();
    this.node[this.count] = node;
    this.amount[this.count++] = amount;
  }

  widen() {
    const node = new Int32Array(this.count * 2);
    const amount = new Float64Array(this.count * 2);
    node.set(this.node);
    amount.set(this.amount);
    this.node = node;
    this.amount = amount;
  }

  sum() {
    let sum = 0;
    for (let i = 0; i < this.count; i++) sum += this.amount[i];
    return sum;
  }
}

/**
 * What a run of entries adds up to by name. The lists have a place for each name of the profile; `found` says which
 * are in use.
 */
class Sums {
  /** @param {Profile} profile */
  constructor(profile) {
    const names = profile.names.length;
    this.name = profile.name;
    this.found = new Int32Array(names);
    this.count = 0;
    this.total = new Float64Array(names);
    this.entries = new Int32Array(names);
    this.heaviest = new Float64Array(names);
    this.origin = new Int32Array(names);
    /** Where the entries of a wide name go, -1 for those of narrow ones. */
    this.place = new Int32Array(names);
  }

  /**
   * @param {Entries} entries
   * @param {number} from
   * @param {number} to
   */
  fill(entries, from, to) {
    for (let i = 0; i < this.count; i++) this.entries[this.found[i]] = 0;
    this.count = 0;
    for (let i = from; i < to; i++) {
      const node = entries.node[i];
      const amount = entries.amount[i];
      const name = this.name[node];
      if (this.entries[name]++ === 0) this.begin(name);
      this.total[name] += amount;
      if (amount > this.heaviest[name]) {
        this.heaviest[name] = amount;
        this.origin[name] = node;
      }
    }
  }

  /**
   * The total of the name that has the most but so many.
   * @param {number} rank
   */
  ofRank(rank) {
    const totals = Float64Array.from(this.found.subarray(0, this.count), (name) => this.total[name]).sort();
    return totals[Math.max(0, totals.length - rank)] ?? 0;
  }

  /** @param {number} name */
  begin(name) {
    this.found[this.count++] = name;
    this.total[name] = 0;
    this.heaviest[name] = 0;
    this.place[name] = -1;
  }
}

export class Grower {
  /**
   * @param {Profile} profile
   * @param {Step} step
   */
  constructor(profile, step) {
    this.step = step;
    this.name = profile.name;
    this.sums = new Sums(profile);
    /** Scratch. */
    this.ordered = new Int32Array(256);
  }

  /**
   * A tree of everything above or below the entries, whose names are its first level.
   * @param {Entries} entries
   * @param {Branch} root
   * @returns {boolean} false when a bound kept it from going as deep as there are wide frames
   */
  grow(entries, root) {
    const least = root.total * NARROWEST;
    let level = [{ branch: root, from: 0, to: entries.count }];
    let branches = 0;
    let steps = 0;
    let [next, spare] = [new Entries(), new Entries()];
    while (level.length > 0 && branches < MOST_BRANCHES && steps < MOST_STEPS) {
      next.count = 0;
      /** @type {typeof level} */
      const below = [];
      for (const { branch, from, to } of level) {
        if (to - from === 1 && branch !== root) {
          this.growOne(branch, entries.node[from], entries.amount[from], least, next, below);
        } else {
          this.sums.fill(entries, from, to);
          this.split(branch, branch === root ? Math.min(least, this.sums.ofRank(AT_LEAST)) : least);
          this.descend(entries, from, to, branch, next, below);
        }
        branches += branch.children.length;
      }
      steps += entries.count;
      entries = next;
      [next, spare] = [spare, next];
      level = below;
    }
    return level.length === 0;
  }

  /**
   * What `split` and `descend` do, of one entry alone: far from the root most frames have no more.
   * @param {Branch} branch
   * @param {number} node
   * @param {number} amount
   * @param {number} least
   * @param {Entries} next
   * @param {{branch: Branch, from: number, to: number}[]} below
   */
  growOne(branch, node, amount, least, next, below) {
    if (amount < least) {
      branch.children = [{ name: -1, total: amount, origin: branch.origin, smaller: 1, children: [] }];
      return;
    }
    /** @type {Branch} */
    const child = { name: this.name[node], total: amount, origin: node, smaller: 0, children: [] };
    branch.children = [child];
    const begin = next.count;
    this.step(node, amount, next);
    if (next.count > begin) below.push({ branch: child, from: begin, to: next.count });
  }

  /**
   * Gives a branch its children: one for each wide name, one for all that are narrow.
   * @param {Branch} branch
   * @param {number} least the width of the narrowest that is shown by itself
   */
  split(branch, least) {
    const { sums } = this;
    branch.children = [];
    let smaller = 0;
    let rest = 0;
    for (let i = 0; i < sums.count; i++) {
      const name = sums.found[i];
      const total = sums.total[name];
      if (total >= least) {
        branch.children.push({ name, total, origin: sums.origin[name], smaller: 0, children: [] });
      } else {
        smaller++;
        rest += total;
      }
    }
    branch.children.sort((a, b) => b.total - a.total || a.name - b.name);
    if (smaller) branch.children.push({ name: -1, total: rest, origin: branch.origin, smaller, children: [] });
  }

  /**
   * Collects what the wide children's own children are made of.
   * @param {Entries} entries
   * @param {number} from
   * @param {number} to
   * @param {Branch} branch
   * @param {Entries} next
   * @param {{branch: Branch, from: number, to: number}[]} below
   */
  descend(entries, from, to, branch, next, below) {
    const order = this.order(entries, from, to, branch);
    let at = 0;
    for (const child of branch.children) {
      if (child.smaller) continue;
      const begin = next.count;
      const last = at + this.sums.entries[child.name];
      for (; at < last; at++) this.step(entries.node[order[at]], entries.amount[order[at]], next);
      if (next.count > begin) below.push({ branch: child, from: begin, to: next.count });
    }
  }

  /**
   * Which entries are of the wide children, one child's after the other's; good until it is asked again.
   * @param {Entries} entries
   * @param {number} from
   * @param {number} to
   * @param {Branch} branch
   */
  order(entries, from, to, branch) {
    const { place, entries: counts } = this.sums;
    let room = 0;
    for (const child of branch.children) {
      if (child.smaller) continue;
      place[child.name] = room;
      room += counts[child.name];
    }
    if (this.ordered.length < room) this.ordered = new Int32Array(room * 2);
    const order = this.ordered;
    if (room === 0) return order;
    for (let i = from; i < to; i++) {
      const name = this.name[entries.node[i]];
      if (place[name] >= 0) order[place[name]++] = i;
    }
    return order;
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
        const node = entries.node[i];
        const name = this.name[node];
        if (branch.smaller ? !wide.has(name) : name === branch.name) {
          if (branch.smaller) next.push(node, entries.amount[i]);
          else this.step(node, entries.amount[i], next);
        }
      }
      entries = next;
      above = branch;
    }
    return entries;
  }
}

/**
 * Towards the root: who called.
 * @param {Profile} profile
 * @returns {Step}
 */
export function outwards(profile) {
  const { parent } = profile;
  return (node, amount, next) => {
    if (parent[node] > 0) next.push(parent[node], amount);
  };
}

/**
 * Towards the leaves: what is called.
 * @param {Profile} profile
 * @returns {Step}
 */
export function inwards(profile) {
  const { end } = profile;
  return (node, _, next) => {
    const total = profile.total[0]; // where the numbers are changes
    for (let child = node + 1; child < end[node]; child = end[child]) {
      if (total[child] > 0) next.push(child, total[child]);
    }
  };
}
