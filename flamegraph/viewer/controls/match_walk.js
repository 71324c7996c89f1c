// @ts-check
/** Walks over the frames of the active graph that the search matches, the widest first. */

import { isInside } from "../graph/layout.js";
import { part } from "./dom.js";

/** @import { Profile } from "../data/profile.js" */
/** @import { Matches } from "../data/search.js" */
/** @import { Context } from "./context.js" */

export class MatchWalk {
  /** @param {Context} context */
  constructor(context) {
    this.context = context;
    this.result = part("search-at", HTMLOutputElement);
    /** What the matches are of. @type {[Profile | null, Matches | null]} */
    this.of = [null, null];
    this.nodes = new Int32Array(0);
    this.at = -1;
  }

  /** Another search, or another graph: the walk begins anew. */
  update() {
    const { active, matches } = this.context;
    if (active?.profile === this.of[0] && matches === this.of[1]) return;
    this.of = [null, null];
    this.at = -1;
    this.result.textContent = "";
  }

  /** @param {1 | -1} step to the next match, or the one before */
  go(step) {
    const { active, matches } = this.context;
    const profile = active?.profile;
    if (!active?.seen || !profile || !matches) return;
    if (profile !== this.of[0] || matches !== this.of[1]) {
      this.of = [profile, matches];
      this.nodes = widestOf(profile, matches);
      this.at = step > 0 ? -1 : 0;
    }
    const count = this.nodes.length;
    if (count === 0) return;
    this.at = (this.at + step + count) % count;
    const node = this.nodes[this.at];
    if (active.zoomed > 0 && node !== active.zoomed && !isInside(profile, active.zoomed, node)) active.events.zoom(0);
    active.select(node);
    this.result.textContent = `${this.at + 1} of ${count}`;
  }
}

/**
 * @param {Profile} profile
 * @param {Matches} matches
 */
function widestOf({ name, total, end, count }, matches) {
  const nodes = [];
  for (let node = 1; node < count; node = total[node] > 0 ? node + 1 : end[node]) {
    if (total[node] > 0 && matches[name[node]] === 1) nodes.push(node);
  }
  return Int32Array.from(nodes.sort((a, b) => total[b] - total[a] || a - b));
}
