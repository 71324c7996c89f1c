// @ts-check
/** How much of what there was is in a scope, for a picture that leaves the page. */

import { grouped } from "./format.js";

/** @typedef {import("./scopes.js").Scope} Scope */
/** @typedef {import("./scopes.js").Scopes} Scopes */

/**
 * "3 of 4 processes on 1 of 1 host, interrupted · 99 Hz for 5 of 60 s"; "" where nobody knows.
 * @param {Scopes} scopes
 * @param {Scope} scope
 * @param {number} event
 */
export function coverageOf(scopes, scope, event) {
  const { runs, hosts, short } = scopes.page.coverage[event];
  const run = runs[scope.run] ?? "";
  if (!run || ["sum", "mean", "thread"].includes(scope.kind)) return run;
  if (scope.kind === "host" && hosts[scope.index]) return hosts[scope.index];
  const processes = new Set(scopes.columns(scope, event).map(({ column }) => scopes.page.columns[column].process));
  const lasted = scope.kind === "process" ? short[scope.index] : "";
  const counted = processes.size === 1 ? "1 process" : `${grouped(processes.size)} processes`;
  return `${counted}${lasted ? ` for ${lasted}` : ""}, of a run of ${run}`;
}

/**
 * The same of two scopes; once where it is the same of both.
 * @param {Scopes} scopes
 * @param {Scope} one
 * @param {Scope} another
 * @param {number} event
 */
export function coverageOfBoth(scopes, one, another, event) {
  const [here, there] = [one, another].map((scope) => coverageOf(scopes, scope, event));
  if (here === there) return here;
  const told = (/** @type {Scope} */ scope, /** @type {string} */ covered) => (covered ? `${scope.label}: ${covered}` : "");
  return [told(one, here), told(another, there)].filter(Boolean).join(" | ");
}
