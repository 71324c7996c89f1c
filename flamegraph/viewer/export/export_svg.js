// @ts-check
/** What a graph shows as an SVG picture: its zoom, search and colours, with all its rows and a title for each frame. */

import { amounts, percent } from "../data/format.js";
import { tooltipRows } from "../graph/frame_details.js";
import { FONT, layOut } from "../graph/layout.js";
import { DIMMED, DIMMED_TEXT, fillOf, isDimmed, PADDING, ROW, TEXT_FROM } from "../graph/painter.js";
import { TextFile } from "./export_text.js";

/** @import { Profile } from "../data/profile.js" */
/** @import { Graph } from "../graph/graph.js" */

const HEAD = 34;
const SECOND_LINE = 18;
const MARGIN = 10;
const LONGEST_TITLE = 2000;

/**
 * @param {Graph} graph
 * @param {string} title
 * @param {string} subtitle "" for none
 */
export function toSvg(graph, title, subtitle) {
  const { profile, painter } = graph;
  if (!profile) throw new Error("there is no graph to save");
  const { coloring } = painter;
  const width = graph.sheet.width || 1200;
  const head = HEAD + (subtitle ? SECOND_LINE : 0);
  const height = head + graph.rows * ROW + MARGIN;
  const file = new TextFile();
  file.put(`<svg xmlns="http://www.w3.org/2000/svg" width="${width + 2 * MARGIN}" height="${height}" viewBox="${-MARGIN} 0 ${width + 2 * MARGIN} ${height}">\n`);
  file.put(`<style>text { font: ${FONT.replaceAll('"', "'")}; fill: ${coloring.text}; dominant-baseline: central } .soft { fill: ${coloring.soft} }</style>\n`);
  file.put(`<rect x="${-MARGIN}" width="100%" height="100%" fill="${coloring.edge}"/>\n`);
  file.put(`<text x="0" y="${HEAD / 2}" font-weight="600">${escaped(title)}</text>\n`);
  if (subtitle) file.put(`<text class="soft" x="0" y="${HEAD / 2 + SECOND_LINE}"${squeezed(painter.ruler.widthOf(subtitle), width)}>${escaped(subtitle)}</text>\n`);
  const top = (/** @type {number} */ depth) => head + (graph.flame ? graph.rows - 1 - depth : depth) * ROW;
  const view = { from: graph.from, to: graph.to, width, first: 0, last: graph.rows - 1 };
  layOut(
    profile,
    view,
    (node, x, wide) => file.put(frame(graph, profile, node, x, top(profile.depth[node]), wide)),
    (depth, x, wide) => file.put(rect(x, top(depth), wide, coloring.rest, 1)),
  );
  file.put("</svg>\n");
  return file.finish("image/svg+xml");
}

/**
 * @param {Graph} graph
 * @param {Profile} profile
 * @param {number} node
 * @param {number} x
 * @param {number} y
 * @param {number} width
 */
function frame(graph, profile, node, x, y, width) {
  const { painter, look, matches, zoomed } = graph;
  const dimmed = isDimmed({ profile, matches, zoomed }, node);
  const name = node === 0 ? look.label : profile.nameOf(node);
  const box = rect(x, y, width > 2 ? width - 0.8 : width, fillOf({ profile, matches, look }, painter.coloring, node), dimmed ? DIMMED : 1);
  const text = width < TEXT_FROM ? "" : label(painter.fitNode({ profile, look }, node, width - 2 * PADDING), x + PADDING, y + ROW / 2, dimmed);
  return `<g><title>${escaped(name.slice(0, LONGEST_TITLE))} (${escaped(costText(graph, profile, node))})</title>${box}${text}</g>\n`;
}

/**
 * @param {Graph} graph
 * @param {Profile} profile
 * @param {number} node
 */
function costText(graph, profile, node) {
  if (graph.look.rows) return tooltipRows(graph, node).map((row) => row.join(" ")).join(", ");
  const total = profile.total[node];
  return [percent(total, profile.sum()), ...amounts(total, profile.event)].join(", ");
}

/**
 * @param {number} x
 * @param {number} y
 * @param {number} width
 * @param {string} fill
 * @param {number} opacity
 */
function rect(x, y, width, fill, opacity) {
  const faint = opacity < 1 ? ` opacity="${opacity}"` : "";
  return `<rect x="${x.toFixed(2)}" y="${y}" width="${width.toFixed(2)}" height="${ROW - 1}" fill="${fill}"${faint}/>`;
}

/**
 * @param {[string, string]} name what is soft of it, and what is firm
 * @param {number} x
 * @param {number} y
 * @param {boolean} dimmed
 */
function label([soft, firm], x, y, dimmed) {
  const faint = dimmed ? ` opacity="${DIMMED_TEXT}"` : "";
  const before = soft ? `<tspan class="soft">${escaped(soft)}</tspan>` : "";
  return `<text x="${x.toFixed(2)}" y="${y}"${faint}>${before}${escaped(firm)}</text>`;
}

/**
 * Letters that are set closer where a line has no room for them: what it says at its end counts as well.
 * @param {number} needed
 * @param {number} room
 */
function squeezed(needed, room) {
  return needed > room ? ` textLength="${room}" lengthAdjust="spacingAndGlyphs"` : "";
}

/**
 * Any text as XML: markup is written out, and what XML cannot hold is replaced.
 * @param {string} text
 */
function escaped(text) {
  const plain = text.replace(/[^\t\n\r\x20-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu, "\uFFFD");
  return plain.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
