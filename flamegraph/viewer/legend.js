// @ts-check
/** Which colour is which, and on how much of the scope it stands. */

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
    const element = item(color, label, percent(total, whole));
    element.title = `On ${percent(total, whole)} of all stacks; ${percent(self, whole)} by itself`;
    return element;
  });
  if (parts.length > MOST) items.push(item(coloring.rest, `${parts.length - MOST} others`, ""));
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
