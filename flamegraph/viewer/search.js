// @ts-check
/** Search: plain text, a "whole name" in quotes, or a regular expression. */

/** @typedef {import("./profile.js").Profile} Profile */

/**
 * @typedef {object} Matches
 * @property {Uint8Array} names 1 for each matching name
 * @property {number} total of all stacks with a match; a stack counts once however many of its frames match
 * @property {number} inView the same, of the frame in view only
 * @property {number} frames how many nodes match
 */

/**
 * A test for names, or null when there is nothing to search for.
 * @param {string} query
 * @param {boolean} regexp
 * @returns {((name: string) => boolean) | null}
 * @throws {SyntaxError} when the regular expression is none
 */
export function compileQuery(query, regexp) {
  if (!query) return null;
  if (regexp) {
    const pattern = new RegExp(query, "i");
    return (name) => pattern.test(name);
  }
  const whole = /^"(.+)"$/s.exec(query);
  if (whole) return (name) => name === whole[1];
  const needle = query.toLowerCase();
  return (name) => name.toLowerCase().includes(needle);
}

/**
 * @param {Profile} profile
 * @param {(name: string) => boolean} test
 * @param {number} view the node in view
 * @returns {Matches}
 */
export function findMatches(profile, test, view) {
  const names = Uint8Array.from(profile.names, (name) => (test(name) ? 1 : 0));
  const { name, end, count } = profile;
  const totals = profile.total[0];
  let total = 0;
  let inView = 0;
  let frames = 0;
  let covered = 0;
  for (let node = 1; node < count; node++) {
    if (!names[name[node]]) continue;
    frames++;
    if (node < covered) continue;
    covered = end[node];
    total += totals[node];
    if (node >= view && node < end[view]) inView += totals[node];
  }
  if (underMatch(profile, names, view)) inView = totals[view];
  return { names, total, inView, frames };
}

/**
 * Whether the node or one above it matches: then all of it does.
 * @param {Profile} profile
 * @param {Uint8Array} names
 * @param {number} node
 */
function underMatch(profile, names, node) {
  for (let at = node; at > 0; at = profile.parent[at]) {
    if (names[profile.name[at]]) return true;
  }
  return false;
}
