// @ts-check
/** What a frame is and costs, beside the pointer. */

import { FAMILIES } from "./colors.js";
import { make, part } from "./dom.js";
import { packageLength, percent, quantity } from "./format.js";

/** @typedef {import("./profile.js").Profile} Profile */

const LONGEST = 600;
const DISTANCE = 14;

/**
 * @param {Profile} profile
 * @param {number} node
 * @param {number} zoomed
 * @param {number} x client pixels
 * @param {number} y client pixels
 */
export function showTooltip(profile, node, zoomed, x, y) {
  const tip = part("tooltip", HTMLDivElement);
  tip.replaceChildren(...describe(profile, node, zoomed));
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  const left = Math.min(x + DISTANCE, window.innerWidth - width - 8);
  const below = y + DISTANCE + height < window.innerHeight;
  tip.style.transform = `translate(${Math.max(8, left)}px, ${below ? y + DISTANCE : Math.max(8, y - height - DISTANCE)}px)`;
}

export function hideTooltip() {
  part("tooltip", HTMLDivElement).hidden = true;
}

/**
 * @param {Profile} profile
 * @param {number} node
 * @param {number} zoomed
 */
function describe(profile, node, zoomed) {
  const table = make("dl");
  addRow(table, "Total", profile, profile.total, node);
  addRow(table, "Self", profile, profile.self, node);
  if (zoomed > 0 && node !== zoomed) {
    table.append(make("dt", "", "Of view"), make("dd", "", percent(profile.total[0][node], profile.total[0][zoomed])));
  }
  const parts = [nameElement(profile.nameOf(node)), table];
  if (node > 0) {
    parts.push(make("p", "kind", FAMILIES[profile.familyOf(node)].label));
  }
  return parts;
}

/**
 * @param {HTMLElement} table
 * @param {string} label
 * @param {Profile} profile
 * @param {Float64Array[]} numbers
 * @param {number} node
 */
function addRow(table, label, profile, numbers, node) {
  const cell = make("dd");
  cell.append(make("b", "", percent(numbers[0][node], profile.sum())));
  const amounts = profile.values.map((type, value) => quantity(numbers[value][node], type));
  cell.append(make("span", "", amounts.join(" · ")));
  table.append(make("dt", "", label), cell);
}

/**
 * A method's name with its package set back.
 * @param {string} name
 */
export function nameElement(name) {
  const shown = name.length > LONGEST ? `${name.slice(0, LONGEST)}…` : name;
  const cut = packageLength(shown);
  const element = make("bdi", "method");
  if (cut) element.append(make("span", "package", shown.slice(0, cut)));
  element.append(shown.slice(cut));
  return element;
}
