// @ts-check
/**
 * The viewer's call tree: FORMAT.md read into flat arrays, one entry a node, in preorder.
 * A subtree is a slice [node, end[node]), so skipping one costs nothing and no walk ever recurses.
 */

import { familyOf } from "./colors.js";

/** @typedef {{type: string, unit: string}} ValueType */

const MAGIC = "HPV1";
const NO_FRAME = -1;

/** Reads bytes; every read past the end is an error, so that damaged data cannot loop. */
class ByteReader {
  /** @param {Uint8Array} bytes */
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
    this.decoder = new TextDecoder();
  }

  /** An unsigned LEB128 number; exact to 2^53. */
  varint() {
    let value = 0;
    let scale = 1;
    for (let i = 0; i < 10; i++) {
      if (this.at >= this.bytes.length) throw new Error("the profile's data is cut short");
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
    if (count > this.bytes.length - this.at) throw new Error("the profile's data is cut short");
    return count;
  }

  /** @param {number} length in bytes */
  text(length) {
    if (length > this.bytes.length - this.at) throw new Error("the profile's data is cut short");
    const text = this.decoder.decode(this.bytes.subarray(this.at, this.at + length));
    this.at += length;
    return text;
  }
}

export class Profile {
  /**
   * @param {ValueType[]} values
   * @param {string[]} names
   * @param {number} count of nodes
   */
  constructor(values, names, count) {
    this.values = values;
    this.names = names;
    this.count = count;
    /** Index into `names`, -1 for the root. */
    this.name = new Int32Array(count);
    this.kind = new Uint8Array(count);
    this.parent = new Int32Array(count);
    this.depth = new Int32Array(count);
    /** One past the last node of the subtree. */
    this.end = new Int32Array(count);
    /** Per value type: what the node itself costs, and with everything below it. */
    this.self = values.map(() => new Float64Array(count));
    this.total = values.map(() => new Float64Array(count));
    /** Where the node begins, in units of the first value. */
    this.start = new Float64Array(count);
  }

  /**
   * The whole profile's total.
   * @param {number} [value] which value type
   */
  sum(value = 0) {
    return this.total[value][0];
  }

  /** @param {number} node */
  nameOf(node) {
    return this.name[node] === NO_FRAME ? "all" : this.names[this.name[node]];
  }

  /**
   * What its colour says; a key of FAMILIES.
   * @param {number} node
   */
  familyOf(node) {
    return familyOf(this.kind[node], this.nameOf(node), this.depth[node]);
  }

  /**
   * Names from the root's child down to the node.
   * @param {number} node
   */
  pathOf(node) {
    const path = [];
    for (let at = node; at > 0; at = this.parent[at]) path.push(this.nameOf(at));
    return path.reverse();
  }

  /**
   * The node at the end of a path of names, or as far along it as this profile goes.
   * @param {string[]} path
   */
  find(path) {
    let node = 0;
    for (const name of path) {
      const child = this.childNamed(node, name);
      if (child < 0) break;
      node = child;
    }
    return node;
  }

  /**
   * @param {number} node
   * @param {string} name
   */
  childNamed(node, name) {
    for (let child = node + 1; child < this.end[node]; child = this.end[child]) {
      if (this.nameOf(child) === name) return child;
    }
    return -1;
  }
}

/**
 * @param {Uint8Array} bytes the inflated data
 * @returns {Profile}
 */
export function readProfile(bytes) {
  const reader = new ByteReader(bytes);
  if (reader.text(MAGIC.length) !== MAGIC) throw new Error("this is no hprofiler viewer data");
  const header = JSON.parse(reader.text(reader.varint()));
  const names = Array.from({ length: reader.count() }, () => reader.text(reader.varint()));
  const frames = readFrames(reader, names.length);
  const profile = new Profile(header.values, names, reader.count());
  readTree(reader, frames, profile);
  sumUp(profile);
  return profile;
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
    name[i] = reader.varint();
    kind[i] = reader.varint();
    if (name[i] >= names) throw new Error("the profile's data is damaged: a frame without a name");
  }
  return { name, kind };
}

/**
 * @param {ByteReader} reader
 * @param {{name: Int32Array, kind: Uint8Array}} frames
 * @param {Profile} profile
 */
function readTree(reader, frames, profile) {
  const pending = new Int32Array(profile.count);
  let open = -1;
  for (let node = 0; node < profile.count; node++) {
    const frame = reader.varint() - 1;
    if (frame >= frames.name.length) throw new Error("the profile's data is damaged: an unknown frame");
    profile.name[node] = frame < 0 ? NO_FRAME : frames.name[frame];
    profile.kind[node] = frame < 0 ? 0 : frames.kind[frame];
    profile.parent[node] = open;
    profile.depth[node] = open < 0 ? 0 : profile.depth[open] + 1;
    pending[node] = reader.varint();
    for (const self of profile.self) self[node] = reader.varint();
    open = node;
    while (open >= 0 && pending[open] === 0) {
      profile.end[open] = node + 1;
      open = profile.parent[open];
      if (open >= 0) pending[open]--;
    }
    if (open < 0 && node + 1 < profile.count) throw new Error("the profile's data is damaged: two roots");
  }
  if (open >= 0) throw new Error("the profile's data is cut short");
}

/**
 * Totals from the leaves up, then positions from the root down.
 * @param {Profile} profile
 */
function sumUp(profile) {
  const { count, parent, start } = profile;
  profile.total.forEach((total, value) => {
    total.set(profile.self[value]);
    for (let node = count - 1; node > 0; node--) total[parent[node]] += total[node];
  });
  const width = profile.total[0];
  const next = new Float64Array(count);
  for (let node = 1; node < count; node++) {
    start[node] = next[parent[node]];
    next[node] = start[node];
    next[parent[node]] += width[node];
  }
}
