// @ts-check
/** The call tree in the page's block of data (FORMAT.md), as flat arrays in preorder. */

import { readModules } from "./frame_kinds.js";

const CUT_SHORT = "the profile's data is cut short";
const ASCII_ONLY = new TextDecoder("latin1");
const UTF8 = new TextDecoder();

/** @param {string} why */
export function damaged(why) {
  return new Error(`the profile's data is damaged: ${why}`);
}

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
    if (first < 128) return first;
    let value = first & 127;
    for (let scale = 128; scale < 2 ** 70; scale *= 128) {
      if (this.at >= this.to) throw new Error(CUT_SHORT);
      const byte = this.bytes[this.at++];
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
    throw damaged("a number is too long");
  }

  /** A count of things that take at least one byte each, so it can never exceed what is left. */
  count() {
    const count = this.varint();
    if (count > this.to - this.at) throw new Error(CUT_SHORT);
    return count;
  }

  /** A reader of the next bytes, as many as their length says; they are passed over. */
  piece() {
    const length = this.count();
    this.at += length;
    return new ByteReader(this.bytes, this.at - length, this.at);
  }

  /** Another reader of the same bytes. */
  copy() {
    return new ByteReader(this.bytes, this.at, this.to);
  }

  /**
   * Fills an array with numbers, which must be all there are.
   * @param {Int32Array | Uint32Array | Uint8Array | Float64Array} into
   */
  unpack(into) {
    for (let i = 0; i < into.length; i++) into[i] = this.varint();
    this.end();
  }

  /** There must be nothing left. */
  end() {
    if (this.at !== this.to) throw damaged("there are more numbers than meant");
  }
}

const MAGIC = "HPV4";
const MOST_NAME_BYTES = 1 << 29;
export const NO_NAME = -1;

/** Sparse self values, still packed: node numbers and values. @typedef {{entries: number, nodes: ByteReader, values: ByteReader}} Column */
/**
 * When the samples of a column were taken, still packed: a number a row in each piece. Microseconds since the page's
 * time zero.
 * @typedef {object} PackedTimes
 * @property {number} start of bucket 0
 * @property {number} width of a bucket
 * @property {number} rows
 * @property {ByteReader} buckets
 * @property {ByteReader} nodes
 * @property {ByteReader} samples
 * @property {ByteReader | null} amounts
 * @property {ByteReader | null} bands
 */
/**
 * What threads do whose stacks end in a node, where they wait, still packed: nodes, what is done, and how many frames
 * above the method is that does it.
 * @typedef {{entries: number, nodes: ByteReader, does: ByteReader, above: ByteReader}} PackedWaits
 */

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
    /** By column. @type {Map<number, PackedTimes>} */
    this.times = new Map();
    /** @type {PackedWaits | null} */
    this.waits = null;
  }

  /**
   * Calls `entry` for each node that the column has a value of, in their order.
   * @param {number} column
   * @param {(node: number, value: number) => void} entry
   */
  eachEntry(column, entry) {
    const { entries, nodes, values } = this.columns[column];
    const [steps, amounts] = [nodes.copy(), values.copy()];
    let node = 0;
    for (let i = 0; i < entries; i++) {
      node += steps.varint();
      if (node >= this.count) throw damaged("an unknown node");
      entry(node, amounts.varint());
    }
    steps.end();
    amounts.end();
  }
}

/**
 * @param {Uint8Array} bytes the inflated data
 * @returns {Tree}
 */
export function readTree(bytes) {
  for (let i = 0; i < MAGIC.length; i++) {
    if (bytes[i] !== MAGIC.charCodeAt(i)) throw new Error("the profile's data is not in this viewer's format");
  }
  const reader = new ByteReader(bytes, MAGIC.length);
  const names = readNames(reader);
  const frames = new Int32Array(reader.count());
  const kinds = new Uint8Array(frames.length);
  for (let i = 0; i < frames.length; i++) {
    const [name, kind] = [reader.varint(), reader.varint()]; // before they have to fit into an array
    if (name >= names.length || kind > 6) throw damaged("an unknown frame");
    frames[i] = name;
    kinds[i] = kind;
  }
  const count = reader.varint();
  const frameOf = reader.piece();
  const children = reader.piece();
  if (count < 1 || count > children.to - children.at) throw new Error(CUT_SHORT);
  const tree = new Tree(names, count);
  tree.name[0] = NO_NAME;
  frameOf.unpack(tree.name.subarray(1));
  for (let node = 1; node < count; node++) {
    const frame = tree.name[node];
    if (frame < 0 || frame >= frames.length) throw damaged("an unknown frame");
    tree.name[node] = frames[frame];
    tree.kind[node] = kinds[frame];
  }
  readShape(tree, children);
  tree.columns = new Array(reader.count());
  for (let i = 0; i < tree.columns.length; i++) {
    tree.columns[i] = { entries: reader.count(), nodes: reader.piece(), values: reader.piece() };
  }
  readTimes(tree, reader);
  readModules(reader, names);
  if (reader.at !== reader.to) {
    tree.waits = { entries: reader.count(), nodes: reader.piece(), does: reader.piece(), above: reader.piece() };
  }
  if (reader.at !== reader.to) throw damaged("something follows it");
  return tree;
}

const [AMOUNTS, BANDS] = [1, 2];

/**
 * @param {Tree} tree is given its times
 * @param {ByteReader} reader
 */
function readTimes({ columns, times }, reader) {
  for (let left = reader.count(); left > 0; left--) {
    const [column, start, width] = [reader.varint(), reader.varint(), reader.varint()];
    const [flags, rows] = [reader.varint(), reader.varint()];
    if (column >= columns.length || times.has(column) || width === 0) throw damaged("times of no column");
    const [buckets, nodes, samples] = [reader.piece(), reader.piece(), reader.piece()];
    const amounts = flags & AMOUNTS ? reader.piece() : null;
    const bands = flags & BANDS ? reader.piece() : null;
    if (rows > nodes.to - nodes.at) throw new Error(CUT_SHORT);
    times.set(column, { start, width, rows, buckets, nodes, samples, amounts, bands });
  }
}

/**
 * Each name is the first bytes of the one before, then others.
 * @param {ByteReader} reader
 */
function readNames(reader) {
  const ends = new Int32Array(reader.count());
  let bytes = new Uint8Array(1 << 16);
  let [last, length] = [0, 0];
  for (let i = 0; i < ends.length; i++) {
    const shared = reader.varint();
    const rest = reader.piece();
    const needed = length + shared + rest.to - rest.at;
    if (shared > length - last) throw damaged("a name begins with too much");
    if (needed > MOST_NAME_BYTES) throw damaged("its names are too long");
    if (needed > bytes.length) {
      const wider = new Uint8Array(Math.max(needed, bytes.length * 2));
      wider.set(bytes.subarray(0, length));
      bytes = wider;
    }
    bytes.copyWithin(length, last, last + shared);
    bytes.set(rest.bytes.subarray(rest.at, rest.to), length + shared);
    last = length;
    ends[i] = length = needed;
  }
  // Names of plain ASCII are cut from one long text; decoding each by itself takes ten times as long.
  const all = bytes.subarray(0, length);
  const text = ASCII_ONLY.decode(all);
  const plain = UTF8.decode(all) === text;
  let from = 0;
  return Array.from(ends, (to) => {
    const name = text.slice(from, to);
    const decoded = plain || !/[^\0-\x7f]/.test(name) ? name : UTF8.decode(all.subarray(from, to));
    from = to;
    return decoded;
  });
}

/**
 * From the numbers of children to parents, depths and ends.
 * @param {Tree} tree
 * @param {ByteReader} children
 */
function readShape({ parent, depth, end, count }, children) {
  const pending = new Int32Array(count);
  children.unpack(pending);
  let open = -1;
  for (let node = 0; node < count; node++) {
    if (open < 0 && node > 0) throw damaged("two roots");
    parent[node] = open;
    depth[node] = open < 0 ? 0 : depth[open] + 1;
    open = node;
    while (open >= 0 && pending[open] === 0) {
      end[open] = node + 1;
      open = parent[open];
      if (open >= 0) pending[open]--;
    }
  }
  if (open >= 0) throw damaged("its tree is not whole");
}
