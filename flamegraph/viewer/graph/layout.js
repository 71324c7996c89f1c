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
  const { end, depth, count } = profile;
  const total = profile.total[0];
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
    const left = (beginAt(level, total[node]) - view.from) * scale;
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
 * Where the next frame of a depth begins, which takes that much room; its children begin there too.
 * @param {number} level depth
 * @param {number} total
 */
function beginAt(level, total) {
  if (level + 1 >= edges.length) {
    const wider = new Float64Array(edges.length * 2);
    wider.set(edges);
    edges = wider;
  }
  const begin = edges[level];
  edges[level] = begin + total;
  edges[level + 1] = begin;
  return begin;
}

/**
 * The depth of the deepest frame one can see.
 * @param {Profile} profile
 * @param {number} root the node that fills the width
 * @param {number} width in pixels
 */
export function deepest(profile, root, width) {
  const { depth, end } = profile;
  const total = profile.total[0];
  const least = (NARROW * total[root]) / Math.max(width, 1);
  let deep = depth[root];
  let node = root + 1;
  while (node < end[root]) {
    if (total[node] < least || total[node] === 0) {
      node = end[node];
      continue;
    }
    if (depth[node] > deep) deep = depth[node];
    node++;
  }
  return deep;
}

/**
 * The node at a depth over a position, or -1.
 * @param {Profile} profile
 * @param {number} position in units of the value
 * @param {number} level depth
 */
export function nodeAt(profile, position, level) {
  const { end, depth } = profile;
  const total = profile.total[0];
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

const FONT_FAMILY = 'ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif';
export const FONT = `12px ${FONT_FAMILY}`;
const PLAIN = 128;
const LONGEST_MEASURED = 500;
const MOST_KEPT = 50_000;
const CUT = "…";

export class Ruler {
  /** @param {CanvasRenderingContext2D} context */
  constructor(context) {
    this.context = context;
    /** Of each plain letter; NaN until it was asked for. */
    this.letters = new Float64Array(PLAIN).fill(NaN);
    /** Of texts with other letters, which may join. @type {Map<string, number>} */
    this.texts = new Map();
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
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at);
      if (code >= PLAIN) return this.asked(text);
      width += this.letterOf(code);
    }
    return width;
  }

  /**
   * As much of a text as there is room for; "" where that would be next to nothing.
   * @param {string} text
   * @param {number} room in pixels
   */
  fit(text, room) {
    if (this.widthOf(text) <= room) return text;
    const least = this.lettersIn(text, room - this.asked(CUT));
    return least < 2 ? "" : `${text.slice(0, least)}${CUT}`;
  }

  /**
   * How many of its letters fit into the room.
   * @param {string} text
   * @param {number} room
   */
  lettersIn(text, room) {
    let width = 0;
    let at = 0;
    for (; at < text.length && width <= room; at++) {
      const code = text.charCodeAt(at);
      width += code < PLAIN ? this.letterOf(code) : this.asked(text.slice(at, at + 1));
    }
    return width <= room ? at : at - 1;
  }

  /** @param {number} code of a plain letter */
  letterOf(code) {
    if (Number.isNaN(this.letters[code])) this.letters[code] = this.measured(String.fromCharCode(code));
    return this.letters[code];
  }

  /** @param {string} text */
  asked(text) {
    let width = this.texts.get(text);
    if (width === undefined) {
      if (this.texts.size > MOST_KEPT) this.texts.clear();
      this.texts.set(text, (width = this.measured(text)));
    }
    return width;
  }

  /** @param {string} text */
  measured(text) {
    this.prepare();
    return this.context.measureText(text).width;
  }
}
