// @ts-check
/**
 * A call tree with the numbers of one scope, and the pool of number arrays that scopes share.
 *
 * Graphs draw, and tables list, anything of this shape: the page's tree with a scope's numbers, or another tree that
 * a view built. Nodes without a total are skipped everywhere.
 */

import { FAMILY_KEYS, familyNumber, ofMemory } from "./frame_kinds.js";
import { NO_NAME } from "./tree.js";
import { kindsOfFrames, sumsOfKinds } from "./waits.js";
import { categoriesOf } from "./work.js";

/** @import { EventInfo } from "./page.js" */
/** @import { PackedWaits } from "./tree.js" */
/** @import { Waits } from "./waits.js" */

/**
 * Nodes in preorder; see Tree.
 * @typedef {object} Shape
 * @property {string[]} names
 * @property {number} count
 * @property {Int32Array} name
 * @property {Uint8Array} kind
 * @property {Int32Array} parent
 * @property {Int32Array} depth
 * @property {Int32Array} end
 * @property {PackedWaits | null} [waits] what threads do whose stacks end in a node, if that is known
 * @property {Waits | null} [doing] the same unpacked, of a tree that was changed
 * @property {Int32Array} [kindDepth] the depth that says what a frame is, where that is not its own
 */

export class Profile {
  /**
   * @param {Shape} shape
   * @param {EventInfo} event what the numbers count
   * @param {Float64Array} self an entry a node
   * @param {Float64Array} [total] where it is not simply the sum of what is below
   */
  constructor(shape, event, self, total = sumUp(shape, self)) {
    this.shape = shape;
    this.names = shape.names;
    this.count = shape.count;
    this.name = shape.name;
    this.kind = shape.kind;
    this.parent = shape.parent;
    this.depth = shape.depth;
    this.kindDepth = shape.kindDepth ?? shape.depth;
    /** One past the last node of the subtree. */
    this.end = shape.end;
    this.event = event;
    this.own = { self, total };
  }

  /** What each node itself costs. */
  get self() {
    return this.own.self;
  }

  /** What each node costs with everything below it. */
  get total() {
    return this.own.total;
  }

  /**
   * Where a node begins, in units of the value: children stand side by side from their parent's left edge.
   * @param {number} node
   */
  startOf(node) {
    const { parent, end, total } = this;
    let start = 0;
    for (const at of this.pathOf(node)) {
      for (let before = parent[at] + 1; before < at; before = end[before]) start += total[before];
    }
    return start;
  }

  /** The category's number of each node, by frames alone. */
  get categories() {
    return categoriesOf(this.shape, !ofMemory(this.event.type));
  }

  /**
   * What each category costs, by number; null where only nodes are known.
   * @returns {Float64Array | null}
   */
  get work() {
    return null;
  }

  /**
   * The kind of waiting that takes most below a frame.
   * @param {number} node
   */
  waitKindOf(node) {
    return kindsOfFrames(this)[node];
  }

  /** What threads do by kind; null where only frames are known. @returns {Float64Array | null} */
  get waitSums() {
    return sumsOfKinds(this);
  }

  /** The whole profile's total. */
  sum() {
    return this.total[0];
  }

  /** @param {number} node */
  nameOf(node) {
    return this.name[node] === NO_NAME ? "all" : this.names[this.name[node]];
  }

  /**
   * A key of FAMILIES.
   * @param {number} node
   */
  familyOf(node) {
    const number = familyNumber(this.names, this.name[node], this.kind[node], this.kindDepth[node], this.event.type);
    return FAMILY_KEYS[number];
  }

  /**
   * Nodes from the root's child down to the node.
   * @param {number} node
   */
  pathOf(node) {
    const path = [];
    for (let at = node; at > 0; at = this.parent[at]) path.push(at);
    return path.reverse();
  }

  /**
   * The node itself, or the nearest above it that has anything here.
   * @param {number} node
   */
  present(node) {
    let at = node < this.count ? node : 0;
    while (at > 0 && this.total[at] === 0) at = this.parent[at];
    return at;
  }
}

/**
 * Totals from the leaves up.
 * @param {Shape} shape
 * @param {Float64Array} self
 * @param {Float64Array} [total] is filled with them
 */
function sumUp({ count, parent }, self, total = new Float64Array(self.length)) {
  total.set(self);
  for (let node = count - 1; node > 0; node--) {
    if (total[node] !== 0) total[parent[node]] += total[node]; // most scopes have nothing of most nodes
  }
  return total;
}

/**
 * Self and total of each node, and the profile they are of; null while they are filled.
 * @typedef {{profile: PooledProfile | null, self: Float64Array, total: Float64Array, used: number}} Buffer
 */

const NONE = new Float64Array(0);

/**
 * Buffers for profiles of one shape, 16 bytes per node. The buffer used last is never reused, because a comparison
 * reads both sides in turn. Callers must not need more than two, or keep an array.
 */
export class BufferPool {
  /** @param {number} most how many, 2 or more */
  constructor(most) {
    this.most = most;
    /** @type {Buffer[]} */
    this.buffers = [];
    this.clock = 0;
  }

  /**
   * The profile's numbers. Without a buffer they are read, into a new one or the least recently used one, if possible
   * one that is quickly read again.
   * @param {PooledProfile} profile
   */
  of(profile) {
    let buffer = this.held(profile);
    if (!buffer) {
      const { count } = profile;
      if (this.buffers.length < this.most) {
        this.buffers.push({ profile: null, self: new Float64Array(count), total: new Float64Array(count), used: 0 });
      }
      const free = this.buffers.sort((a, b) => a.used - b.used).slice(0, Math.max(1, this.buffers.length - 1));
      buffer = free.find((one) => !one.profile?.long) ?? free[0];
      buffer.profile = null;
      buffer.self.fill(0);
      profile.fill(buffer.self);
      sumUp(profile, buffer.self, buffer.total);
      buffer.profile = profile;
    }
    buffer.used = ++this.clock;
    return buffer;
  }

  /**
   * The profile's buffer, if it has one.
   * @param {PooledProfile} profile
   */
  held(profile) {
    return this.buffers.find((one) => one.profile === profile) ?? null;
  }

  /** Drops all of them: profiles read their numbers anew. */
  clear() {
    this.buffers = [];
  }
}

export class PooledProfile extends Profile {
  /**
   * @param {Shape} shape
   * @param {EventInfo} event
   * @param {BufferPool} pool
   * @param {(self: Float64Array) => void} fill adds the self value of each node to zeros
   * @param {boolean} [long] whether that takes long
   */
  constructor(shape, event, pool, fill, long = false) {
    super(shape, event, NONE, NONE);
    this.pool = pool;
    this.fill = fill;
    this.long = long;
  }

  /** @override */
  get self() {
    return this.pool.of(this).self;
  }

  /** @override */
  get total() {
    return this.pool.of(this).total;
  }
}
