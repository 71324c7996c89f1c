/**
 * The viewer's reader of a page's data gets blocks with changes: `node block.mjs VIEWER SECONDS SEED CORPUS FOUND`.
 * VIEWER is a folder with its modules, SECONDS are of CPU time; with 0 what is in CORPUS is read once.
 * Each must be read, or be refused in the reader's own words, soon and with little memory: node runs with a small heap.
 */

import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [viewer, seconds, seed, corpus, found] = process.argv.slice(2);
const module = (name) => import(pathToFileURL(join(resolve(viewer), name)).href);
const { readTree } = await module("data/tree.js");
const { moduleOf } = await module("data/frame_kinds.js");
const { Times } = await module("data/times.js");

const MOST_SECONDS = 10;
const MOST_BYTES = 256 << 20;
const LONGEST = 8192;
const OWN_WORDS = /^the profile's data is /;

/** What became of an input, in a few words: inputs of which they are new are changed further. */
function told(bytes) {
  try {
    const tree = readTree(bytes);
    let sum = 0;
    const times = new Times(tree);
    const all = { range: { from: 0, to: Number.MAX_VALUE }, bands: null };
    for (let column = 0; column < tree.columns.length; column++) {
      tree.eachEntry(column, (_, value) => (sum += value));
      times.eachEntry(column, all, () => {});
    }
    for (let node = 0; node < tree.count; node++) {
      const name = tree.name[node];
      if (node > 0 && typeof tree.names[name] !== "string") throw new TypeError(`node ${node} has no name`);
      if (tree.end[node] <= node || tree.end[node] > tree.count) throw new TypeError(`node ${node} has no end`);
      moduleOf(tree, node);
    }
    return `${tree.count} ${tree.names.length} ${tree.columns.length} ${tree.times.size} ${Math.min(sum, 99)}`;
  } catch (error) {
    if (error.constructor === Error && OWN_WORDS.test(error.message)) return error.message;
    throw error;
  }
}

function tried(bytes) {
  const begin = process.cpuUsage();
  const before = taken();
  const words = told(bytes);
  const { user, system } = process.cpuUsage(begin);
  if (user + system > MOST_SECONDS * 1e6) throw new Error(`it took ${(user + system) / 1e6} s`);
  const more = taken() - before;
  if (more > MOST_BYTES) throw new Error(`it took ${more} bytes`);
  return words;
}

/** Bytes of arrays, and of all else. */
function taken() {
  const { arrayBuffers, heapUsed } = process.memoryUsage();
  return arrayBuffers + heapUsed;
}

/** Numbers below 2^32, the same again for the same seed. */
function numbers(state) {
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

const random = numbers(Number(seed));
const EDGES = [[0], [1], [127], [128, 1], [255, 255, 3], [255, 255, 255, 255, 7], [128, 128, 128, 128, 8], [255, 255, 255, 255, 15]];
EDGES.push([255, 255, 255, 255, 255, 255, 255, 15], Array(9).fill(255).concat(1), Array(12).fill(128));

/** One change; `other` is another input. */
function changed(bytes, other) {
  const at = random(bytes.length + 1);
  const length = 1 + random(8);
  const piece = random(2) ? EDGES[random(EDGES.length)] : [random(256)];
  const from = random(other.length + 1);
  switch (random(6)) {
    case 0:
      return spliced(bytes, at, 0, piece);
    case 1:
      return spliced(bytes, at, length, []);
    case 2:
      return spliced(bytes, at, piece.length, piece);
    case 3:
      return spliced(bytes, at, 0, other.subarray(from, from + 1 + random(64)));
    case 4:
      return spliced(bytes, at, bytes.length, other.subarray(from));
    default:
      return spliced(bytes, at, 1, [bytes[at] ^ (1 << random(8))]);
  }
}

function spliced(bytes, at, removed, added) {
  return Buffer.concat([bytes.subarray(0, at), Uint8Array.from(added), bytes.subarray(at + removed)]).subarray(0, LONGEST);
}

function keep(folder, bytes) {
  const path = join(folder, createHash("sha256").update(bytes).digest("hex").slice(0, 16));
  writeFileSync(path, bytes);
  return path;
}

const known = new Set();
const inputs = [];
let runs = 0;

function attempt(bytes) {
  runs++;
  try {
    const words = tried(bytes);
    if (known.has(words)) return;
    known.add(words);
    inputs.push(bytes);
    if (Number(seconds) > 0) keep(corpus, bytes);
  } catch (error) {
    console.error(`${keep(found, bytes)}: ${error.stack}`);
    process.exit(1);
  }
}

for (const name of readdirSync(corpus).sort()) attempt(readFileSync(join(corpus, name)));
const used = () => (process.cpuUsage().user + process.cpuUsage().system) / 1e6;
while (used() < Number(seconds)) {
  for (let round = 0; round < 1000; round++) {
    let bytes = inputs[random(inputs.length)];
    for (let left = 1 + random(5); left > 0; left--) bytes = changed(bytes, inputs[random(inputs.length)]);
    attempt(bytes);
  }
}
console.log(`runs: ${runs}`);
