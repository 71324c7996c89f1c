// @ts-check
/** A graph of a merged tree: zooming into a frame shows what was too narrow before. */

import { amounts, percent } from "./format.js";
import { isInside } from "./told.js";

/** @typedef {import("./context.js").Context} Context */
/** @typedef {import("./graph.js").Graph} Graph */
/** @typedef {import("./merged.js").Merged} Merged */
/** @typedef {import("./told.js").Told} Told */

export class MergedGraph {
  /**
   * @param {Context} context
   * @param {HTMLElement} element
   * @param {string} label
   * @param {boolean} outward whether frames stand on what they call
   */
  constructor(context, element, label, outward) {
    this.outward = outward;
    this.graph = context.makeGraph(element, label, (node) => this.zoom(node));
    /** @type {Merged | null} */
    this.merged = null;
  }

  /**
   * Another tree, zoomed to the same frame where it has it.
   * @param {Merged} merged
   * @param {string} label the root's
   */
  show(merged, label) {
    const zoomed = this.merged ? this.merged.profile.namesTo(this.graph.zoomed) : [];
    this.merged = merged;
    const { profile, base } = merged;
    const whole = base.sum();
    this.graph.show(profile, { label, outward: this.outward, rows: (node) => this.rows(node, whole) }, profile.find(zoomed));
  }

  /**
   * @param {number} node
   * @param {number} whole of everything that the tree was merged from
   * @returns {Told[]}
   */
  rows(node, whole) {
    const { merged, graph } = this;
    if (!merged) return [];
    const { profile, base } = merged;
    const total = profile.total[0][node];
    /** @type {Told[]} */
    const rows = [["Total", [percent(total, whole), ...amounts(total, base.event)].join(" · ")]];
    if (profile.sum() < whole && node > 0) rows.push([`Of ${profile.nameOf(0)}`, percent(total, profile.sum())]);
    if (isInside(profile, graph.zoomed, node)) rows.push(["Of view", percent(total, profile.total[0][graph.zoomed])]);
    return rows;
  }

  /** @param {number} node */
  zoom(node) {
    const { merged, graph } = this;
    if (!merged) return;
    const before = merged.profile;
    const same = merged.lookInto(node);
    if (merged.profile !== before) graph.replace(merged.profile, (old) => merged.profile.find(before.namesTo(old)));
    graph.go(same);
  }
}
