// @ts-check
/**
 * What may be wrong of callers. Without debug information, code that compiled methods enter without a safepoint (stubs,
 * intrinsics, page faults) stands below wrong inlined methods. The page says which code, and which methods' totals, these
 * are (`hprofiler/analysis/sure_callers.py`).
 */

import { once } from "./format.js";
import { isCompiled } from "./frame_kinds.js";

/** @import { Unsure } from "./page.js" */
/** @import { Profile } from "./profile.js" */

const setsOf = once((/** @type {Unsure} */ { code, methods }) => ({ code: new Set(code), methods: new Set(methods) }));

/**
 * Whether a method's total is not known.
 * @param {Profile["event"]} event
 * @param {string} name
 */
export function hasNoTotal({ unsure }, name) {
  return unsure ? setsOf(unsure).methods.has(name) : false;
}

/**
 * What may be wrong of a frame: its caller, or what it costs with all it calls; "" for nothing.
 * @param {Profile} profile
 * @param {number} node
 * @returns {"" | "caller" | "total"}
 */
export function doubtOf(profile, node) {
  const { event: { unsure }, kind, parent } = profile;
  if (!unsure || node <= 0) return "";
  const name = profile.nameOf(node);
  const { code, methods } = setsOf(unsure);
  if (methods.has(name)) return "total";
  return !unsure.moved && code.has(name) && isCompiled(kind[parent[node]]) ? "caller" : "";
}

/**
 * Whether a path may be in one profile only because of wrong callers.
 * @param {Profile} profile
 * @param {number} node its last frame
 */
export function mayBeElsewhere(profile, node) {
  const { unsure } = profile.event;
  if (!unsure) return false;
  const { code, methods } = setsOf(unsure);
  const name = profile.nameOf(node);
  return code.has(name) || methods.has(name);
}

/** What is said of such a frame, by its doubt. */
export const DOUBTS = {
  caller: "who calls it may be wrong: compiled without DebugNonSafepoints",
  total: "not known: compiled without DebugNonSafepoints, stubs may be below wrong callers",
};
