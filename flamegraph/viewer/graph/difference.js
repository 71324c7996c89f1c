// @ts-check
/** How a comparison looks: red has more, blue has less, and the tooltip says it in words. */

import { doubtOf, DOUBTS } from "../data/callers.js";
import { percent, quantity } from "../data/format.js";

/** @import { Sides } from "../data/comparison.js" */
/** @import { Noise } from "../data/noise.js" */

const STEPS = 8;
/** The strongest step within noise: red and blue are still distinct. */
const FAINT = 2;
/** A smaller part of the whole is no difference. */
const SAME = 0.0002;
/** The strongest colour means at least this part of the whole: 10 points. Smaller differences are paler. */
const LEAST = 0.1;
/** Nearly all people see red and blue as distinct; names must stay readable on both. */
const MORE = 14;
const LESS = 212;
/** Lightness of the neutral and of the strongest colour, saturation of the strongest, in percent. */
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
    const [one, other] = [sides.here.total, sides.there.total];
    this.largest = 0;
    for (let node = 1; node < sides.here.count; node++) {
      this.largest = Math.max(this.largest, Math.abs(one[node] / sides.hereWhole - other[node] / sides.thereWhole));
    }
    /** What the strongest colour stands for. */
    this.scale = Math.max(this.largest, LEAST * (normalised ? 1 : Math.max(one[0], other[0])));
    /** Null while unknown. @type {Noise | null} */
    this.noise = null;
  }

  /**
   * A frame's parts of both sides.
   * @param {number} node
   */
  partsOf(node) {
    const { here, there, hereWhole, thereWhole } = this.sides;
    return [here.total[node] / hereWhole, there.total[node] / thereWhole];
  }

  /**
   * The frame's colour: the stronger, the larger its change; faint within noise, none where the change is not known.
   * @param {number} node
   * @param {boolean} dark
   */
  tint(node, dark) {
    const ramps = dark ? DARK : LIGHT;
    if (doubtOf(this.sides.here, node)) return ramps.more[0];
    const [here, there] = this.partsOf(node);
    return this.shadeOf(ramps, here - there, this.isChance(node) ? FAINT : STEPS);
  }

  /**
   * Whether the frame's change is within noise.
   * @param {number} node
   */
  isChance(node) {
    if (!this.noise) return false;
    const [here, there] = this.partsOf(node);
    const noise = this.noise.ofPath(this.sides.here.name[node], here, there);
    return noise !== null && Math.abs(here - there) <= noise;
  }

  /** Whether all changes are within noise; false where unknown. */
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
    const unknown = doubtOf(this.sides.here, node);
    if (unknown) return [["Difference", DOUBTS[unknown]]];
    const [here, there] = this.partsOf(node);
    const doubt = node > 0 && here !== there && this.isChance(node) ? "; within noise" : "";
    return [
      [this.hereName, this.part(here)],
      [this.thereName, this.part(there)],
      ["Difference", this.words(here, there) + doubt],
    ];
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
    return `${points.toFixed(points === 0 || points >= 1 ? 1 : 2)} points`;
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
    const ratio = here / there;
    let times = ratio >= 1.5 ? `, ${ratio.toFixed(1)} times as much` : "";
    if (ratio <= 1 / 1.5) times = `, ${(1 / ratio).toFixed(1)} times less`;
    return `${size} ${here > there ? "more" : "less"} in ${this.hereName}${times}`;
  }
}

/**
 * Colours from the neutral to the strongest.
 * @param {number} neutral
 * @param {number} strongest
 * @param {number} saturation
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
