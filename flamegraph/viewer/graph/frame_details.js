// @ts-check
/** What a graph says of a frame: beside the pointer, in the line below, and in a saved picture. */

import { copyText, linkButton, make, part } from "../controls/dom.js";
import { amounts, packageLength, percent } from "../data/format.js";
import { FAMILIES, moduleOf } from "../data/frame_kinds.js";

/** @import { Context } from "../controls/context.js" */
/** @import { Profile } from "../data/profile.js" */
/** @import { Graph } from "./graph.js" */

/**
 * A label and its values; the first value matters most.
 * @typedef {[what: string, ...values: string[]]} TooltipRow
 */

/**
 * @param {Graph} graph
 * @param {number} node
 * @returns {TooltipRow[]}
 */
export function tooltipRows({ profile, look, zoomed }, node) {
  if (!profile) return [];
  if (look.rows) return look.rows(node);
  const [total, self] = [profile.total[0], profile.self[0]];
  const cost = (/** @type {number} */ value) => [percent(value, profile.sum()), amounts(value, profile.event).join(" · ")];
  /** @type {TooltipRow[]} */
  const rows = [["Total", ...cost(total[node])], ["Self", ...cost(self[node])]];
  if (isInside(profile, zoomed, node)) rows.push(["Of view", percent(total[node], total[zoomed])]);
  return rows;
}

/**
 * Whether a frame stands on the one that fills the width: only such a frame is a part of what is in view.
 * @param {{end: Int32Array}} profile
 * @param {number} zoomed 0 where everything is in view
 * @param {number} node
 */
export function isInside({ end }, zoomed, node) {
  return zoomed > 0 && node > zoomed && node < end[zoomed];
}

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
  for (const [what, first, ...others] of tooltipRows(graph, node)) addLine(table, what, first, others);
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

/**
 * A method's name that leads to its callers and callees.
 * @param {Context} context
 * @param {string} name
 */
export function methodButton(context, name) {
  return linkButton("Callers and callees", () => context.openMethod(name), nameElement(name));
}

const COPIED_MILLISECONDS = 2000;

/**
 * @param {Graph | null} graph
 * @param {number} node the root and -1 leave a hint
 */
export function showFrame(graph, node) {
  const profile = graph?.profile;
  const chosen = Boolean(profile) && node > 0;
  part("frame-hint", HTMLParagraphElement).hidden = chosen;
  part("frame-chosen", HTMLParagraphElement).hidden = !chosen;
  if (!profile || !chosen) return;
  part("frame-name", HTMLSpanElement).replaceChildren(nameElement(profile.nameOf(node)));
  const module = moduleOf(profile, node);
  const where = module ? [" · in ", make("bdi", "", module)] : [];
  part("frame-cost", HTMLSpanElement).replaceChildren(...costElements(graph, profile, node), ...where);
}

/**
 * @param {Graph} graph
 * @param {Profile} profile
 * @param {number} node
 */
function costElements(graph, profile, node) {
  if (graph.look.rows) {
    return tooltipRows(graph, node).flatMap(([what, ...values], at) => {
      return [at ? ", " : "", make("bdi", "", what), " ", make("bdi", "", values.join(" · "))];
    });
  }
  const [total, self] = [profile.total[0][node], profile.self[0][node]];
  const shares = `${percent(total, profile.sum())} total, ${percent(self, profile.sum())} self`;
  return [[shares, ...amounts(total, profile.event)].join(" · ")];
}

/**
 * @param {Graph | null} graph
 * @param {number} node
 */
export async function copyName(graph, node) {
  if (!graph?.methodOf(node)) return;
  await copyText(graph.methodOf(node));
  confirm("copy-name", "Copy name");
}

/**
 * The frames from the outermost to the innermost as one folded line, with its total where that is an amount of something.
 * @param {Graph | null} graph
 * @param {number} node
 */
export async function copyStack(graph, node) {
  const profile = graph?.profile;
  if (!profile || node < 0) return;
  const path = profile.pathOf(node);
  if (profile.name[0] >= 0) path.unshift(0); // a graph of one method
  if (path.length === 0) return;
  if (graph.look.outward) path.reverse();
  const frames = path.map((at) => profile.nameOf(at).replaceAll(";", ":")).join(";");
  await copyText(graph.look.average ? frames : `${frames} ${Math.round(profile.total[0][node])}`);
  confirm("copy-stack", "Copy stack");
}

/**
 * @param {string} id
 * @param {string} label
 */
function confirm(id, label) {
  const button = part(id, HTMLButtonElement);
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = label), COPIED_MILLISECONDS);
}
