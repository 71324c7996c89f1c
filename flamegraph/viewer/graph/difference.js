// @ts-check
/** How a comparison looks: red has more, blue has less, and the tooltip says it in words. */

import { percent, quantity } from "../data/format.js";

/** @import { Sides } from "../data/comparison.js" */
/** @import { Noise } from "../data/noise.js" */

const STEPS = 8;
/** The strongest of what may be chance: red and blue are still distinct. */
const FAINT = 2;
/** Below this part of the whole a difference is none. */
const SAME = 0.0002;
/** The strongest colour means at least this part of the whole: 10 points. Smaller differences are paler. */
const LEAST = 0.1;
/** Nearly all people see red and blue as distinct; names must stay readable on both. */
const MORE = 14;
const LESS = 212;
const [LIGHT, DARK] = [ramps(95, 64, 82), ramps(25, 43, 62)];

/** The difference of two sides, frame by frame. */
export class Difference {
  /**
   * @param {Sides} sides
   * @param {boolean} normalised
   * @param {string} hereName
   * @param {string} thereName
   */
  constructor(sides, normalised, hereName, thereName) {
    this.sides = sides;
    this.normalised = normalised;
    this.hereName = hereName;
    this.thereName = thereName;
    this.largest = this.findLargest();
    /** What the strongest colour stands for. */
    this.scale = Math.max(this.largest, LEAST * (normalised ? 1 : Math.max(sides.here.sum(), sides.there.sum())));
    /** What chance makes; null while unknown. @type {Noise | null} */
    this.noise = null;
  }

  findLargest() {
    const { here, there, hereWhole, thereWhole } = this.sides;
    const [one, other] = [here.total[0], there.total[0]];
    let largest = 0;
    for (let node = 1; node < here.count; node++) {
      largest = Math.max(largest, Math.abs(one[node] / hereWhole - other[node] / thereWhole));
    }
    return largest;
  }

  /** @param {number} node */
  here(node) {
    return this.sides.here.total[0][node] / this.sides.hereWhole;
  }

  /** @param {number} node */
  there(node) {
    return this.sides.there.total[0][node] / this.sides.thereWhole;
  }

  /**
   * The frame's colour: the stronger, the larger its part in what the strongest stands for; faint within noise.
   * @param {number} node
   * @param {boolean} dark
   */
  tint(node, dark) {
    const change = this.here(node) - this.there(node);
    return this.shadeOf(dark ? DARK : LIGHT, change, this.isChance(node) ? FAINT : STEPS);
  }

  /**
   * Whether chance may make all of its change.
   * @param {number} node
   */
  isChance(node) {
    const parts = [this.here(node), this.there(node)];
    const noise = this.noise?.ofPath(this.sides.here.name[node], parts) ?? null;
    return noise !== null && Math.abs(parts[0] - parts[1]) <= noise;
  }

  /** Whether chance may make all that changed; false where unknown. */
  isAllChance() {
    const { count } = this.sides.here;
    for (let node = 1; node < count; node++) if (!this.isChance(node)) return false;
    return true;
  }

  /**
   * For style sheets: the colour in light and in dark.
   * @param {number} change
   */
  colorsOf(change) {
    return `light-dark(${this.shadeOf(LIGHT, change)}, ${this.shadeOf(DARK, change)})`;
  }

  /**
   * @param {{more: string[], less: string[]}} ramps
   * @param {number} change
   * @param {number} [strongest] no step is larger
   */
  shadeOf({ more, less }, change, strongest = STEPS) {
    const least = this.normalised ? SAME : SAME * this.largest;
    if (Math.abs(change) <= least) return more[0];
    const step = Math.min(strongest, 1 + Math.floor(Math.sqrt(Math.abs(change) / this.scale) * STEPS));
    return (change > 0 ? more : less)[step];
  }

  /**
   * @param {number} node
   * @returns {[string, string][]} lines of a tooltip
   */
  rows(node) {
    const [here, there] = [this.here(node), this.there(node)];
    return [
      [this.hereName, this.part(here)],
      [this.thereName, this.part(there)],
      ["Difference", this.words(here, there) + this.doubt(node)],
    ];
  }

  /** @param {number} node */
  doubt(node) {
    return node > 0 && this.here(node) !== this.there(node) && this.isChance(node) ? "; may be chance" : "";
  }

  /**
   * A side's part as it is written.
   * @param {number} part
   */
  part(part) {
    return this.normalised ? percent(part, 1) : quantity(part, this.sides.here.event);
  }

  /**
   * "+22.0 points", "−1.4 s".
   * @param {number} change
   */
  change(change) {
    return change === 0 ? "0" : `${change > 0 ? "+" : "−"}${this.size(Math.abs(change))}`;
  }

  /** @param {number} size */
  size(size) {
    if (!this.normalised) return quantity(size, this.sides.here.event);
    const points = size * 100;
    return `${points === 0 || points >= 1 ? points.toFixed(1) : points.toFixed(2)} points`;
  }

  /**
   * @param {number} here
   * @param {number} there
   */
  words(here, there) {
    if (there === 0) return `only in ${this.hereName}`;
    if (here === 0) return `only in ${this.thereName}`;
    const size = this.size(Math.abs(here - there));
    if (Number.parseFloat(size) === 0) return "none";
    return `${size} ${here > there ? "more" : "less"} in ${this.hereName}${times(here, there)}`;
  }
}

/**
 * How many times as much, where that is easier to grasp.
 * @param {number} here
 * @param {number} there
 */
function times(here, there) {
  const ratio = here / there;
  if (ratio >= 1.5) return `, ${ratio.toFixed(1)} times as much`;
  return ratio <= 1 / 1.5 ? `, ${(1 / ratio).toFixed(1)} times less` : "";
}

/**
 * Colours from the neutral to the strongest.
 * @param {number} neutral lightness in percent
 * @param {number} strongest lightness in percent
 * @param {number} saturation of the strongest, in percent
 */
function ramps(neutral, strongest, saturation) {
  const ramp = (/** @type {number} */ hue) =>
    Array.from({ length: STEPS + 1 }, (_, step) => {
      const part = step / STEPS;
      const shade = neutral + (strongest - neutral) * part;
      return step === 0 ? `hsl(${hue} 0% ${neutral - 3}%)` : `hsl(${hue} ${saturation * (0.35 + 0.65 * part)}% ${shade}%)`;
    });
  return { more: ramp(MORE), less: ramp(LESS) };
}
