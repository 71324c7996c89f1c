// @ts-check
/** Which colour is which, and what part of the scope ends in it: these parts add up to all of it. */

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
  const whole = profile.sum();
  const items = parts.slice(0, MOST).map(({ color, label, self, total }) => {
    const element = item(color, label, percent(self, whole));
    element.title = `${percent(self, whole)} by itself; on ${percent(total, whole)} of all stacks`;
    return element;
  });
  const others = parts.slice(MOST);
  const left = others.reduce((sum, { self }) => sum + self, 0);
  if (others.length) items.push(item(coloring.rest, `${others.length} others`, percent(left, whole)));
  part("legend", HTMLUListElement).replaceChildren(make("li", "", "By itself:"), ...items);
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
