// @ts-check
/** Frames of merged trees in the address: the numbers of the names from the outermost on, `-` for smaller frames. */

const BASE = 36;
const SMALLER = "-";
const STEP = /^(?:-|[\da-z]{1,6})$/;
/** A deeper frame is zoomed into all the same, but not kept. */
export const DEEPEST_KEPT = 2000;

/** @param {number[]} names indexes, -1 for smaller frames */
export function formatPath(names) {
  return names.map((name) => (name < 0 ? SMALLER : name.toString(BASE))).join(".");
}

/**
 * The names as far as the text makes sense.
 * @param {string} text
 */
export function parsePath(text) {
  const steps = text ? text.split(".", DEEPEST_KEPT) : [];
  const spoilt = steps.findIndex((step) => !STEP.test(step));
  const good = spoilt < 0 ? steps : steps.slice(0, spoilt);
  return good.map((step) => (step === SMALLER ? -1 : Number.parseInt(step, BASE)));
}
