// @ts-check
/** Colours by kind of frame, for light and dark. A family of frames is a hue; names vary its lightness a little. */

/** @typedef {{label: string, hue: number, saturation: number}} Family */

/** @type {Record<string, Family>} */
export const FAMILIES = {
  jit: { label: "Java, JIT-compiled", hue: 138, saturation: 38 },
  inlined: { label: "Java, inlined", hue: 178, saturation: 36 },
  c1: { label: "Java, C1-compiled", hue: 92, saturation: 38 },
  interpreted: { label: "Java, interpreted", hue: 68, saturation: 42 },
  java: { label: "Java", hue: 138, saturation: 38 },
  cpp: { label: "C++", hue: 44, saturation: 62 },
  native: { label: "Native", hue: 8, saturation: 58 },
  kernel: { label: "Kernel", hue: 26, saturation: 72 },
  thread: { label: "Thread", hue: 220, saturation: 10 },
  unknown: { label: "Unknown", hue: 0, saturation: 0 },
  waker: { label: "Waker", hue: 215, saturation: 45 },
  wait: { label: "Waiting", hue: 262, saturation: 34 },
  rest: { label: "Smaller frames", hue: 0, saturation: 0 },
};

const BY_KIND = ["", "interpreted", "c1", "jit", "inlined", "kernel", "waker"];
const SHADES = 6;
/** What off-CPU profiles show below the thread: what it waits for. */
const WAITS = /^\[(?:lock|park|sleep|network|disk|idle pool thread|wait|other)\]$/;
/** What stands for all that was left out of a pruned profile below one frame. */
const REST = /^\(\d+ smaller frames?\)$/;

/** @typedef {(family: string, name: number) => string} Fill */

/**
 * The family a frame belongs to. Frames without an annotation are told by the shape of their names.
 * @param {number} kind as in FORMAT.md
 * @param {string} name
 * @param {number} depth the root's is 0; the outermost frame may be a group of threads
 */
export function familyOf(kind, name, depth) {
  const family = BY_KIND[kind];
  if (family) return family;
  if (name.startsWith("[") && name.endsWith("]")) return bracketed(name, depth);
  if (REST.test(name)) return "rest";
  if (name.includes("::")) return "cpp";
  return looksJava(name) ? "java" : "native";
}

/**
 * @param {string} name
 * @param {number} depth
 */
function bracketed(name, depth) {
  if (/ tid=\d+\]$/.test(name) || (depth === 1 && !name.startsWith("[unknown"))) return "thread";
  return depth === 2 && WAITS.test(name) ? "wait" : "unknown";
}

/** @param {string} name */
function looksJava(name) {
  return /^(?:[a-z_][\w$]*[./])+[A-Z]\w*|^[A-Z][\w$]*\.[\w$<]/.test(name);
}

/**
 * @param {boolean} dark
 * @returns {{fill: Fill, match: string, root: string, rest: string, text: string, soft: string, edge: string}}
 */
export function makePalette(dark) {
  /** @type {Record<string, string[]>} */
  const shades = {};
  const rest = dark ? "#2a2e34" : "#e4e6e9";
  for (const [key, family] of Object.entries(FAMILIES)) {
    shades[key] = Array.from({ length: SHADES }, (_, i) => shade(family, i, dark));
  }
  return {
    fill: (family, name) => (family === "rest" ? rest : shades[family][(name * 7) % SHADES]),
    match: dark ? "hsl(292 48% 52%)" : "hsl(292 66% 76%)",
    root: dark ? "#2c3138" : "#e6e8eb",
    rest,
    text: dark ? "#f1f3f5" : "#16191d",
    soft: dark ? "rgba(241,243,245,.62)" : "rgba(22,25,29,.58)",
    edge: dark ? "#15181c" : "#ffffff",
  };
}

/**
 * @param {Family} family
 * @param {number} step
 * @param {boolean} dark
 */
function shade(family, step, dark) {
  const lightness = dark ? 30 + step * 1.6 : 82 - step * 2.2;
  const saturation = dark ? family.saturation * 0.78 : family.saturation;
  return `hsl(${family.hue} ${saturation}% ${lightness}%)`;
}
