// @ts-check
/** The line below the views: the frame that is in view or chosen, and what can be copied of it. */

import { copyText, make, part } from "./dom.js";
import { amounts, percent } from "./format.js";
import { moduleOf } from "./modules.js";
import { toldOf } from "./told.js";
import { nameElement } from "./tooltip.js";

/** @typedef {import("./graph.js").Graph} Graph */
/** @typedef {import("./profile.js").Profile} Profile */

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
    return toldOf(graph, node).flatMap(([what, ...told], at) => {
      return [at ? ", " : "", make("bdi", "", what), " ", make("bdi", "", told.join(" · "))];
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
