// @ts-check
/** The paths that only one side of a comparison has: what appeared, what vanished. */

import { make } from "./dom.js";
import { grouped, shortName } from "./format.js";
import { nameElement } from "./tooltip.js";

/** @typedef {import("./compare.js").LoneFrames} LoneFrames */
/** @typedef {import("./compare.js").Lone} Lone */
/** @typedef {import("./difference.js").Difference} Difference */

/** How many of each side are listed. */
export const LISTED = 12;
/** Frames of a path that are told besides its own. */
const CALLERS_TOLD = 2;
const LONGEST_CALLER = 120;

export class LonePaths {
  /** @param {(node: number) => void} zoom to one in the graph */
  constructor(zoom) {
    this.zoom = zoom;
    this.element = make("div", "lone");
    this.here = make("section");
    this.here.id = "only-here";
    this.there = make("section");
    this.there.id = "only-there";
  }

  /**
   * @param {Difference} difference
   * @param {LoneFrames} appeared
   * @param {LoneFrames} vanished
   * @param {boolean} later whether the first side is the later run
   */
  show(difference, appeared, vanished, later) {
    if (appeared.count + appeared.chance + vanished.count + vanished.chance === 0) {
      this.element.replaceChildren(make("p", "soft", "Both have the same paths."));
      return;
    }
    const [first, second] = later ? ["Appeared: only in", "Vanished: only in"] : ["Only in", "Only in"];
    this.here.replaceChildren(...this.list(`${first} ${difference.hereName}`, appeared, difference));
    this.there.replaceChildren(...this.list(`${second} ${difference.thereName}`, vanished, difference));
    if (!this.here.isConnected) this.element.replaceChildren(this.here, this.there);
  }

  /**
   * @param {string} title
   * @param {LoneFrames} found
   * @param {Difference} difference
   */
  list(title, { paths, count, chance }, difference) {
    const heading = make("h3");
    const list = make("ul");
    heading.append(make("bdi", "", title), make("span", "soft", ` ${grouped(count)} ${count === 1 ? "path" : "paths"}`));
    list.append(...paths.map((path) => this.path(path, difference)));
    if (count > paths.length) list.append(make("li", "soft", `and ${grouped(count - paths.length)} thinner ones`));
    if (chance) list.append(make("li", "soft", `${count ? "and " : ""}${grouped(chance)} within noise: may be chance`));
    return [heading, count + chance ? list : make("p", "soft", "Nothing.")];
  }

  /**
   * @param {Lone} path
   * @param {Difference} difference
   */
  path({ node, part }, difference) {
    const { here } = difference.sides;
    const callers = here.pathOf(node).slice(0, -1);
    const item = make("li");
    const button = make("button", "link");
    button.append(nameElement(here.nameOf(node)));
    button.title = "Zoom to it in the graph";
    button.addEventListener("click", () => this.zoom(node));
    item.append(make("b", "", difference.part(part)), " ", button);
    if (callers.length === 0) return item;
    const told = callers.slice(-CALLERS_TOLD).reverse().map((at) => shortName(here.nameOf(at)).slice(0, LONGEST_CALLER));
    if (callers.length > CALLERS_TOLD) told.push("…");
    item.append(make("span", "soft path", ` called by ${told.join(" ← ")}`));
    return item;
  }
}
