// @ts-check
/** What a graph says of a frame: the same beside the pointer, in the line below and in a saved picture. */

import { amounts, percent } from "./format.js";

/** @typedef {import("./graph.js").Graph} Graph */
/**
 * What is told, and how it is told; the first of several is the one that matters.
 * @typedef {[what: string, ...told: string[]]} Told
 */

/**
 * @param {Graph} graph
 * @param {number} node
 * @returns {Told[]}
 */
export function toldOf({ profile, look, zoomed }, node) {
  if (!profile) return [];
  if (look.rows) return look.rows(node);
  const [total, self] = [profile.total[0], profile.self[0]];
  const cost = (/** @type {number} */ value) => [percent(value, profile.sum()), amounts(value, profile.event).join(" · ")];
  /** @type {Told[]} */
  const told = [["Total", ...cost(total[node])], ["Self", ...cost(self[node])]];
  if (isInside(profile, zoomed, node)) told.push(["Of view", percent(total[node], total[zoomed])]);
  return told;
}

/**
 * Whether a frame stands on the one that fills the width: only such a frame is a part of what is in view.
 * @param {{end: Int32Array}} profile
 * @param {number} zoomed 0 where everything is in view
 * @param {number} node
 */
export function isInside({ end }, zoomed, node) {
  return zoomed > 0 && node > zoomed && node < end[zoomed];
}
