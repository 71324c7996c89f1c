// @ts-check
/**
 * Exports as text (folded stacks, speedscope), and what all exports share: whole amounts, frames with their kind,
 * files put together piece by piece.
 */

/** @import { Profile } from "../data/profile.js" */

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
 * Calls `stack` for each node with a self value. The fractions of an average are rounded so that their sum stays the
 * same.
 * @param {Profile} profile
 * @param {(node: number, amount: number) => void} stack
 */
export function eachStack(profile, stack) {
  const self = profile.self;
  let sum = 0;
  let written = 0;
  for (let node = 0; node < profile.count; node++) {
    if (self[node] === 0) continue;
    sum += self[node];
    const amount = Math.round(sum) - written;
    written += amount;
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
 * Numbers a profile's frames (name and kind) from 0, in the order of their first nodes.
 * @param {Profile} profile
 * @returns {{numbers: Int32Array, first: number[]}} a number a node, -1 without a value; the first node of each
 * frame
 */
export function numberFrames({ count, name, kind, names, total }) {
  const kinds = SUFFIXES.length;
  const known = new Int32Array(names.length * kinds).fill(-1);
  const numbers = new Int32Array(count).fill(-1);
  /** @type {number[]} */
  const first = [];
  for (let node = 1; node < count; node++) {
    if (total[node] === 0) continue;
    const frame = name[node] * kinds + kind[node];
    if (known[frame] < 0) known[frame] = first.push(node) - 1;
    numbers[node] = known[frame];
  }
  return { numbers, first };
}

const KNOWN_UNITS = ["bytes", "nanoseconds"];

/**
 * A line for each stack: frames from the root on, an amount.
 * @param {Profile} profile
 */
export function toFolded(profile) {
  const file = new TextFile();
  const { numbers, first } = numberFrames(profile);
  const texts = first.map((node) => annotated(profile, node).replaceAll(";", ":").replace(/[\r\n]/g, " "));
  eachStack(profile, (node, amount) => {
    const frames = profile.pathOf(node).map((at) => texts[numbers[at]]);
    file.put(`${frames.join(";")} ${amount}\n`);
  });
  return file.finish("text/plain");
}

/** @param {Profile} profile */
export function toSpeedscope(profile) {
  const file = new TextFile();
  const { numbers, first } = numberFrames(profile);
  const { title, type, unit } = profile.event;
  const frames = first.map((node) => ({ name: annotated(profile, node) }));
  let total = 0;
  eachStack(profile, (_, amount) => (total += amount));
  const head = { type: "sampled", name: title, unit: KNOWN_UNITS.includes(unit) ? unit : "none", startValue: 0, endValue: total };
  file.put('{"$schema":"https://www.speedscope.app/file-format-schema.json","exporter":"hprofiler","shared":');
  file.put(`${JSON.stringify({ frames })},"profiles":[`);
  file.put(JSON.stringify({ ...head, value: { name: type, unit } }).slice(0, -1));
  file.put(',"samples":[');
  let comma = "";
  eachStack(profile, (node) => {
    file.put(`${comma}[${profile.pathOf(node).map((at) => numbers[at])}]`);
    comma = ",";
  });
  file.put('],"weights":[');
  comma = "";
  eachStack(profile, (_, amount) => {
    file.put(comma + amount);
    comma = ",";
  });
  file.put("]}]}\n");
  return file.finish("application/json");
}
