// @ts-check
/** The call tree in the page's block of data (FORMAT.md), as flat arrays in preorder. */

import { readModules } from "./frame_kinds.js";

const CUT_SHORT = "the profile's data is cut short";
const ASCII_ONLY = new TextDecoder("latin1");
const UTF8 = new TextDecoder();

export class ByteReader {
  /**
   * @param {Uint8Array} bytes
   * @param {number} [from]
   * @param {number} [to]
   */
  constructor(bytes, from = 0, to = bytes.length) {
    this.bytes = bytes;
    this.at = from;
    this.to = to;
  }

  /** An unsigned LEB128 number; exact to 2^53. */
  varint() {
    if (this.at >= this.to) throw new Error(CUT_SHORT);
    const first = this.bytes[this.at++];
    return first < 128 ? first : this.longer(first & 127);
  }

  /** @param {number} value what the first byte held */
  longer(value) {
    let scale = 128;
    for (let i = 1; i < 10; i++) {
      if (this.at >= this.to) throw new Error(CUT_SHORT);
      const byte = this.bytes[this.at++];
      value += (byte & 127) * scale;
      if (byte < 128) return value;
      scale *= 128;
    }
    throw new Error("the profile's data is damaged: a number is too long");
  }

  /** A count of things that take at least one byte each, so it can never exceed what is left. */
  count() {
    const count = this.varint();
    if (count > this.to - this.at) throw new Error(CUT_SHORT);
    return count;
  }

  /** Where the next bytes begin, as many as their length says; they are passed over. */
  piece() {
    const length = this.count();
    const from = this.at;
    this.at += length;
    return new ByteReader(this.bytes, from, this.at);
  }

  /**
   * That many numbers, which are all there are; most take one byte. The reader itself stays where it is.
   * @param {Int32Array | Float64Array} into
   * @param {number} count
   */
  unpack(into, count) {
    const { bytes, to } = this;
    const rest = new ByteReader(bytes, this.at, to);
    let at = this.at;
    for (let i = 0; i < count; i++) {
      if (at >= to) throw new Error(CUT_SHORT);
      let value = bytes[at++];
      if (value > 127) {
        rest.at = at;
        value = rest.longer(value & 127);
        at = rest.at;
      }
      into[i] = value;
    }
    if (at !== to) throw new Error("the profile's data is damaged: there are more numbers than meant");
  }

  /** All has been read. */
  get done() {
    return this.at === this.to;
  }
}

/** A string table in the making: bytes that grow, cut into names at the end. */
export class NameBytes {
  /**
   * @param {number} count how many names there will be
   * @param {number} most bytes of all names together
   */
  constructor(count, most) {
    this.most = most;
    this.bytes = new Uint8Array(1 << 16);
    this.ends = new Int32Array(count);
    this.length = 0;
    this.last = 0;
  }

  /**
   * One more name: the first bytes of the one before, then these.
   * @param {number} index
   * @param {number} shared
   * @param {Uint8Array} rest
   */
  add(index, shared, rest) {
    const from = this.last;
    const at = this.length;
    if (shared > at - from) throw new Error("the profile's data is damaged: a name begins with too much");
    this.grow(at + shared + rest.length);
    this.bytes.copyWithin(at, from, from + shared);
    this.bytes.set(rest, at + shared);
    this.last = at;
    this.length = at + shared + rest.length;
    this.ends[index] = this.length;
  }

  /** @param {number} needed */
  grow(needed) {
    if (needed > this.most) throw new Error("the profile's data is damaged: its names are too long");
    if (needed <= this.bytes.length) return;
    const bytes = new Uint8Array(Math.max(needed, this.bytes.length * 2));
    bytes.set(this.bytes.subarray(0, this.length));
    this.bytes = bytes;
  }

  /** Names of plain ASCII are cut from one long text; decoding each by itself takes ten times as long. */
  strings() {
    const all = this.bytes.subarray(0, this.length);
    const text = ASCII_ONLY.decode(all);
    const plain = UTF8.decode(all) === text;
    /** @type {string[]} */
    const names = new Array(this.ends.length);
    let from = 0;
    for (let i = 0; i < names.length; i++) {
      const to = this.ends[i];
      names[i] = plain || isAscii(all, from, to) ? text.slice(from, to) : UTF8.decode(all.subarray(from, to));
      from = to;
    }
    return names;
  }
}

/**
 * @param {Uint8Array} bytes
 * @param {number} from
 * @param {number} to
 */
function isAscii(bytes, from, to) {
  for (let i = from; i < to; i++) if (bytes[i] > 127) return false;
  return true;
}

const MAGIC = "HPV3";
const MOST_NAME_BYTES = 1 << 29;
export const NO_NAME = -1;

export class Tree {
  /**
   * @param {string[]} names
   * @param {number} count of nodes
   */
  constructor(names, count) {
    this.names = names;
    this.count = count;
    /** Index into `names`, NO_NAME for the root. */
    this.name = new Int32Array(count);
    this.kind = new Uint8Array(count);
    this.parent = new Int32Array(count);
    this.depth = new Int32Array(count);
    /** One past the last node of the subtree. */
    this.end = new Int32Array(count);
    /** @type {Column[]} */
    this.columns = [];
    this.nodes = new Int32Array(0);
    this.values = new Float64Array(0);
  }

  /**
   * Adds a column's self values, times a weight, to an entry a node; returns their sum without the weight.
   * @param {number} column
   * @param {number} weight
   * @param {Float64Array} self
   */
  addTo(column, weight, self) {
    const { count, nodes, values } = this.unpack(column);
    let sum = 0;
    for (let i = 0; i < count; i++) {
      self[nodes[i]] += values[i] * weight;
      sum += values[i];
    }
    return sum;
  }

  /** @param {number} column */
  sumOf(column) {
    const { count, values } = this.unpack(column);
    let sum = 0;
    for (let i = 0; i < count; i++) sum += values[i];
    return sum;
  }

  /**
   * Calls `entry` for each node that the column has a value of, in their order.
   * @param {number} column
   * @param {(node: number, value: number) => void} entry
   */
  eachEntry(column, entry) {
    const { count, nodes, values } = this.unpack(column);
    for (let i = 0; i < count; i++) entry(nodes[i], values[i]);
  }

  /**
   * A column's nodes and values, good until the next one is unpacked.
   * @param {number} column
   */
  unpack(column) {
    const { entries, nodes, values } = this.columns[column];
    if (this.nodes.length < entries) {
      this.nodes = new Int32Array(entries);
      this.values = new Float64Array(entries);
    }
    nodes.unpack(this.nodes, entries);
    values.unpack(this.values, entries);
    let node = 0;
    for (let i = 0; i < entries; i++) {
      node += this.nodes[i];
      if (this.nodes[i] < 0 || node >= this.count) throw new Error("the profile's data is damaged: an unknown node");
      this.nodes[i] = node;
    }
    return { count: entries, nodes: this.nodes, values: this.values };
  }
}

/**
 * Sparse self values, still packed: where the node numbers and the values begin.
 * @typedef {{entries: number, nodes: ByteReader, values: ByteReader}} Column
 */

/**
 * @param {Uint8Array} bytes the inflated data
 * @returns {Tree}
 */
export function readTree(bytes) {
  for (let i = 0; i < MAGIC.length; i++) {
    if (bytes[i] !== MAGIC.charCodeAt(i)) throw new Error("the profile's data is none of this viewer's");
  }
  const reader = new ByteReader(bytes, MAGIC.length);
  const names = readNames(reader);
  const frames = readFrames(reader, names.length);
  const count = reader.varint();
  const frameOf = reader.piece();
  const children = reader.piece();
  if (count < 1 || count > children.to - children.at) throw new Error("the profile's data is cut short");
  const tree = new Tree(names, count);
  readNodes(tree, frames, frameOf);
  readShape(tree, children);
  tree.columns = readColumns(reader);
  readModules(reader, names);
  if (!reader.done) throw new Error("the profile's data is damaged: something follows it");
  return tree;
}

/** @param {ByteReader} reader */
function readNames(reader) {
  const count = reader.count();
  const names = new NameBytes(count, MOST_NAME_BYTES);
  for (let i = 0; i < count; i++) {
    const shared = reader.varint();
    const rest = reader.piece();
    names.add(i, shared, rest.bytes.subarray(rest.at, rest.to));
  }
  return names.strings();
}

/**
 * @param {ByteReader} reader
 * @param {number} names how many there are
 */
function readFrames(reader, names) {
  const count = reader.count();
  const name = new Int32Array(count);
  const kind = new Uint8Array(count);
  for (let i = 0; i < count; i++) {
    const index = reader.varint(); // before it has to fit into an array
    const tier = reader.varint();
    if (index >= names || tier > 6) throw new Error("the profile's data is damaged: an unknown frame");
    name[i] = index;
    kind[i] = tier;
  }
  return { name, kind };
}

/**
 * @param {Tree} tree
 * @param {{name: Int32Array, kind: Uint8Array}} frames
 * @param {ByteReader} frameOf
 */
function readNodes(tree, frames, frameOf) {
  const { name, kind, count } = tree;
  name[0] = NO_NAME;
  const below = name.subarray(1);
  frameOf.unpack(below, count - 1);
  for (let node = 1; node < count; node++) {
    const frame = name[node];
    if (frame < 0 || frame >= frames.name.length) throw new Error("the profile's data is damaged: an unknown frame");
    name[node] = frames.name[frame];
    kind[node] = frames.kind[frame];
  }
}

/**
 * From the numbers of children to parents, depths and ends.
 * @param {Tree} tree
 * @param {ByteReader} children
 */
function readShape(tree, children) {
  const { parent, depth, end, count } = tree;
  const pending = new Int32Array(count);
  children.unpack(pending, count);
  let open = -1;
  for (let node = 0; node < count; node++) {
    if (open < 0 && node > 0) throw new Error("the profile's data is damaged: two roots");
    parent[node] = open;
    depth[node] = open < 0 ? 0 : depth[open] + 1;
    open = node;
    while (open >= 0 && pending[open] === 0) {
      end[open] = node + 1;
      open = parent[open];
      if (open >= 0) pending[open]--;
    }
  }
  if (open >= 0) throw new Error("the profile's data is damaged: its tree is not whole");
}

/** @param {ByteReader} reader */
function readColumns(reader) {
  /** @type {Column[]} */
  const columns = new Array(reader.count());
  for (let i = 0; i < columns.length; i++) {
    const entries = reader.count();
    columns[i] = { entries, nodes: reader.piece(), values: reader.piece() };
  }
  return columns;
}
