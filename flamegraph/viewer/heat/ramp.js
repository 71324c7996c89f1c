// @ts-check
/** Colours of amounts, from little to much. */

import { make } from "../controls/dom.js";

/** @typedef {[hue: number, saturation: number, lightness: number]} Shade */

/** More cannot be told apart. */
const RAMP_STEPS = 32;
/** From the least to the most: of amounts in light and dark, of matches in light and dark. @type {Record<string, Shade[]>} */
const RAMP_SHADES = {
  light: [[34, 88, 93], [28, 88, 80], [21, 84, 65], [16, 80, 50], [12, 82, 34], [8, 80, 20]],
  dark: [[20, 26, 17], [18, 46, 25], [17, 66, 35], [20, 78, 47], [27, 86, 61], [38, 92, 80]],
  "light match": [[292, 24, 92], [292, 52, 80], [292, 60, 64], [292, 62, 48], [292, 70, 34]],
  "dark match": [[292, 14, 19], [292, 32, 29], [292, 42, 42], [292, 56, 57], [292, 74, 75]],
};

export class Ramp {
  /**
   * @param {boolean} dark
   * @param {boolean} match whether it is of what a search found
   */
  constructor(dark, match) {
    const shades = RAMP_SHADES[(dark ? "dark" : "light") + (match ? " match" : "")];
    this.colors = Array.from({ length: RAMP_STEPS }, (_, step) => {
      const at = (step / (RAMP_STEPS - 1)) * (shades.length - 1);
      const [low, high] = [shades[Math.floor(at)], shades[Math.ceil(at)]];
      const [hue, saturation, lightness] = low.map((from, part) => from + (high[part] - from) * (at % 1));
      return `hsl(${hue.toFixed(1)} ${saturation.toFixed(1)}% ${lightness.toFixed(1)}%)`;
    });
  }

  /**
   * @param {number} share from 0 to 1; above it is as 1
   */
  of(share) {
    return this.colors[Math.min(RAMP_STEPS - 1, Math.floor(share * RAMP_STEPS))];
  }
}

/** Amounts of so many medians have the strongest colour, if hardly any are as large. */
const FAR = 3;
const HARDLY_ANY = 0.005;

/**
 * What the strongest colour stands for: the largest amount, but a few very large ones do not make all others pale.
 * @param {Float64Array} amounts
 */
export function topOf(amounts) {
  const some = amounts.filter((amount) => amount > 0).sort();
  if (some.length === 0) return { top: 0, largest: 0 };
  const largest = some[some.length - 1];
  const usual = some[Math.floor((some.length - 1) * (1 - HARDLY_ANY))];
  return { top: Math.min(largest, Math.max(usual, FAR * some[some.length >> 1])), largest };
}

/**
 * Shows what the colours stand for.
 * @param {HTMLElement} element is filled with it
 * @param {Ramp} ramp
 * @param {string} least
 * @param {string} most
 */
export function showRamp(element, ramp, least, most) {
  const swatches = make("span", "swatches");
  for (let part = 0; part < 1; part += 0.125) {
    const swatch = make("i");
    swatch.style.background = ramp.of(part + 0.06);
    swatches.append(swatch);
  }
  element.replaceChildren(least, swatches, most);
}
