// @ts-check
/** Colours of frames by kind, by package, by category of work or by instructions per cycle, and the legend. */

import { filled, linkButton, make, part } from "../controls/dom.js";
import { percent } from "../data/format.js";
import { FAMILIES, FAMILY_KEYS, familyNumber, packageNumber, packagesOf } from "../data/frame_kinds.js";
import { categoryCode, categoryLabel } from "../data/work.js";

/** @import { Profile } from "../data/profile.js" */

/** `part` is its number; `total` is of all stacks that have any of it, -1 if unknown. @typedef {{part: number, label: string, color: string, self: number, total: number}} Part */

const SHADES = 6;
/** A hue for any package: far enough apart to be distinct, and none is the colour of a match. */
const HUES = [8, 28, 44, 68, 92, 116, 138, 160, 178, 198, 215, 236, 262];
const GREY = { saturation: 0, hue: 0 };

export class Coloring {
  /**
   * @param {boolean} dark
   * @param {"kind" | "package" | "category" | "ipc"} by
   * @param {Map<number, number>} [ipc] instructions per cycle, by name
   */
  constructor(dark, by, ipc = new Map()) {
    this.dark = dark;
    this.by = by;
    this.ipc = ipc;
    this.match = dark ? "hsl(292 48% 52%)" : "hsl(292 66% 76%)";
    this.root = dark ? "#2c3138" : "#e6e8eb";
    this.rest = dark ? "#2a2e34" : "#e4e6e9";
    this.text = dark ? "#f1f3f5" : "#16191d";
    this.soft = dark ? "rgba(241,243,245,.62)" : "rgba(22,25,29,.58)";
    this.edge = dark ? "#15181c" : "#ffffff";
    this.families = FAMILY_KEYS.map((key) => this.shades(FAMILIES[key]));
    this.families[FAMILY_KEYS.indexOf("rest")].fill(this.rest);
    /** @type {string[][]} */
    this.packages = [];
    /** By number of the category. @type {string[][]} */
    this.categories = [];
    this.ratios = RATIOS.map(({ color }) => this.shades(color));
  }

  /** @param {Coloring} other */
  isLike(other) {
    return this.dark === other.dark && this.by === other.by && (this.by !== "ipc" || this.ipc === other.ipc);
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
    if (this.by === "category") return (this.categories[part] ??= this.shades(categoryColor(part)));
    if (this.by === "ipc") return this.ratios[part];
    if (this.packages[part]) return this.packages[part];
    const label = packagesOf(names).labels[part] ?? "";
    let hash = 7;
    for (let i = 0; i < label.length; i++) hash = (hash * 31 + label.charCodeAt(i)) >>> 0;
    const color = label ? { hue: HUES[hash % HUES.length], saturation: 30 + (hash >>> 8) % 3 * 14 } : GREY;
    return (this.packages[part] = this.shades(color));
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
          : this.by === "ipc" ? RATIOS[part].label : packagesOf(names).labels[part] || "Other";
    return this.sumsOf(profile)
      .flatMap((sum) => [{ ...sum, label: labelOf(sum.part), color: this.shadesOf(sum.part, names)[2] }])
      .sort((a, b) => b.self - a.self || b.total - a.total || (a.label < b.label ? -1 : 1));
  }

  /**
   * @param {Profile} profile
   * @returns {{part: number, self: number, total: number}[]}
   */
  sumsOf(profile) {
    const work = this.by === "category" ? profile.work : null;
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

/** Categories that often stand side by side are far apart; others by the golden angle. "other" is grey. */
const WORK_HUES = new Map(Object.entries({
  application: 152, gc: 2, jit: 24, json: 264, serialization: 232, compression: 196, scan: 46, join: 90, aggregate: 68,
  sort: 112, shuffle: 176, network: 214, "kernel-memory": 36, "kernel-files": 54,
}));
const ANGLE = 137.5;

/** @param {number} category */
function categoryColor(category) {
  const hue = WORK_HUES.get(categoryCode(category)) ?? Math.round(category * ANGLE) % 280;
  return category === 0 ? GREY : { hue, saturation: 58 };
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
  part("legend", HTMLUListElement).replaceChildren(make("li", "", "Self:"), ...items);
}
