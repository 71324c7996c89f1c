// @ts-check
/**
 * FORMAT.md read into flat arrays: one call tree of all events and processes, in preorder, and columns of self values.
 * A subtree is a slice [node, end[node]), so skipping one costs nothing and no walk ever recurses.
 */

import { ByteReader, NameBytes } from "./bytes.js";
import { readModules } from "./modules.js";

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
   * Adds a column's self values, times a weight, to an entry a node; tells their sum without the weight.
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
