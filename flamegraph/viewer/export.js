// @ts-check
/** What all exports share: whole amounts, frames with their kind, and files put together piece by piece. */

/** @typedef {import("./profile.js").Profile} Profile */

/** By kind; the last two are of classes. */
const SUFFIXES = ["", "_[0]", "_[1]", "_[j]", "_[i]", "_[k]", "_[w]", "_[i]", "_[k]"];
const PIECE_CHARACTERS = 1 << 20;

/** A file in the making: pieces leave the heap as they are finished. */
export class TextFile {
  constructor() {
    /** @type {Blob[]} */
    this.pieces = [];
    /** @type {string[]} */
    this.texts = [];
    this.length = 0;
  }

  /** @param {string} text */
  put(text) {
    this.texts.push(text);
    this.length += text.length;
    if (this.length >= PIECE_CHARACTERS) this.flush();
  }

  flush() {
    this.pieces.push(new Blob([this.texts.join("")]));
    this.texts = [];
    this.length = 0;
  }

  /** @param {string} type */
  finish(type) {
    this.flush();
    return new Blob(this.pieces, { type });
  }
}

/**
 * Calls `stack` for each node that has something itself. Amounts of a mean are fractions: they are rounded so that
 * their sum stays what it is.
 * @param {Profile} profile
 * @param {(node: number, amount: number) => void} stack
 */
export function eachStack(profile, stack) {
  const self = profile.self[0];
  let sum = 0;
  let told = 0;
  for (let node = 0; node < profile.count; node++) {
    if (self[node] === 0) continue;
    sum += self[node];
    const amount = Math.round(sum) - told;
    told += amount;
    if (amount > 0) stack(node, amount);
  }
}

/**
 * A frame's name with its kind, as in folded text.
 * @param {Profile} profile
 * @param {number} node
 */
export function annotated(profile, node) {
  return profile.nameOf(node) + SUFFIXES[profile.kind[node]];
}

/**
 * Numbers the frames (name and kind) that a profile has anything of from 0, in the order in which they first appear.
 * @param {Profile} profile
 * @returns {{numbers: Int32Array, first: number[]}} a number a node, -1 for the root and where nothing is; the first
 * node of each frame
 */
export function numberFrames({ count, name, kind, names, total }) {
  const kinds = SUFFIXES.length;
  const known = new Int32Array(names.length * kinds).fill(-1);
  const numbers = new Int32Array(count).fill(-1);
  /** @type {number[]} */
  const first = [];
  for (let node = 1; node < count; node++) {
    if (total[0][node] === 0) continue;
    const frame = name[node] * kinds + kind[node];
    if (known[frame] < 0) known[frame] = first.push(node) - 1;
    numbers[node] = known[frame];
  }
  return { numbers, first };
}
