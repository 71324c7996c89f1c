// @ts-check
/** Colours of what threads do: of different lightness, so that they differ in print, and for those who see no red or no green (tests/viewer/test_colors.py). */

/** A frame's shades differ a little, so that neighbours can be told apart. In points of lightness. */
const SHADE_STEP = 1.1;

/** Hue, saturation, lightness. @typedef {[number, number, number]} Color */
/** By kind of waiting (`doing_kinds` of the rules): on light and on dark ground. @type {Record<string, [light: Color, dark: Color]>} */
export const WAIT_COLORS = {
  running: [[140, 32, 52], [134, 72, 25]],
  lock: [[12, 92, 64], [356, 71, 44]],
  sleep: [[236, 85, 85], [227, 46, 30]],
  disk: [[38, 95, 60], [20, 90, 21]],
  network: [[213, 90, 62], [201, 62, 37]],
  jvm: [[281, 32, 60], [270, 57, 43]],
  queue: [[197, 29, 67], [180, 45, 29]],
  thread: [[40, 80, 86], [15, 28, 23]],
  other: [[55, 3, 57], [56, 8, 40]],
  idle: [[206, 2, 96], [220, 10, 20]],
  small: [[38, 0, 76], [48, 0, 31]],
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
