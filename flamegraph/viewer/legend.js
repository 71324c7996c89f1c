// @ts-check
/** Which colour is which kind of frame, and how much of the scope each kind is by itself. */

import { FAMILIES, makePalette } from "./colors.js";
import { make, part } from "./dom.js";
import { percent } from "./format.js";

/** @typedef {import("./profile.js").Profile} Profile */

/**
 * Self value of each family of frames, the largest first.
 * @param {Profile} profile
 * @returns {[string, number][]}
 */
export function shareByFamily(profile) {
  /** @type {Map<string, number>} */
  const shares = new Map();
  for (let node = 1; node < profile.count; node++) {
    const self = profile.self[0][node];
    if (self === 0) continue;
    const family = profile.familyOf(node);
    shares.set(family, (shares.get(family) ?? 0) + self);
  }
  return [...shares].sort((a, b) => b[1] - a[1]);
}

/**
 * @param {Profile} profile
 * @param {boolean} dark
 */
export function showLegend(profile, dark) {
  const palette = makePalette(dark);
  const items = shareByFamily(profile).map(([family, self]) => {
    const item = make("li");
    const swatch = make("i");
    swatch.style.background = palette.fill(family, 2);
    item.append(swatch, `${FAMILIES[family].label} `, make("b", "", percent(self, profile.sum())));
    return item;
  });
  part("legend", HTMLUListElement).replaceChildren(...items);
}
