// @ts-check
/** A graph of a merged tree: zooming into a frame shows frames that were too narrow before. The address keeps the path. */

import { amounts, percent } from "../data/format.js";
import { DEEPEST_KEPT, formatPath, parsePath } from "../data/state.js";
import { isInside } from "./layout.js";

/** @import { Context } from "../controls/context.js" */
/** @import { Merged } from "../data/merged_tree.js" */
/** @import { TooltipRow } from "./frame_details.js" */

export class MergedGraph {
  /**
   * @param {Context} context
   * @param {"reversed" | "callers" | "callees"} key of its path in the state, and its id
   * @param {string} label
   */
  constructor(context, key, label) {
    this.context = context;
    this.key = key;
    /** Whether frames stand on what they call. */
    this.outward = key !== "callees";
    /** The path that is shown. */
    this.path = "";
    this.graph = context.makeGraph(key, label, (node) => this.zoom(node));
    /** @type {Merged | null} */
    this.merged = null;
  }

  /**
   * Shows another tree, zoomed to the same path as far as the tree has it.
   * @param {Merged} merged
   * @param {string} label the root's
   */
  show(merged, label) {
    this.merged = merged;
    this.path = this.context.state[this.key];
    const zoomed = merged.reach(parsePath(this.path));
    const { profile, base } = merged;
    const whole = base.sum();
    this.graph.show(profile, { label, outward: this.outward, rows: (node) => this.rows(node, whole) }, zoomed);
  }

  /** The state has changed, but not the tree. */
  update() {
    const path = this.context.state[this.key];
    if (path === this.path) return;
    this.path = path;
    this.reach(parsePath(path));
  }

  /**
   * @param {number} node
   * @param {number} whole of everything that the tree was merged from
   * @returns {TooltipRow[]}
   */
  rows(node, whole) {
    const { merged, graph } = this;
    if (!merged) return [];
    const { profile, base } = merged;
    const total = profile.total[node];
    /** @type {TooltipRow[]} */
    const rows = [["Total", [percent(total, whole), ...amounts(total, base.event)].join(" · ")]];
    if (profile.sum() < whole && node > 0) rows.push([`Of ${profile.nameOf(0)}`, percent(total, profile.sum())]);
    if (isInside(profile, graph.zoomed, node)) rows.push(["Of view", percent(total, profile.total[graph.zoomed])]);
    return rows;
  }

  /** @param {number} node */
  zoom(node) {
    if (!this.merged) return;
    const names = this.merged.profile.namesTo(node);
    this.reach(names);
    if (names.length > DEEPEST_KEPT) return;
    this.path = formatPath(names);
    this.context.go({ [this.key]: this.path });
  }

  /** @param {number[]} names the path of the frame that fills the width from now on */
  reach(names) {
    const { merged, graph } = this;
    if (!merged) return;
    const before = merged.profile;
    const node = merged.reach(names);
    if (merged.profile !== before) graph.replace(merged.profile, (old) => merged.profile.find(before.namesTo(old)));
    graph.zoom(node);
  }
}
