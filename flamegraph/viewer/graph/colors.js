// @ts-check
/** Colours of frames by kind, by package, by category of work or by instructions per cycle, text on them, the legend. */

import { filled, linkButton, make, part } from "../controls/dom.js";
import { percent } from "../data/format.js";
import { FAMILIES, FAMILY_KEYS, familyNumber, packageNumber, packagesOf } from "../data/frame_kinds.js";
import { waitKindLabel, waitKinds } from "../data/waits.js";
import { categoryCode, categoryLabel } from "../data/work.js";
import { waitShades } from "./wait_colors.js";

/** @import { Profile } from "../data/profile.js" */

/** Colours of text on a frame: of the name, and of the package before it. @typedef {{text: string, soft: string}} Ink */
/** `part` is its number; `total` is of all stacks that have any of it, -1 if unknown. @typedef {{part: number, label: string, color: string, self: number, total: number}} Part */

const SHADES = 6;
/** A hue for any package: far enough apart to be distinct, and none is the colour of a match. */
const HUES = [8, 28, 44, 68, 92, 116, 138, 160, 178, 198, 215, 236, 262];
const GREY = { saturation: 0, hue: 0 };

export class Coloring {
  /**
   * @param {boolean} dark
   * @param {"kind" | "package" | "category" | "ipc" | "wait"} by
   * @param {Map<number, number>} [ipc] instructions per cycle, by name
   * @param {Map<number, number>} [hues] of `assignHues`, by category
   */
  constructor(dark, by, ipc = new Map(), hues = new Map()) {
    this.dark = dark;
    this.by = by;
    this.ipc = ipc;
    this.hues = hues;
    this.match = dark ? "hsl(292 48% 52%)" : "hsl(292 66% 76%)";
    this.root = dark ? "#2c3138" : "#e6e8eb";
    this.rest = dark ? "#2a2e34" : "#e4e6e9";
    this.text = dark ? LIGHT_TEXT : DARK_TEXT;
    this.edge = dark ? "#15181c" : "#ffffff";
    /** By fill. @type {Map<string, Ink>} */
    this.inks = new Map();
    this.families = FAMILY_KEYS.map((key) => this.shades(FAMILIES[key]));
    this.families[FAMILY_KEYS.indexOf("rest")].fill(this.rest);
    /** @type {string[][]} */
    this.packages = [];
    /** By number of the category. @type {string[][]} */
    this.categories = [];
    this.waits = by === "wait" ? waitKinds().map((kind) => waitShades(kind, dark, SHADES)) : [];
    this.ratios = RATIOS.map(({ color }) => this.shades(color));
  }

  /** @param {Coloring} other */
  isLike(other) {
    return this.dark === other.dark && this.by === other.by && (this.by !== "ipc" || this.ipc === other.ipc) && this.hues === other.hues;
  }

  /**
   * @param {Profile} profile
   * @param {number} node not the root
   */
  fill(profile, node) {
    const name = profile.name[node];
    if (name < 0) return this.rest;
    return this.shadesOf(this.partOf(profile, node), profile.names)[(name * 7) % SHADES];
  }

  /**
   * The number of the family, the package, the category or the range of instructions per cycle.
   * @param {Profile} profile
   * @param {number} node
   */
  partOf(profile, node) {
    const { names, name, kind, kindDepth, event } = profile;
    if (this.by === "wait") return name[node] < 0 ? -1 : profile.waitKindOf(node);
    if (this.by === "category") return name[node] < 0 ? -1 : profile.categories[node];
    if (this.by === "kind") return familyNumber(names, name[node], kind[node], kindDepth[node], event.type);
    if (this.by === "ipc") return name[node] < 0 ? -1 : ratioNumber(this.ipc.get(name[node]));
    return name[node] < 0 ? -1 : packageNumber(names, name[node], kind[node]);
  }

  /**
   * @param {number} part
   * @param {string[]} names
   */
  shadesOf(part, names) {
    if (this.by === "kind") return this.families[part];
    if (this.by === "category") return (this.categories[part] ??= Array(SHADES).fill(this.categoryColor(part)));
    if (this.by === "ipc") return this.ratios[part];
    if (this.by === "wait") return this.waits[part];
    if (this.packages[part]) return this.packages[part];
    const label = packagesOf(names).labels[part] ?? "";
    let hash = 7;
    for (let i = 0; i < label.length; i++) hash = (hash * 31 + label.charCodeAt(i)) >>> 0;
    const color = label ? { hue: HUES[hash % HUES.length], saturation: 30 + (hash >>> 8) % 3 * 14 } : GREY;
    return (this.packages[part] = this.shades(color));
  }

  /**
   * One of ten colours, or a neutral one: of the kernel, of garbage collection, of what is in no category, and of
   * categories beyond ten.
   * @param {number} category
   */
  categoryColor(category) {
    const [code, theme] = [categoryCode(category) ?? "", this.dark ? 1 : 0];
    if (code === "gc") return NEUTRALS[2][theme];
    if (code.startsWith("kernel-")) return NEUTRALS[1][theme];
    const hue = this.hues.get(category);
    return hue === undefined ? NEUTRALS[0][theme] : CATEGORY_COLORS[hue][theme];
  }

  /**
   * Text on a frame, dark or light, whichever can be read there.
   * @param {string} fill
   * @returns {Ink}
   */
  inkOn(fill) {
    const known = this.inks.get(fill);
    if (known) return known;
    const ground = rgbOf(fill);
    const usual = rgbOf(this.text);
    const other = rgbOf(this.dark ? DARK_TEXT : LIGHT_TEXT);
    const ink = contrast(usual, ground) >= Math.min(READABLE, contrast(other, ground)) ? usual : other;
    const mix = (/** @type {number} */ part) => /** @type {Rgb} */ (ink.map((one, at) => Math.round(one * part + ground[at] * (1 - part))));
    const part = [0.6, 0.7, 0.8, 0.9].find((one) => contrast(mix(one), ground) >= READABLE) ?? 1;
    const made = { text: hexOf(ink), soft: hexOf(mix(part)) };
    this.inks.set(fill, made);
    return made;
  }

  /** @param {{hue: number, saturation: number}} family */
  shades({ hue, saturation }) {
    return Array.from({ length: SHADES }, (_, step) => {
      const lightness = this.dark ? 30 + step * 1.6 : 82 - step * 2.2;
      return `hsl(${hue} ${this.dark ? saturation * 0.78 : saturation}% ${lightness}%)`;
    });
  }

  /**
   * What the colours of the profile stand for; the highest self cost first.
   * @param {Profile} profile
   * @returns {Part[]}
   */
  parts(profile) {
    const { names } = profile;
    const labelOf = (/** @type {number} */ part) =>
      this.by === "kind" ? FAMILIES[FAMILY_KEYS[part]].label
        : this.by === "category" ? categoryLabel(part)
          : this.by === "wait" ? waitKindLabel(part) : this.by === "ipc" ? RATIOS[part].label : packagesOf(names).labels[part] || "Other";
    return this.sumsOf(profile)
      .flatMap((sum) => [{ ...sum, label: labelOf(sum.part), color: this.shadesOf(sum.part, names)[2] }])
      .sort((a, b) => b.self - a.self || b.total - a.total || (a.label < b.label ? -1 : 1));
  }

  /**
   * @param {Profile} profile
   * @returns {{part: number, self: number, total: number}[]}
   */
  sumsOf(profile) {
    const work = this.by === "category" ? profile.work : this.by === "wait" ? profile.waitSums : null;
    if (work) return [...work].map((self, part) => ({ part, self, total: -1 })).filter(({ self }) => self > 0);
    const { self, total, end, count } = profile;
    /** @type {{part: number, self: number, total: number, covered: number}[]} */
    const sums = [];
    for (let node = 1; node < count; node = total[node] > 0 ? node + 1 : end[node]) {
      if (total[node] === 0) continue;
      const part = this.partOf(profile, node);
      if (part < 0) continue;
      const sum = (sums[part] ??= { part, self: 0, total: 0, covered: 0 });
      sum.self += self[node];
      if (node < sum.covered) continue;
      sum.covered = end[node];
      sum.total += total[node];
    }
    return sums;
  }
}

/** Ranges of instructions per cycle, each up to `below`: what waits for memory is red. */
const RATIOS = [
  { below: 0.5, label: "IPC below 0.5", color: { hue: 2, saturation: 68 } },
  { below: 1, label: "0.5 to 1", color: { hue: 28, saturation: 68 } },
  { below: 1.5, label: "1 to 1.5", color: { hue: 52, saturation: 60 } },
  { below: 2, label: "1.5 to 2", color: { hue: 190, saturation: 48 } },
  { below: Infinity, label: "2 and more", color: { hue: 232, saturation: 62 } },
  { below: NaN, label: "not both counted", color: GREY },
];

/** @param {number | undefined} ipc */
function ratioNumber(ipc) {
  return ipc === undefined ? RATIOS.length - 1 : RATIOS.findIndex(({ below }) => ipc < below);
}

const [DARK_TEXT, LIGHT_TEXT] = ["#16191d", "#f1f3f5"];
/** The least contrast of text. */
const READABLE = 4.5;

/**
 * Ten colours of categories, on light and dark ground: far apart in hue and lightness, so that also those who see no red
 * or no green tell them apart (tests/viewer/test_colors.py). Each names the categories that get it if it is free.
 * @type {[light: string, dark: string, codes: string[]][]}
 */
export const CATEGORY_COLORS = [
  ["#e4796e", "#90444a", ["regex-compile", "stack-traces", "shuffle"]],
  ["#fec983", "#c4866d", ["strings", "python-work", "logging"]],
  ["#a08409", "#513719", ["jit", "dates", "write"]],
  ["#a7cb57", "#6d6c3c", ["application"]],
  ["#3d9c5f", "#accfb1", ["compression", "sort", "xml"]],
  ["#21b6bd", "#457577", ["copies", "scan", "crypto"]],
  ["#2192df", "#236f93", ["regex-match", "network", "codegen"]],
  ["#9ab1fa", "#b1c1ef", ["hashes", "records", "formatting"]],
  ["#ac6dbf", "#573879", ["serialization", "join", "big-numbers"]],
  ["#feb7e2", "#ebb0ce", ["json", "aggregate", "class-loading"]],
];
/** Of what is in no category, of the kernel, of garbage collection. @type {[light: string, dark: string][]} */
export const NEUTRALS = [["#e6eaef", "#35383c"], ["#babec3", "#55585c"], ["#95999d", "#9b9fa3"]];

/**
 * Which of the ten colours a category has on a page: the ten largest have one each.
 * @param {Float64Array} costs by category
 * @returns {Map<number, number>}
 */
export function assignHues(costs) {
  /** @type {Map<number, number>} */
  const hues = new Map();
  const free = new Set(CATEGORY_COLORS.keys());
  const coloured = [...costs.keys()].filter((one) => costs[one] > 0 && one > 0 && !/^(gc$|kernel-)/.test(categoryCode(one)));
  for (const category of coloured.sort((a, b) => costs[b] - costs[a] || a - b).slice(0, CATEGORY_COLORS.length)) {
    const wanted = CATEGORY_COLORS.findIndex(([, , codes]) => codes.includes(categoryCode(category)));
    const hue = free.has(wanted) ? wanted : [...free][0];
    free.delete(hue);
    hues.set(category, hue);
  }
  return hues;
}

/** @typedef {[red: number, green: number, blue: number]} Rgb */

/**
 * A colour as we write them: "#a7cb57" or "hsl(8 58% 75%)".
 * @param {string} color
 * @returns {Rgb}
 */
function rgbOf(color) {
  if (color.startsWith("#")) return /** @type {Rgb} */ ([1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16)));
  const [hue, saturation, lightness] = (color.match(/[\d.]+/g) ?? []).map(Number);
  const [light, strong] = [lightness / 100, (saturation / 100) * Math.min(lightness / 100, 1 - lightness / 100)];
  return /** @type {Rgb} */ ([0, 8, 4].map((shift) => {
    const place = (shift + hue / 30) % 12;
    return Math.round(255 * (light - strong * Math.max(-1, Math.min(place - 3, 9 - place, 1))));
  }));
}

/** @param {Rgb} color */
function hexOf(color) {
  return `#${color.map((one) => one.toString(16).padStart(2, "0")).join("")}`;
}

/**
 * The ratio of WCAG.
 * @param {Rgb} one
 * @param {Rgb} other
 */
function contrast(one, other) {
  const [first, second] = [luminance(one), luminance(other)];
  return (Math.max(first, second) + 0.05) / (Math.min(first, second) + 0.05);
}

/** @param {Rgb} color */
function luminance(color) {
  const [red, green, blue] = color.map((one) => (one <= 10 ? one / 3294.6 : ((one / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

const MOST = 14;

/**
 * @param {Profile} profile
 * @param {Coloring} coloring
 * @param {(category: number) => void} [choose] what a click on a category does
 */
export function showLegend(profile, coloring, choose) {
  const parts = coloring.parts(profile);
  const whole = profile.sum();
  const others = parts.slice(MOST);
  const rest = { label: `${others.length} others`, color: coloring.rest, self: 0, total: -1, part: -1 };
  for (const { self } of others) rest.self += self;
  const items = [...parts.slice(0, MOST), ...(others.length ? [rest] : [])].map(({ part, color, label, self, total }) => {
    const swatch = make("i");
    swatch.style.background = color;
    const content = [swatch, make("bdi", "", label), " ", make("b", "", percent(self, whole))];
    const chosen = choose && coloring.by === "category" && part >= 0;
    const item = filled("li", "", ...(chosen ? [linkButton("Only this category, in every view", () => choose(part), ...content)] : content));
    if (total >= 0) item.title = `${percent(self, whole)} self; on ${percent(total, whole)} of all stacks`;
    return item;
  });
  const what = coloring.by === "wait" ? "What threads do:" : "Self:";
  part("legend", HTMLUListElement).replaceChildren(make("li", "", what), ...items);
}
