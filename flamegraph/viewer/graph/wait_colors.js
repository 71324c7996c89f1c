// @ts-check
/** Colours of what threads do: of different lightness, so that they differ in print, and for those who see no red or no green (tests/viewer/test_colors.py). */

/** A frame's shades differ a little, so that neighbours can be told apart. In points of lightness. */
const SHADE_STEP = 1.1;

/** Hue, saturation, lightness. @typedef {[number, number, number]} Color */
/** By kind of waiting (`doing_kinds` of the rules): on light and on dark ground. @type {Record<string, [light: Color, dark: Color]>} */
export const WAIT_COLORS = {
  running: [[140, 32, 52], [138, 68, 36]],
  lock: [[12, 91, 64], [359, 95, 66]],
  sleep: [[236, 85, 85], [229, 53, 68]],
  disk: [[38, 94, 49], [28, 95, 42]],
  network: [[213, 90, 62], [199, 43, 47]],
  jvm: [[281, 32, 60], [265, 95, 68]],
  queue: [[197, 29, 67], [179, 46, 40]],
  thread: [[39, 74, 68], [30, 24, 57]],
  other: [[55, 3, 57], [58, 4, 50]],
  idle: [[206, 2, 96], [220, 10, 20]],
  small: [[43, 0, 77], [51, 10, 27]],
};

/**
 * Shades of one kind.
 * @param {string} kind
 * @param {boolean} dark
 * @param {number} count
 */
export function waitShades(kind, dark, count) {
  const [hue, saturation, lightness] = (WAIT_COLORS[kind] ?? WAIT_COLORS.other)[dark ? 1 : 0];
  return Array.from({ length: count }, (_, step) => `hsl(${hue} ${saturation}% ${(lightness + (step - (count - 1) / 2) * SHADE_STEP).toFixed(1)}%)`);
}
