// @ts-check
/** What a frame is and costs, beside the pointer. */

import { make, part } from "./dom.js";
import { FAMILIES } from "./families.js";
import { packageLength } from "./format.js";
import { moduleOf } from "./modules.js";
import { toldOf } from "./told.js";

/** @typedef {import("./graph.js").Graph} Graph */
/** @typedef {import("./profile.js").Profile} Profile */

const LONGEST = 600;
const DISTANCE = 14;

/**
 * @param {Graph} graph
 * @param {number} node
 * @param {number} x client pixels
 * @param {number} y client pixels
 */
export function showTooltip(graph, node, x, y) {
  if (!graph.profile) return;
  const tip = part("tooltip", HTMLDivElement);
  tip.replaceChildren(...describe(graph, graph.profile, node));
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
 * @param {Graph} graph
 * @param {Profile} profile
 * @param {number} node
 */
function describe(graph, profile, node) {
  const table = make("dl");
  for (const [what, first, ...others] of toldOf(graph, node)) addLine(table, what, first, others);
  const parts = [nameElement(node > 0 ? profile.nameOf(node) : graph.look.label), table];
  if (node > 0) parts.push(kindElement(profile, node));
  return parts;
}

/**
 * Its family, the package or namespace it belongs to, and the module it lies in.
 * @param {Profile} profile
 * @param {number} node
 */
function kindElement(profile, node) {
  const name = profile.nameOf(node);
  const where = name.slice(0, Math.max(0, packageLength(name) - 1)).replaceAll("/", ".").slice(0, LONGEST);
  const family = FAMILIES[profile.familyOf(node)].label;
  const element = make("p", "kind", where ? `${family} · ${where}` : family);
  const module = moduleOf(profile, node);
  if (module) element.append(" · ", make("bdi", "", module));
  return element;
}

/**
 * @param {HTMLElement} table
 * @param {string} label
 * @param {string} first
 * @param {string[]} others
 */
function addLine(table, label, first, others) {
  const cell = make("dd", "", others.length ? "" : first);
  if (others.length) cell.append(make("b", "", first), make("span", "", others.join(" · ")));
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
