// @ts-check
/** Two scopes on one tree: what has more, what has less, what is in one of them only. */

/** @typedef {import("./profile.js").Profile} Profile */
/** @typedef {import("./methods.js").Method} Method */

/**
 * Both sides of a comparison, in shares of their own wholes or in amounts.
 * @typedef {object} Sides
 * @property {Profile} here
 * @property {Profile} there
 * @property {number} hereWhole what an amount of the one is divided by
 * @property {number} thereWhole
 */

/**
 * A method on both sides.
 * @typedef {object} Change
 * @property {number} name
 * @property {number} origin
 * @property {number} here total, as a part of its whole
 * @property {number} there
 * @property {number} change here less there
 * @property {number} selfChange
 */

/**
 * A path that only one side has, with all below it.
 * @typedef {{node: number, part: number}} Lone
 */
/**
 * The heaviest of them, and how many there are in all.
 * @typedef {{paths: Lone[], count: number, chance: number}} LoneFrames `chance` are those that may be chance, besides
 */

/**
 * @param {Profile} here
 * @param {Profile} there
 * @param {boolean} normalised
 * @returns {Sides}
 */
export function sidesOf(here, there, normalised) {
  if (normalised) return { here, there, hereWhole: here.sum() || 1, thereWhole: there.sum() || 1 };
  return { here, there, hereWhole: 1, thereWhole: 1 };
}

/**
 * @param {Method[]} here
 * @param {Method[]} there
 * @param {Sides} sides
 * @returns {Change[]} the largest change of totals first
 */
export function methodChanges(here, there, sides) {
  const { hereWhole, thereWhole } = sides;
  /** @type {Map<number, Change>} */
  const changes = new Map();
  for (const { name, origin, total, self } of here) {
    const part = total / hereWhole;
    changes.set(name, { name, origin, here: part, there: 0, change: part, selfChange: self / hereWhole });
  }
  for (const { name, origin, total, self } of there) {
    const part = total / thereWhole;
    const both = changes.get(name) ?? { name, origin, here: 0, there: 0, change: 0, selfChange: 0 };
    both.there = part;
    both.change = both.here - part;
    both.selfChange -= self / thereWhole;
    changes.set(name, both);
  }
  return [...changes.values()];
}

/**
 * The outermost frames that one profile has and the other has not, the heaviest first.
 * @param {Profile} one
 * @param {Profile} other
 * @param {number} whole of the one
 * @param {number} most how many
 * @param {(node: number) => boolean} isChance
 * @returns {LoneFrames}
 */
export function loneFrames(one, other, whole, most, isChance) {
  const { count, end } = one;
  const total = one.total[0];
  const missing = other.total[0];
  /** @type {Lone[]} */
  const found = [];
  for (let node = 1; node < count; ) {
    if (total[node] === 0) {
      node = end[node];
    } else if (missing[node] === 0) {
      found.push({ node, part: total[node] / whole });
      node = end[node];
    } else {
      node++;
    }
  }
  const told = found.filter(({ node }) => !isChance(node));
  told.sort((a, b) => b.part - a.part || a.node - b.node);
  return { paths: told.slice(0, most), count: told.length, chance: found.length - told.length };
}

/**
 * The totals that the picture of a comparison shows: a frame is as wide as both sides have it on average,
 * so that what only one of them has is there too.
 * @param {Sides} sides
 * @param {Float64Array} total is filled with that of each node
 */
export function fillAverage({ here, there, hereWhole, thereWhole }, total) {
  const [[one], [other]] = [here.total, there.total];
  const [half, otherHalf] = [0.5 / hereWhole, 0.5 / thereWhole];
  for (let node = 0; node < total.length; node++) {
    total[node] = one[node] * half + other[node] * otherHalf;
  }
}
