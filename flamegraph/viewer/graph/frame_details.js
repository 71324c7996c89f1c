// @ts-check
/** What a graph says of a frame: beside the pointer, in the line below, and in a saved picture. */

import { copyText, filled, linkButton, make, part } from "../controls/dom.js";
import { doubtOf, DOUBTS } from "../data/callers.js";
import { amounts, packageLength, percent, shortName, shownName } from "../data/format.js";
import { FAMILIES, moduleOf } from "../data/frame_kinds.js";
import { countsWaits, doneBelow, knowsWaits, saysOf, waiterOf, wordsOf } from "../data/waits.js";
import { isInside } from "./layout.js";

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
  const { total, self } = profile;
  const cost = (/** @type {number} */ value) => [percent(value, profile.sum()), amounts(value, profile.event).join(" · ")];
  /** @type {TooltipRow[]} */
  const rows = [["Total", ...cost(total[node])], ["Self", ...cost(self[node])]];
  if (isInside(profile, zoomed, node)) rows.push(["Of view", percent(total[node], total[zoomed])]);
  return [...rows, ...doubtRows(profile, node), ...waitRows(profile, node)];
}

/**
 * What may be wrong of a frame.
 * @param {Profile} profile
 * @param {number} node
 * @returns {TooltipRow[]}
 */
function doubtRows(profile, node) {
  const doubt = doubtOf(profile, node);
  if (doubt === "") return [];
  return [[doubt === "caller" ? "?" : "? Total", DOUBTS[doubt]]];
}

const MOST_WAITS = 4;

/**
 * What threads below a frame do, with shares of the frame.
 * @param {Profile} profile
 * @param {number} node
 * @returns {TooltipRow[]}
 */
function waitRows(profile, node) {
  if (!countsWaits(profile.event.type) || !knowsWaits(profile.shape)) return [];
  return doneBelow(profile, node).slice(0, MOST_WAITS).map(([does, value]) => {
    const method = does > 0 && profile.self[node] === profile.total[node] ? shortName(waiterOf(profile, node)) : "";
    const says = method ? `${saysOf(does)} ${method}` : wordsOf(does);
    return [`${says[0].toUpperCase()}${says.slice(1)}`, percent(value, profile.total[node])];
  });
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
  const { profile } = graph;
  if (!profile) return;
  const tip = part("tooltip", HTMLDivElement);
  const name = node > 0 ? profile.nameOf(node) : graph.look.label;
  tip.replaceChildren(nameElement(name), rowsElement(tooltipRows(graph, node)));
  const note = graph.pins.get(node);
  if (note) tip.append(make("p", "note", note));
  if (node > 0) {
    // Its family, the package or namespace it belongs to, and the module it lies in.
    const where = name.slice(0, Math.max(0, packageLength(name) - 1)).replaceAll("/", ".").slice(0, LONGEST);
    const module = moduleOf(profile, node);
    const kind = make("p", "kind", FAMILIES[profile.familyOf(node)].label + (where && ` · ${where}`));
    if (module) kind.append(" · ", make("bdi", "", module));
    tip.append(kind);
  }
  place(tip, x, y);
}

/**
 * A tooltip of anything else.
 * @param {string} title
 * @param {TooltipRow[]} rows
 * @param {number} x client pixels
 * @param {number} y client pixels
 */
export function showTip(title, rows, x, y) {
  const tip = part("tooltip", HTMLDivElement);
  tip.replaceChildren(make("bdi", "method", title), rowsElement(rows));
  place(tip, x, y);
}

/** @param {TooltipRow[]} rows */
function rowsElement(rows) {
  return filled("dl", "", ...rows.flatMap(([what, first, ...others]) => {
    const values = others.length ? [make("b", "", first), make("span", "", others.join(" · "))] : [first];
    return [make("dt", "", what), filled("dd", "", ...values)];
  }));
}

/**
 * @param {HTMLElement} tip
 * @param {number} x client pixels
 * @param {number} y client pixels
 */
function place(tip, x, y) {
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
 * A method's name with its package set back.
 * @param {string} name
 */
export function nameElement(name) {
  const shown = name.length > LONGEST ? `${name.slice(0, LONGEST)}…` : name;
  const cut = packageLength(shown);
  return filled("bdi", "method", ...(cut ? [make("span", "package", shownName(shown).slice(0, cut))] : []), shown.slice(cut));
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
  const [total, self] = [profile.total[node], profile.self[node]];
  const shares = `${percent(total, profile.sum())} total, ${percent(self, profile.sum())} self`;
  const cost = graph.look.rows
    ? tooltipRows(graph, node).flatMap(([what, ...values], at) => {
        return [at ? ", " : "", make("bdi", "", what), " ", make("bdi", "", values.join(" · "))];
      })
    : [[shares, ...amounts(total, profile.event)].join(" · ")];
  for (const [what, share] of graph.look.rows ? [] : [...doubtRows(profile, node), ...waitRows(profile, node)]) cost.push(" · ", make("bdi", "", `${what} ${share}`));
  const module = moduleOf(profile, node);
  if (module) cost.push(" · in ", make("bdi", "", module));
  part("frame-name", HTMLSpanElement).replaceChildren(nameElement(profile.nameOf(node)));
  part("frame-cost", HTMLSpanElement).replaceChildren(...cost);
}

/**
 * @param {Graph | null} graph
 * @param {number} node
 */
export async function copyName(graph, node) {
  if (graph?.methodOf(node)) await copy(shownName(graph.methodOf(node)), "copy-name", "Copy name");
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
  const frames = path.map((at) => shownName(profile.nameOf(at)).replaceAll(";", ":")).join(";");
  await copy(graph.look.average ? frames : `${frames} ${Math.round(profile.total[node])}`, "copy-stack", "Copy stack");
}

/**
 * @param {string} text
 * @param {string} id of the button that says so
 * @param {string} label of the button
 */
async function copy(text, id, label) {
  await copyText(text);
  const button = part(id, HTMLButtonElement);
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = label), COPIED_MILLISECONDS);
}
