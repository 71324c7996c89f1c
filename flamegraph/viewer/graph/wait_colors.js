// @ts-check
/** Colours of what threads do: of different lightness, so that they differ in print and for the colour-blind, too. */

/** A frame's shades differ a little, so that neighbours can be told apart. In points of lightness. */
const SHADE_STEP = 1.1;

/** Hue, saturation, lightness. @typedef {[number, number, number]} Color */
/** By kind of waiting (`doing_kinds` of the rules): on light and on dark ground. @type {Record<string, [light: Color, dark: Color]>} */
const WAIT_COLORS = {
  running: [[140, 32, 52], [139, 66, 26]],
  lock: [[12, 92, 64], [2, 74, 46]],
  sleep: [[236, 85, 85], [227, 46, 30]],
  disk: [[38, 95, 60], [30, 92, 25]],
  network: [[213, 90, 62], [201, 62, 37]],
  jvm: [[281, 32, 60], [274, 60, 45]],
  queue: [[190, 37, 67], [184, 44, 26]],
  thread: [[40, 80, 86], [15, 28, 23]],
  other: [[47, 8, 68], [56, 8, 40]],
  idle: [[220, 10, 92], [220, 10, 20]],
  small: [[47, 0, 76], [56, 0, 34]],
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
