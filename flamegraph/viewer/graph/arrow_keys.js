// @ts-check
/** Arrow keys walk over frames as the eye sees them. */

import { isInside } from "./frame_details.js";

/** @import { Profile } from "../data/profile.js" */
/** @import { Graph } from "./graph.js" */

/**
 * Walks the graph.
 * @param {Graph} graph
 * @param {string} key an arrow
 * @returns {boolean} whether the key meant a walk
 */
export function walk(graph, key) {
  const profile = graph.profile;
  if (!profile) return false;
  const from = graph.selected >= 0 ? graph.selected : graph.zoomed;
  const inward = graph.flame ? "ArrowUp" : "ArrowDown";
  const outward = graph.flame ? "ArrowDown" : "ArrowUp";
  /** @type {Record<string, (profile: Profile, node: number) => number>} */
  const steps = { [inward]: widestChild, [outward]: parentOf, ArrowLeft: before, ArrowRight: after };
  const step = steps[key];
  if (!step) return false;
  // What stands beside the frame that fills the width is not in view.
  const alone = (step === before || step === after) && !isInside(profile, graph.zoomed, from) && graph.zoomed > 0;
  graph.select(alone ? from : step(profile, from));
  return true;
}

/**
 * @param {Profile} profile
 * @param {number} node
 */
function widestChild(profile, node) {
  const total = profile.total[0];
  let widest = node;
  for (let child = node + 1; child < profile.end[node]; child = profile.end[child]) {
    if (total[child] > 0 && (widest === node || total[child] > total[widest])) widest = child;
  }
  return widest;
}

/**
 * @param {Profile} profile
 * @param {number} node
 */
function parentOf(profile, node) {
  return Math.max(0, profile.parent[node]);
}

/**
 * @param {Profile} profile
 * @param {number} node
 */
function before(profile, node) {
  if (node === 0) return 0;
  let previous = node;
  for (let at = profile.parent[node] + 1; at < node; at = profile.end[at]) {
    if (profile.total[0][at] > 0) previous = at;
  }
  return previous;
}

/**
 * @param {Profile} profile
 * @param {number} node
 */
function after(profile, node) {
  if (node === 0) return 0;
  const end = profile.end[profile.parent[node]];
  for (let next = profile.end[node]; next < end; next = profile.end[next]) {
    if (profile.total[0][next] > 0) return next;
  }
  return node;
}
