// @ts-check
/** Where frames lie, and how wide texts are on the canvas. */

/** @import { Profile } from "../data/profile.js" */

/** Too narrow to be seen apart, in pixels: drawn together as one grey remainder. */
const NARROW = 0.6;

/**
 * @typedef {object} View
 * @property {number} from left edge, in units of the value
 * @property {number} to right edge
 * @property {number} width in pixels
 * @property {number} first depth to draw
 * @property {number} last depth to draw
 */

/** Where the next frame of each depth begins, in units of the value: no picture needs that of every node. */
let edges = new Float64Array(256);

/**
 * Calls `frame` for each frame wide enough to see and `rest` for each run of frames that are not.
 * @param {Profile} profile
 * @param {View} view
 * @param {(node: number, x: number, width: number) => void} frame
 * @param {(depth: number, x: number, width: number) => void} rest
 */
export function layOut(profile, view, frame, rest) {
  const { end, depth, count, total } = profile;
  const scale = view.width / (view.to - view.from);
  let node = 0;
  let restDepth = -1;
  let restX = 0;
  let restEnd = 0;
  edges[0] = 0;
  while (node < count) {
    if (total[node] === 0) {
      node = end[node];
      continue;
    }
    const level = depth[node];
    if (level + 1 >= edges.length) {
      const wider = new Float64Array(edges.length * 2);
      wider.set(edges);
      edges = wider;
    }
    const begin = edges[level];
    edges[level] = begin + total[node];
    edges[level + 1] = begin; // its children begin there, too
    const left = (begin - view.from) * scale;
    const width = total[node] * scale;
    const outside = left + width <= 0 || left >= view.width || level > view.last;
    if (!outside && width < NARROW) {
      if (restDepth !== level || left > restEnd + 0.5) {
        if (restDepth >= 0) rest(restDepth, restX, restEnd - restX);
        restDepth = level;
        restX = left;
      }
      restEnd = left + width;
    } else if (!outside && level >= view.first) {
      const x = Math.max(left, 0);
      frame(node, x, Math.min(left + width, view.width) - x);
    }
    node = outside || width < NARROW ? end[node] : node + 1;
  }
  if (restDepth >= 0) rest(restDepth, restX, restEnd - restX);
}

/**
 * The depth of the deepest frame one can see.
 * @param {Profile} profile
 * @param {number} root the node that fills the width
 * @param {number} width in pixels
 */
export function deepest({ depth, end, total }, root, width) {
  const least = (NARROW * total[root]) / Math.max(width, 1);
  let deep = depth[root];
  for (let node = root + 1; node < end[root]; ) {
    const seen = total[node] >= least && total[node] > 0;
    if (seen) deep = Math.max(deep, depth[node]);
    node = seen ? node + 1 : end[node];
  }
  return deep;
}

/**
 * The node at a depth over a position, or -1.
 * @param {Profile} profile
 * @param {number} position in units of the value
 * @param {number} level depth
 */
export function nodeAt({ end, depth, total }, position, level) {
  let node = 0;
  let start = 0;
  if (position < 0 || position >= total[0]) return -1;
  while (depth[node] < level) {
    let child = node + 1;
    for (; child < end[node] && position >= start + total[child]; child = end[child]) start += total[child];
    if (child >= end[node]) return -1;
    node = child;
  }
  return node;
}

/**
 * Whether a frame stands on the one that fills the width: only such a frame is a part of what is in view.
 * @param {Profile} profile
 * @param {number} zoomed 0 where everything is in view
 * @param {number} node
 */
export function isInside({ end }, zoomed, node) {
  return zoomed > 0 && node > zoomed && node < end[zoomed];
}

/**
 * The frame next to a node, as the eye sees them; the node itself where there is none.
 * @param {Profile} profile
 * @param {number} node
 * @param {"in" | "out" | "left" | "right"} way in is the widest child
 */
export function neighbour({ parent, end, total }, node, way) {
  const above = parent[node];
  let found = node;
  if (way === "in") {
    for (let child = node + 1; child < end[node]; child = end[child]) {
      if (total[child] > 0 && (found === node || total[child] > total[found])) found = child;
    }
  } else if (node === 0 || way === "out") {
    return Math.max(0, above);
  } else if (way === "left") {
    for (let at = above + 1; at < node; at = end[at]) if (total[at] > 0) found = at;
  } else {
    for (let next = end[node]; next < end[above]; next = end[next]) if (total[next] > 0) return next;
  }
  return found;
}

const FONT_FAMILY = 'ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif';
export const FONT = `12px ${FONT_FAMILY}`;
const LONGEST_MEASURED = 500;
const CUT = "…";

/** The width of a text is the sum of its letters' widths. */
export class Ruler {
  /** @param {CanvasRenderingContext2D} context */
  constructor(context) {
    this.context = context;
    /** @type {Map<string, number>} */
    this.letters = new Map();
  }

  /** A canvas forgets it with each new size. */
  prepare() {
    this.context.font = FONT;
    this.context.fontKerning = "none";
  }

  /** @param {string} text */
  widthOf(text) {
    if (text.length > LONGEST_MEASURED) return Infinity;
    let width = 0;
    for (const letter of text) width += this.letterOf(letter);
    return width;
  }

  /**
   * As much of a text as there is room for; "" where that would be next to nothing.
   * @param {string} text
   * @param {number} room in pixels
   */
  fit(text, room) {
    if (this.widthOf(text) <= room) return text;
    let width = this.letterOf(CUT);
    let fitting = "";
    for (const letter of text) {
      width += this.letterOf(letter);
      if (width > room) break;
      fitting += letter;
    }
    return fitting.length < 2 ? "" : `${fitting}${CUT}`;
  }

  /** @param {string} letter */
  letterOf(letter) {
    let width = this.letters.get(letter);
    if (width === undefined) {
      this.prepare();
      this.letters.set(letter, (width = this.context.measureText(letter).width));
    }
    return width;
  }
}
