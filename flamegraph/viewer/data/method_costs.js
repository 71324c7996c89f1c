// @ts-check
/** Costs of methods in columns; background work. */

import { outermostOf } from "./methods.js";

/** @import { Attribution } from "./methods.js" */
/** @import { Numbers } from "./numbers.js" */
/** @import { Shape } from "./profile.js" */
/** @typedef {{column: number, weight: number}[]} Columns columns of the page's data, each with its weight */

/** Milliseconds of background work before the page may do other work. */
const TURN = 8;

/** Waits for the picture, but not on a hidden page, which is not drawn. */
export async function pictureDrawn() {
  if (!document.hidden) await new Promise((drawn) => requestAnimationFrame(drawn));
  await new Promise((resolve) => setTimeout(resolve));
}

/**
 * Works in the background.
 * @param {Iterator<void>} work yields so that other work can run
 * @param {() => boolean} stopped
 * @returns {Promise<boolean>} whether all was done
 */
export async function inTurns(work, stopped) {
  await pictureDrawn();
  for (; !stopped(); await new Promise((resolve) => setTimeout(resolve))) {
    const begin = performance.now();
    do {
      if (work.next().done) return true;
    } while (performance.now() - begin < TURN);
  }
  return false;
}

/** Visits only nodes in the columns and those above them: a process has a small part of the tree. */
export class MethodCosts {
  /**
   * @param {Shape} tree
   * @param {Attribution} attribution
   */
  constructor(tree, attribution) {
    this.tree = tree;
    this.attribution = attribution;
    this.outermost = outermostOf(tree);
    const rows = tree.names.length + attribution.waits.length;
    /** By row: what it costs itself, and with all it calls. */
    this.own = new Float64Array(rows);
    this.all = new Float64Array(rows);
    /** Those with a cost. @type {number[]} */
    this.rows = [];
    this.whole = 0;
    /** The sums below the open frame of each depth. */
    this.below = new Float64Array(tree.depth.reduce((deep, one) => Math.max(deep, one), 0) + 1);
  }

  /**
   * Computes the costs in these columns.
   * @param {Columns} columns
   * @param {Numbers} numbers
   */
  read(columns, numbers) {
    const { own, all, rows, below, tree, attribution: { payers, rows: rowOf, left } } = this;
    for (const row of rows) own[row] = all[row] = 0;
    rows.length = 0;
    for (const { column, weight } of columns) {
      let last = 0;
      numbers.eachEntry(column, (node, value) => {
        if (left?.[node]) return;
        if (tree.end[last] <= node) this.close(last, node);
        const cost = value * weight;
        below[tree.depth[payers ? payers[node] : node]] += cost;
        last = node;
        if (node === 0) return;
        const row = rowOf[node];
        if (row < 0) return;
        own[row] += cost;
        if (row < tree.names.length) return;
        if (all[row] === 0) rows.push(row);
        all[row] += cost;
      });
      this.close(last, tree.count);
    }
    this.whole = below[0];
    below[0] = 0;
  }

  /**
   * Closes frames from the innermost outwards, up to one that has the next node. A closed frame's cost is added to its
   * parent, so each frame is visited once, however deep the tree is.
   * @param {number} last the innermost
   * @param {number} next
   */
  close(last, next) {
    const { all, below, outermost, rows } = this;
    const { name, parent, depth, end } = this.tree;
    let cost = 0;
    let level = depth[last];
    for (let at = last; at > 0 && end[at] <= next; at = parent[at]) {
      cost += below[level];
      below[level--] = 0;
      if (outermost[at] !== 1 || cost === 0) continue;
      if (all[name[at]] === 0) rows.push(name[at]);
      all[name[at]] += cost;
    }
    below[level] += cost;
  }
}
