// @ts-check
/** A graph as an SVG picture: with its zoom, search and colours, all rows, and a title for each frame. */

import { amounts, percent, shownName } from "../data/format.js";
import { tooltipRows } from "../graph/frame_details.js";
import { FONT, layOut } from "../graph/layout.js";
import { DIMMED, DIMMED_TEXT, fillOf, inkOf, isDimmed, PADDING, ROW, TEXT_FROM } from "../graph/painter.js";
import { TextFile } from "./export_text.js";

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
  const { profile, painter, look, matches, zoomed } = graph;
  if (!profile) throw new Error("there is no graph to save");
  const { coloring, ruler } = painter;
  const width = graph.sheet.width || 1200;
  const head = HEAD + (subtitle ? SECOND_LINE : 0);
  const [whole, height] = [width + 2 * MARGIN, head + graph.rows * ROW + MARGIN];
  const file = new TextFile();
  file.put(`<svg xmlns="http://www.w3.org/2000/svg" width="${whole}" height="${height}" viewBox="${-MARGIN} 0 ${whole} ${height}">\n`);
  file.put(`<style>text { font: ${FONT.replaceAll('"', "'")}; fill: ${coloring.text}; dominant-baseline: central }</style>\n`);
  file.put(`<rect x="${-MARGIN}" width="100%" height="100%" fill="${coloring.edge}"/>\n`);
  file.put(`<text x="0" y="${HEAD / 2}" font-weight="600">${escaped(title)}</text>\n`);
  // A line that is too long is set closer, not cut.
  const squeezed = ruler.widthOf(subtitle) > width ? ` textLength="${width}" lengthAdjust="spacingAndGlyphs"` : "";
  if (subtitle) file.put(`<text fill-opacity="0.7" x="0" y="${HEAD / 2 + SECOND_LINE}"${squeezed}>${escaped(subtitle)}</text>\n`);
  const top = (/** @type {number} */ depth) => head + (graph.flame ? graph.rows - 1 - depth : depth) * ROW;
  layOut(
    profile,
    { from: graph.from, to: graph.to, width, first: 0, last: graph.rows - 1 },
    (node, x, wide) => {
      const y = top(profile.depth[node]);
      const dimmed = isDimmed({ profile, matches, zoomed }, node);
      const total = profile.total[node];
      const cost = look.rows
        ? tooltipRows(graph, node).map((row) => row.join(" "))
        : [percent(total, profile.sum()), ...amounts(total, profile.event)];
      const name = node === 0 ? look.label : shownName(profile.nameOf(node));
      const [soft, firm] = wide < TEXT_FROM ? ["", ""] : painter.fitNode({ profile, look }, node, wide - 2 * PADDING);
      const fill = fillOf({ profile, matches, look }, coloring, node);
      const ink = inkOf(coloring, fill, dimmed);
      const own = ink.text === coloring.text ? "" : ` style="fill:${ink.text}"`;
      const faint = dimmed ? ` opacity="${DIMMED_TEXT}"` : "";
      const before = soft ? `<tspan style="fill:${ink.soft}">${escaped(soft)}</tspan>` : "";
      const text = firm ? `<text x="${(x + PADDING).toFixed(2)}" y="${y + ROW / 2}"${faint}${own}>${before}${escaped(firm)}</text>` : "";
      const box = rect(x, y, wide > 2 ? wide - 0.8 : wide, fill, dimmed ? DIMMED : 1);
      file.put(`<g><title>${escaped(name.slice(0, LONGEST_TITLE))} (${escaped(cost.join(", "))})</title>${box}${text}</g>\n`);
    },
    (depth, x, wide) => file.put(rect(x, top(depth), wide, coloring.rest, 1)),
  );
  file.put("</svg>\n");
  return file.finish("image/svg+xml");
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
 * Any text as XML: markup is written out, and what XML cannot hold is replaced.
 * @param {string} text
 */
function escaped(text) {
  const plain = text.replace(/[^\t\n\r\x20-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu, "\uFFFD");
  return plain.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
