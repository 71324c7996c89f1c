// @ts-check
/** Stacks in the order of time: frames from left to right as they were sampled, as wide as they lasted. */

import { endsOf } from "./comparison.js";
import { Profile } from "./profile.js";
import { NO_NAME } from "./tree.js";
import { knowsWaits, waitsOf } from "./waits.js";

/** @import { Numbers } from "./numbers.js" */
/** @import { Columns } from "./method_costs.js" */
/** @import { EventInfo, TimeInfo } from "./page.js" */
/** @import { Shape } from "./profile.js" */
/** @import { Range } from "./range.js" */

/** Two minutes of 20 ms. */
const MOST_CELLS_IN_ORDER = 6000;

/** In place of a node: of cells without samples, and of those whose samples are not among those shown. */
const [NOTHING, NOT_SHOWN] = [-1, -2];

/** Its values are microseconds. Where no stack is shown a frame without a name stands on the root. */
export class TimeOrdered extends Profile {
  /**
   * @param {Numbers} numbers
   * @param {Columns} columns of one process and group of threads
   * @param {EventInfo} event
   * @param {Range} range
   * @param {TimeInfo} time
   */
  constructor(numbers, columns, event, range, time) {
    let cell = time.width;
    while ((range.to - range.from) / cell > MOST_CELLS_IN_ORDER) cell *= 2;
    const { name, kind, parent, names } = numbers.tree;
    const order = heaviestOf(numbers, columns, range, cell);
    const made = { of: [0], name: [NO_NAME], kind: [0], parent: [-1], depth: [0], self: [0] };
    /** Made nodes of the cell before, from the root on, and the nodes they are of. @type {number[]} */
    let open = [];
    /** @type {number[]} */
    let before = [];
    for (const leaf of order) {
      const path = [];
      for (let at = leaf; at > 0; at = parent[at]) path.push(at);
      path.reverse();
      const of = leaf < 0 ? [leaf] : path;
      let same = 0;
      while (same < of.length && of[same] === before[same]) same++;
      open = open.slice(0, same);
      for (const at of of.slice(same)) {
        made.parent.push(open.at(-1) ?? 0);
        made.depth.push(open.length + 1);
        made.of.push(at);
        made.name.push(at < 0 ? NO_NAME : name[at]);
        made.kind.push(at < 0 ? 0 : kind[at]);
        open.push(made.self.push(0) - 1);
      }
      before = of;
      made.self[open.at(-1) ?? 0] += cell;
    }
    const above = Int32Array.from(made.parent);
    /** @type {Shape} */
    const shape = {
      names, count: above.length, parent: above, depth: Int32Array.from(made.depth), end: endsOf(above, above.length),
      name: Int32Array.from(made.name), kind: Uint8Array.from(made.kind),
    };
    if (knowsWaits(numbers.tree)) {
      const { does, above } = waitsOf(numbers.tree);
      const of = (/** @type {Uint8Array} */ known) => Uint8Array.from(made.of, (node) => (node < 0 ? 0 : known[node]));
      shape.doing = { does: of(does), above: of(above) };
    }
    super(shape, event, Float64Array.from(made.self));
    this.of = made.of;
    this.cell = cell;
    this.begin = range.from;
  }

  /**
   * @override
   * @param {number} node
   */
  nameOf(node) {
    if (this.isEmpty(node)) return "no samples";
    return this.of[node] === NOT_SHOWN ? "samples that are not shown" : super.nameOf(node);
  }

  /**
   * Whether it stands for a time without samples.
   * @param {number} node
   */
  isEmpty(node) {
    return this.of[node] === NOTHING;
  }

  /**
   * When a frame was there.
   * @param {number} node
   * @returns {Range}
   */
  rangeOf(node) {
    const from = this.begin + this.startOf(node);
    return { from, to: from + this.total[node] };
  }
}

/**
 * For each cell of time the node of the tree in which most samples end that are shown; NOTHING or NOT_SHOWN without any.
 * @param {Numbers} numbers
 * @param {Columns} columns
 * @param {Range} range
 * @param {number} cell in microseconds
 */
function heaviestOf(numbers, columns, { from, to }, cell) {
  const { times, changed, selection } = numbers;
  const { least, most } = selection?.bands ?? { least: 0, most: Infinity };
  const count = Math.ceil((to - from) / cell);
  /** Samples of each stack, by cell. @type {Map<number, number>[]} */
  const cells = Array.from({ length: count }, () => new Map());
  const sampled = new Uint8Array(count);
  for (const { column } of columns) {
    const table = times.of(column);
    if (!table) continue;
    const counts = numbers.chosenIn(column);
    for (let bucket = 0; bucket < table.buckets.length; bucket++) {
      const at = Math.floor((table.beginOf(bucket) - from) / cell);
      if (at < 0 || at >= count) continue;
      for (let row = table.first[bucket]; row < table.first[bucket + 1]; row++) {
        sampled[at] = 1;
        const node = table.node[row];
        if (counts && !counts(node)) continue;
        if (selection?.bands && !(table.bands && table.bands[row] >= least && table.bands[row] <= most)) continue;
        const shown = changed?.place ? changed.place[node] : node;
        cells[at].set(shown, (cells[at].get(shown) ?? 0) + table.samples[row]);
      }
    }
  }
  return cells.map((stacks, at) => {
    let [heaviest, highest] = [sampled[at] ? NOT_SHOWN : NOTHING, 0];
    for (const [node, samples] of stacks) if (samples > highest) [heaviest, highest] = [node, samples];
    return heaviest;
  });
}
