// @ts-check
/** Draws frames on the canvas. */

import { doubtOf } from "../data/callers.js";
import { packageLength, shownName } from "../data/format.js";
import { Coloring } from "./colors.js";
import { layOut, Ruler } from "./layout.js";

/** @import { Profile } from "../data/profile.js" */
/** @import { Matches } from "../data/search.js" */
/** @import { Look } from "./graph.js" */

/** A frame's height with the line between, in pixels. */
export const ROW = 20;
export const TEXT_FROM = 34;
export const PADDING = 5;
const PIN = 9;
export const DIMMED = 0.28;
export const DIMMED_TEXT = 0.75;

/**
 * What to draw.
 * @typedef {object} Picture
 * @property {Profile} profile
 * @property {Matches | null} matches
 * @property {number} zoomed the node that fills the width
 * @property {Look} look
 * @property {number} from left edge, in units of the value
 * @property {number} to right edge
 * @property {number} width in pixels
 * @property {number} height in pixels
 * @property {number} first depth in sight
 * @property {number} last depth in sight
 * @property {(depth: number) => number} top the upper edge of a depth, in pixels
 */

export class Painter {
  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    const context = canvas.getContext("2d", { alpha: false });
    if (!context) throw new Error("this browser has no canvas");
    this.canvas = canvas;
    this.context = context;
    this.coloring = new Coloring(false, "kind");
    this.ruler = new Ruler(context);
  }

  /** @param {Picture} picture */
  paint(picture) {
    const { context, coloring, ruler } = this;
    const { profile, top } = picture;
    const ratio = this.canvas.width / picture.width;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.globalAlpha = 1;
    context.fillStyle = coloring.edge;
    context.fillRect(0, 0, picture.width, picture.height);
    ruler.prepare();
    context.textBaseline = "middle";
    layOut(
      profile,
      picture,
      (node, x, width) => {
        const y = top(profile.depth[node]);
        const dimmed = isDimmed(picture, node);
        context.globalAlpha = dimmed ? DIMMED : 1;
        const fill = fillOf(picture, coloring, node);
        context.fillStyle = fill;
        context.fillRect(x, y, width > 2 ? width - 0.8 : width, ROW - 1);
        if (width < TEXT_FROM) return;
        context.globalAlpha = dimmed ? DIMMED_TEXT : 1;
        const [soft, firm] = this.fitNode(picture, node, width - 2 * PADDING);
        const ink = inkOf(coloring, fill, dimmed);
        context.fillStyle = ink.soft;
        if (soft) context.fillText(soft, x + PADDING, y + ROW / 2);
        context.fillStyle = ink.text;
        context.fillText(firm, x + PADDING + ruler.widthOf(soft), y + ROW / 2);
      },
      (depth, x, width) => {
        // What is too small to be seen apart stays visible as one grey piece.
        context.globalAlpha = 1;
        context.fillStyle = coloring.rest;
        context.fillRect(x, top(depth), Math.max(width, 0.6), ROW - 1);
      },
    );
  }

  /**
   * The folded corner of a frame with a note.
   * @param {{x: number, y: number, width: number}} box
   */
  paintPin({ x, y, width }) {
    const { context } = this;
    context.globalAlpha = 1;
    context.fillStyle = this.coloring.text;
    context.beginPath();
    context.moveTo(x + width - PIN, y);
    context.lineTo(x + width, y);
    context.lineTo(x + width, y + PIN);
    context.fill();
  }

  /**
   * What of a frame's name there is room for: its package, and the rest. The package goes first, then the end. A "?" stands
   * before it if something may be wrong.
   * @param {{profile: Profile, look: Look}} picture
   * @param {number} node
   * @param {number} room in pixels
   * @returns {[string, string]}
   */
  fitNode({ profile, look }, node, room) {
    const { ruler } = this;
    if (node === 0) return ["", ruler.fit(look.label, room)];
    const doubt = doubtOf(profile, node) ? "? " : "";
    const name = shownName(profile.nameOf(node));
    const cut = packageLength(name);
    const [prefix, firm] = [doubt + name.slice(0, cut), name.slice(cut)];
    return cut && ruler.widthOf(doubt + name) <= room ? [prefix, ruler.fit(firm, room)] : ["", ruler.fit(doubt + firm, room)];
  }
}

/**
 * Frames that a zoomed one stands on, and those that a search does not mean, step back.
 * @param {{profile: Profile, matches: Matches | null, zoomed: number}} picture
 * @param {number} node
 */
export function isDimmed({ profile, matches, zoomed }, node) {
  return profile.depth[node] < profile.depth[zoomed] || (matches !== null && matches[profile.name[node]] !== 1);
}

/**
 * Text on a frame; a dimmed one is nearly the ground.
 * @param {Coloring} coloring
 * @param {string} fill
 * @param {boolean} dimmed
 */
export function inkOf(coloring, fill, dimmed) {
  return dimmed ? { text: coloring.text, soft: coloring.text } : coloring.inkOn(fill);
}

/**
 * @param {{profile: Profile, matches: Matches | null, look: Look}} picture
 * @param {Coloring} coloring
 * @param {number} node
 */
export function fillOf({ profile, matches, look }, coloring, node) {
  if (node === 0) return coloring.root;
  if (matches?.[profile.name[node]] === 1) return coloring.match;
  return look.tint ? look.tint(node, coloring) : coloring.fill(profile, node);
}
