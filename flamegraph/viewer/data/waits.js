// @ts-check
/** What threads do that wait, as the core decided it for each stack: its kind, its words, and the method that waits. */

import { once } from "./format.js";
import { damaged } from "./tree.js";
import { frameRules } from "./work.js";

/** @import { Profile, Shape } from "./profile.js" */

/**
 * Of each node in which stacks end: what their threads do, 0 if they run; and how many frames above the method is that
 * does it.
 * @typedef {{does: Uint8Array, above: Uint8Array}} Waits
 */

/** Values of events whose threads may wait. */
const OF_THREADS = new Set(["threads", "wall", "wall_samples", "offcpu", "offcpu_samples", "contentions", "delay"]);
/** In these no thread runs. */
const [WAITING_ONLY, FARTHEST] = [new Set(["offcpu", "offcpu_samples", "contentions", "delay"]), 255];

/**
 * Whether threads of an event may wait.
 * @param {string} type of its value
 */
export function countsWaits(type) {
  return OF_THREADS.has(type);
}

/** Of trees that do not know it every thread runs. @type {(shape: Shape) => Waits} */
const runs = once(({ count }) => ({ does: new Uint8Array(count), above: new Uint8Array(count) }));

/**
 * @param {Shape} shape
 * @returns {Waits}
 */
export function waitsOf(shape) {
  return shape.doing ?? (shape.waits ? unpacked(shape) : runs(shape));
}

/**
 * Whether it is known of a tree what threads do.
 * @param {Shape} shape
 */
export function knowsWaits(shape) {
  return Boolean(shape.doing ?? shape.waits);
}

/**
 * The same of a tree that was made from another one.
 * @param {Shape} from
 * @param {Shape} to
 * @param {Int32Array} place where each node went
 * @returns {Waits | null} null if it is not known
 */
export function movedWaits(from, to, place) {
  if (!knowsWaits(from)) return null;
  const known = waitsOf(from);
  const moved = { does: new Uint8Array(to.count), above: new Uint8Array(to.count) };
  for (let node = 1; node < from.count; node++) {
    if (known.does[node] === 0 && known.above[node] === 0) continue;
    let at = node;
    for (let left = known.above[node]; left > 0; left--) at = from.parent[at];
    moved.does[place[node]] = known.does[node];
    moved.above[place[node]] = Math.min(FARTHEST, Math.max(0, to.depth[place[node]] - to.depth[place[at]]));
  }
  return moved;
}

const unpacked = once((/** @type {Shape} */ { count, depth, waits }) => {
  const [does, above] = [new Uint8Array(count), new Uint8Array(count)];
  if (!waits) return { does, above };
  const [nodes, codes, frames] = [waits.nodes.copy(), waits.does.copy(), waits.above.copy()];
  const known = frameRules().doing.length;
  for (let node = 0, left = waits.entries; left > 0; left--) {
    node += nodes.varint();
    const [code, distance] = [codes.varint(), frames.varint()];
    if (node >= count || code >= known || distance > depth[node]) throw damaged("an unknown wait");
    does[node] = code;
    above[node] = Math.min(FARTHEST, distance);
  }
  return { does, above };
});

/**
 * How tables say what a thread does: "sleeps in".
 * @param {number} does
 */
export function saysOf(does) {
  return frameRules().doing[does][2];
}

/**
 * The same of no method: "sleeps", "runs".
 * @param {number} does
 */
export function wordsOf(does) {
  return saysOf(does).replace(/ in$/, "");
}

/** For each node in which stacks end the frame of the method that waits. @type {(shape: Shape) => Int32Array} */
export const waitersOf = once((/** @type {Shape} */ shape) => {
  const { count, parent } = shape;
  const { above } = waitsOf(shape);
  return Int32Array.from({ length: count }, (_, node) => {
    let at = node;
    for (let left = above[node]; left > 0; left--) at = parent[at];
    return at;
  });
});

/**
 * The name of the method that waits where a stack ends.
 * @param {Profile} profile
 * @param {number} node
 */
export function waiterOf(profile, node) {
  return profile.nameOf(waitersOf(profile.shape)[node]);
}

/** The codes of the kinds of waiting, in the order of legends. */
export function waitKinds() {
  return frameRules().doing_kinds.map(([code]) => code);
}

/** @param {number} kind its place among `waitKinds` */
export function waitKindLabel(kind) {
  return frameRules().doing_kinds[kind][1];
}

/** By what threads do the place of its kind. */
function kindsOfDoing() {
  const kinds = waitKinds();
  return frameRules().doing.map(([, kind]) => kinds.indexOf(kind));
}

/** @type {(shape: Shape) => Map<boolean, Uint8Array>} */
const kindsOfTrees = once(() => new Map());

/**
 * The kind of each node in which stacks end, as its place among `waitKinds`.
 * @param {Shape} shape
 * @param {string} type of the event's value
 */
export function kindsOfNodes(shape, type) {
  const [known, waiting] = [kindsOfTrees(shape), WAITING_ONLY.has(type)];
  const before = known.get(waiting);
  if (before) return before;
  const kinds = kindsOfDoing();
  if (waiting) kinds[0] = waitKinds().indexOf("other");
  const of = waitsOf(shape).does.map((does) => kinds[does]);
  known.set(waiting, of);
  return of;
}

/** Of each node 1 if threads whose stacks end there wait for work. @param {Shape} shape */
export function idleNodes(shape) {
  const idle = waitKinds().indexOf("idle");
  return kindsOfNodes(shape, "wall").map((kind) => Number(kind === idle));
}

/** Of each frame the kind that takes most below it. @type {(profile: Profile) => Uint8Array} */
export const kindsOfFrames = once((/** @type {Profile} */ profile) => {
  const { shape, event, self, parent, count } = profile;
  const of = kindsOfNodes(shape, event.type);
  const kinds = of.slice();
  const [sum, most] = [new Float64Array(count), new Float64Array(count)];
  for (const [kind, whole] of sumsOfKinds(profile).entries()) {
    if (whole === 0) continue;
    for (let node = 0; node < count; node++) sum[node] = of[node] === kind ? self[node] : 0;
    for (let node = count - 1; node > 0; node--) {
      if (sum[node] === 0) continue;
      sum[parent[node]] += sum[node];
      if (sum[node] <= most[node]) continue;
      most[node] = sum[node];
      kinds[node] = kind;
    }
  }
  return kinds;
});

/**
 * What stacks of each kind cost, by its place among `waitKinds`.
 * @param {Profile} profile
 */
export function sumsOfKinds({ shape, event, self, count }) {
  const kinds = kindsOfNodes(shape, event.type);
  const sums = new Float64Array(waitKinds().length);
  for (let node = 1; node < count; node++) sums[kinds[node]] += self[node];
  return sums;
}

/**
 * What threads below a frame do, the longest first: the numbers of what they do, and their values.
 * @param {Profile} profile
 * @param {number} node
 * @returns {[does: number, value: number][]}
 */
export function doneBelow({ shape, self, end }, node) {
  const { does } = waitsOf(shape);
  const sums = new Float64Array(frameRules().doing.length);
  for (let at = node; at < end[node]; at++) sums[does[at]] += self[at];
  const found = [...sums.keys()].filter((one) => sums[one] > 0);
  return found.sort((a, b) => sums[b] - sums[a]).map((one) => [one, sums[one]]);
}
