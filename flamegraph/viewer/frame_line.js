// @ts-check
/** The line below the views: the frame that is in view or chosen, and what can be copied of it. */

import { copyText, part } from "./dom.js";
import { amounts, percent } from "./format.js";
import { nameElement } from "./tooltip.js";

/** @typedef {import("./graph.js").Graph} Graph */

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
  const [total, self] = [profile.total[0][node], profile.self[0][node]];
  const shares = `${percent(total, profile.sum())} total, ${percent(self, profile.sum())} self`;
  part("frame-cost", HTMLSpanElement).textContent = `${shares} · ${amounts(total, profile.event).join(" · ")}`;
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
 * The frames from the root to this one as one folded line, with its total.
 * @param {Graph | null} graph
 * @param {number} node
 */
export async function copyStack(graph, node) {
  const profile = graph?.profile;
  if (!profile || node <= 0) return;
  const frames = profile.pathOf(node).map((at) => profile.nameOf(at).replaceAll(";", ":"));
  await copyText(`${frames.join(";")} ${Math.round(profile.total[0][node])}`);
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
