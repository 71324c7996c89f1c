// @ts-check
/** Which colour is which, and how much of the scope each is by itself. */

import { make, part } from "./dom.js";
import { percent } from "./format.js";

/** @typedef {import("./colors.js").Coloring} Coloring */
/** @typedef {import("./profile.js").Profile} Profile */

const MOST = 14;

/**
 * @param {Profile} profile
 * @param {Coloring} coloring
 */
export function showLegend(profile, coloring) {
  const parts = coloring.parts(profile);
  const items = parts.slice(0, MOST).map((one) => item(one.color, one.label, percent(one.self, profile.sum())));
  if (parts.length > MOST) {
    const others = parts.slice(MOST).reduce((sum, one) => sum + one.self, 0);
    items.push(item(coloring.rest, `${parts.length - MOST} others`, percent(others, profile.sum())));
  }
  part("legend", HTMLUListElement).replaceChildren(...items);
}

/**
 * @param {string} color
 * @param {string} label
 * @param {string} share
 */
function item(color, label, share) {
  const element = make("li");
  const swatch = make("i");
  swatch.style.background = color;
  element.append(swatch, make("bdi", "", label), " ", make("b", "", share));
  return element;
}
