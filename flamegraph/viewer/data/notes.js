// @ts-check
/** Notes of the reader, pinned to a frame or to a range of time; the address keeps them. */

import { parseRange } from "./range.js";

/** `at` is `#` and a node of the page's tree, or a range as the address has it. @typedef {{at: string, text: string}} Note */

/** A link must stay short enough to be sent. */
export const MOST_NOTES = 12;
export const LONGEST_NOTE = 160;
const NOTE = /^(#\d{1,7}|[\d.]+-[\d.]+) (.+)$/;

/**
 * @param {string} text as in the address: where it is and what it says, one a line
 * @returns {Note[]}
 */
export function parseNotes(text) {
  return text.split("\n", MOST_NOTES).flatMap((line) => {
    const [, at, said] = NOTE.exec(line) ?? ["", "", ""];
    const known = at.startsWith("#") || parseRange(at) !== null;
    return known && said ? [{ at, text: said.slice(0, LONGEST_NOTE) }] : [];
  });
}

/** @param {Note[]} notes */
export function formatNotes(notes) {
  return notes.map(({ at, text }) => `${at} ${text.replace(/\s+/g, " ").trim().slice(0, LONGEST_NOTE)}`).join("\n");
}

/**
 * The node of the page's tree that a note is pinned to; -1 for a range.
 * @param {Note} note
 */
export function noteNode({ at }) {
  return at.startsWith("#") ? Number(at.slice(1)) : -1;
}
