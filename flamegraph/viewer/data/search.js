// @ts-check
/**
 * Search: plain text, a "whole name" in quotes, or a regular expression. Names are matched first, then nodes counted.
 * Java writes java.util.regex, engines java/util/regex. Both match, except in regular expressions.
 */

import { once } from "./format.js";

/** @import { Profile } from "./profile.js" */

/** 1 for each name that matches. @typedef {Uint8Array} Matches */

/** @type {(names: string[]) => string[]} */
const searchableOf = once((names) => names.map(searchable));

/**
 * The names that match a query; null without a query.
 * @param {string[]} names
 * @param {string} query
 * @param {boolean} regexp
 * @returns {Matches | null}
 * @throws {SyntaxError} for a wrong regular expression
 */
export function matchNames(names, query, regexp) {
  if (!query) return null;
  const matching = new Uint8Array(names.length);
  const whole = regexp ? null : /^"(.+)"$/s.exec(query);
  if (whole) {
    const name = dotted(whole[1]);
    for (let i = 0; i < names.length; i++) matching[i] = names[i].length === name.length && dotted(names[i]) === name ? 1 : 0;
  } else if (regexp) {
    const pattern = new RegExp(query, "i");
    for (let i = 0; i < names.length; i++) matching[i] = pattern.test(names[i]) ? 1 : 0;
  } else {
    const needle = searchable(query);
    const texts = searchableOf(names);
    for (let i = 0; i < names.length; i++) matching[i] = texts[i].includes(needle) ? 1 : 0;
  }
  return matching;
}

/** @param {string} name */
function dotted(name) {
  return name.replaceAll("/", ".");
}

/**
 * A text as search compares it.
 * @param {string} text
 */
export function searchable(text) {
  return dotted(text.toLowerCase());
}

/**
 * How many nodes match, and the total of stacks with a match, in all and in view. A stack counts once.
 * @param {Profile} profile
 * @param {Matches} matches
 * @param {number} view the node in view
 */
export function measureMatches(profile, matches, view) {
  const { name, end, count, total: totals } = profile;
  let total = 0;
  let inView = 0;
  let frames = 0;
  let covered = 0;
  for (let node = 1; node < count; node++) {
    if (matches[name[node]] !== 1 || totals[node] === 0) continue;
    frames++;
    if (node < covered) continue;
    covered = end[node];
    total += totals[node];
    if (node >= view && node < end[view]) inView += totals[node];
  }
  // Everything below a match matches.
  if (profile.pathOf(view).some((at) => matches[name[at]] === 1)) inView = totals[view];
  return { total, inView, frames };
}
