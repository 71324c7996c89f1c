// @ts-check
/** Methods of a profile: all frames of one name together, in any tier. */

import { once } from "./format.js";
import { isClass, KERNEL } from "./frame_kinds.js";
import { countsWaits, knowsWaits, waitersOf, waitsOf } from "./waits.js";

/** @import { Profile, Shape } from "./profile.js" */

/**
 * `row` is that of an attribution, `origin` its heaviest node. `does` is what threads do that wait in it, as a number of
 * `waits.js`: waits have rows of their own; 0 for the method itself.
 * @typedef {{row: number, name: number, self: number, total: number, origin: number, does: number}} Method
 */

/**
 * What the costs of nodes count for. `payers` has for each node the frame that they are of, or is null where that is
 * the node itself; `rows` has for each node the row of their self cost: a number of a name, or one after those for each
 * of the `waits`; -1 for none. Nodes that are `left` do not count; those of the `profiler` count for who was
 * interrupted.
 * @typedef {object} Attribution
 * @property {Int32Array | null} payers
 * @property {Int32Array} rows
 * @property {{name: number, does: number}[]} waits
 * @property {Uint8Array} [left]
 * @property {Uint8Array} [profiler]
 */

/**
 * Where threads wait, a wait is a row of its own, and of the method that waits, not of what serves it.
 * @param {Profile} profile
 * @param {Int32Array | null} [payers] of `payersOf`: without frames that others pay for
 * @returns {Attribution}
 */
export function attributionOf({ shape, event }, payers = null) {
  if (countsWaits(event.type) && knowsWaits(shape)) return attributionOfWaits(shape);
  return { payers, rows: payers ? payers.map((payer) => shape.name[payer]) : shape.name, waits: [] };
}

const attributionOfWaits = once((/** @type {Shape} */ shape) => {
  const { name, names } = shape;
  const { does } = waitsOf(shape);
  const payers = waitersOf(shape);
  /** @type {Attribution["waits"]} */
  const waits = [];
  /** By what is done and name. @type {Map<number, number>} */
  const known = new Map();
  const rows = payers.map((payer, node) => {
    if (does[node] === 0) return name[payer];
    const key = does[node] * names.length + name[payer];
    const row = known.get(key) ?? names.length + waits.length;
    if (!known.has(key)) waits.push({ name: name[payer], does: does[node] });
    known.set(key, row);
    return row;
  });
  return { payers, rows, waits };
});

/**
 * The same without what tables leave out: broken stacks, and the profiler's own work.
 * @param {Attribution} attribution
 * @param {Profile} profile
 * @returns {Attribution}
 */
export function withoutLeftOut(attribution, { shape: { names, name, parent, count }, event }) {
  const patterns = (event.profiler ?? []).map((pattern) => new RegExp(pattern, "s"));
  if (!event.broken && patterns.length === 0) return attribution;
  const [broken, ofProfiler] = [(/** @type {string} */ one) => one === event.broken, (/** @type {string} */ one) => patterns.some((pattern) => pattern.test(one))];
  const [left, profiler] = [broken, ofProfiler].map((is) => {
    const known = names.map(is);
    const marked = new Uint8Array(count);
    for (let node = 1; node < count; node++) marked[node] = marked[parent[node]] || Number(known[name[node]] ?? false);
    return marked;
  });
  return { ...attribution, rows: attribution.rows.map((row, node) => (profiler[node] ? -1 : row)), left, profiler };
}

/**
 * What tables of a profile are shares of, and how much of that is the profiler's own work.
 * @param {Profile} profile
 * @param {Attribution} attribution
 */
export function baseOf({ count, self, total }, { left, profiler }) {
  const base = { whole: total[0], profiler: 0, left: 0 };
  if (!left || !profiler) return base;
  for (let node = 1; node < count; node++) {
    if (left[node]) base.left += self[node];
    else if (profiler[node]) base.profiler += self[node];
  }
  base.whole -= base.left;
  return base;
}

/**
 * Self and total of every method that the profile has, and of every wait, in the event's unit.
 * @param {Profile} profile
 * @param {Attribution} [attribution]
 * @returns {Method[]} the highest total first
 */
export function collectMethods(profile, { payers, rows, waits, left, profiler } = attributionOf(profile)) {
  const { count, name, end, self, total } = profile;
  const outermost = outermostOf(profile.shape);
  const names = profile.names.length;
  const selves = new Float64Array(names + waits.length);
  const totals = new Float64Array(names + waits.length);
  const origins = new Int32Array(names + waits.length);
  const heaviest = new Float64Array(names + waits.length);
  const listed = profiler ? new Uint8Array(names + waits.length) : null;
  const paid = payers || left ? paidOf(profile, payers, left) : total;
  for (let node = 1; node < count; ) {
    if (total[node] === 0 || left?.[node]) {
      node = end[node];
      continue;
    }
    const at = name[node];
    const row = rows[node];
    if (row >= 0) selves[row] += self[node];
    if (listed && row >= 0) listed[at] = listed[row] = 1;
    if (row >= names) {
      totals[row] += self[node];
      if (self[node] > heaviest[row]) {
        heaviest[row] = self[node];
        origins[row] = payers ? payers[node] : node;
      }
    }
    if (outermost[node]) totals[at] += paid[node];
    if (paid[node] > heaviest[at]) {
      heaviest[at] = paid[node];
      origins[at] = node;
    }
    node++;
  }
  /** @type {Method[]} */
  const methods = [];
  for (const row of totals.keys()) {
    if (totals[row] === 0 || listed?.[row] === 0) continue;
    const { name, does } = waits[row - names] ?? { name: row, does: 0 };
    methods.push({ row, name, self: selves[row], total: totals[row], origin: origins[row], does });
  }
  return methods.sort((a, b) => b.total - a.total || b.self - a.self);
}

/**
 * Each node's total where costs count for their payers, or do not count.
 * @param {Profile} profile
 * @param {Int32Array | null} payers
 * @param {Uint8Array} [left]
 */
function paidOf({ count, parent, self }, payers, left) {
  const paid = new Float64Array(count);
  for (let node = 1; node < count; node++) if (!left?.[node]) paid[payers ? payers[node] : node] += self[node];
  for (let node = count - 1; node > 0; node--) paid[parent[node]] += paid[node];
  return paid;
}

/**
 * Classes that the profile's stacks end in, with what was allocated of them, or waited for; `total` is the same.
 * @param {Profile} profile
 * @returns {Method[]} the highest first
 */
export function collectClasses({ count, name, kind, self }) {
  /** @type {Map<number, Method>} */
  const classes = new Map();
  for (let node = 1; node < count; node++) {
    if (self[node] === 0 || !isClass(kind[node])) continue;
    const one = classes.get(name[node]) ?? { row: name[node], name: name[node], self: 0, total: 0, origin: node, does: 0 };
    if (self[node] > self[one.origin]) one.origin = node;
    one.self = one.total += self[node];
    classes.set(name[node], one);
  }
  return [...classes.values()].sort((a, b) => b.self - a.self);
}

/**
 * For each node the frame that its own cost counts for, as in the tables of `analysis/attribution.py`, where stacks end in
 * what the event is about: classes, and what calls of functions, tracepoints or native memory end in. The frame above
 * pays; a stack of nothing else keeps its outermost frame. Who waits is decided by `attributionOf`.
 * @param {Profile} profile
 * @returns {Int32Array | null} null where each frame's cost is its own
 */
export function payersOf(profile) {
  profile.sum(); // classes are marked while numbers are read
  const { count, parent, name, kind, names, event } = profile;
  const ends = event.ends ?? [];
  const patterns = ends.map((pattern) => new RegExp(pattern, "s"));
  /** By name: 1 if stacks end in it. */
  const known = Uint8Array.from(names, (one) => (patterns.some((pattern) => pattern.test(one)) ? 1 : 0));
  const payers = new Int32Array(count);
  const head = new Uint8Array(count);
  head[0] = 1;
  let some = false;
  for (let node = 1; node < count; node++) {
    const above = parent[node];
    const text = names[name[node]] ?? "";
    head[node] = head[above] && text.startsWith("[") && text.endsWith("]") ? 1 : 0;
    const isEnd = isClass(kind[node]) || (name[node] >= 0 && known[name[node]] === 1) || (event.kernel_ends === true && kind[node] === KERNEL);
    payers[node] = isEnd && !head[above] ? payers[above] : node;
    some ||= payers[node] !== node;
  }
  return some ? payers : null;
}

/**
 * Self values divided by those of another event, by name.
 * @param {Profile} part
 * @param {Profile} whole
 * @returns {Map<number, number>} only of methods that both have
 */
export function ratiosOf(part, whole) {
  // Pooled numbers are read one after the other.
  const selves = new Map(collectMethods(whole).map(({ name, self }) => [name, self]));
  /** @type {Map<number, number>} */
  const ratios = new Map();
  for (const { name, self } of collectMethods(part)) {
    const divisor = selves.get(name) ?? 0;
    if (self > 0 && divisor > 0) ratios.set(name, self / divisor);
  }
  return ratios;
}

/** For each node 1 if no frame of its name is above it. */
export const outermostOf = once((/** @type {Shape} */ tree) => {
  const { count, name, end, parent } = tree;
  const outermost = new Uint8Array(count);
  const open = new Int32Array(tree.names.length);
  let last = 0;
  for (let node = 1; node < count; node++) {
    while (end[last] <= node) {
      if (last > 0) open[name[last]]--;
      last = parent[last];
    }
    if (open[name[node]]++ === 0) outermost[node] = 1;
    last = node;
  }
  return outermost;
});
