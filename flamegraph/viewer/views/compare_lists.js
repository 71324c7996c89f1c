// @ts-check
/** The lists of a comparison: changes by method, and the paths that only one side has. */

import { filled, linkButton, make } from "../controls/dom.js";
import { grouped, shortName } from "../data/format.js";
import { methodButton, nameElement } from "../graph/frame_details.js";
import { SortedTable } from "./table.js";

/** @import { Context } from "../controls/context.js" */
/** @import { Change, UniquePath, UniquePaths } from "../data/comparison.js" */
/** @import { Noise, Which } from "../data/noise.js" */
/** @import { State } from "../data/state.js" */
/** @import { Difference } from "../graph/difference.js" */
/** @typedef {import("./table.js").TableColumn<Change>} ChangeColumn */

export class ChangesTable {
  /** @param {Context} context */
  constructor(context) {
    this.context = context;
    /** @type {SortedTable<Change>} */
    this.table = new SortedTable("changes", "Changes by method", (change) => context.set(change));
    this.element = make("section", "changes");
    this.note = make("p", "soft noise-note");
    this.element.append(make("h3", "", "Changes by method"), this.note, this.table.element);
    /** @type {Difference | null} */
    this.difference = null;
    /** @type {Change[]} */
    this.changes = [];
    /** What chance makes of changes; null while unknown. @type {Noise | null} */
    this.noise = null;
    /** What stands where the noise would. */
    this.unknown = "";
    /** What fills a bar. */
    this.largest = 0;
    /** Of this difference, with its noise; none until they are asked for. @type {ChangeColumn[] | null} */
    this.columns = null;
  }

  /**
   * @param {Difference} difference
   * @param {Change[]} changes
   */
  show(difference, changes) {
    this.difference = difference;
    this.changes = changes;
    this.noise = null;
    this.unknown = "…";
    this.note.textContent = "";
    this.columns = null;
    this.largest = changes.reduce((most, { change }) => Math.max(most, Math.abs(change)), 0);
  }

  /**
   * Shows what chance makes of changes, or why that is unknown.
   * @param {Noise | null} noise
   * @param {string} note
   */
  judge(noise, note) {
    this.noise = noise;
    this.unknown = "?";
    this.note.textContent = note;
    this.columns = null;
  }

  /** Lets go of what was compared before, which may be large. */
  forget() {
    this.difference = null;
    this.noise = null;
    this.columns = null;
    this.changes = [];
  }

  /** @param {State} state */
  update(state) {
    const { difference, changes, context } = this;
    if (!difference) return;
    const { matches } = context;
    const listed = matches ? changes.filter((change) => matches.names[change.name]) : changes;
    this.columns ??= this.makeColumns(difference);
    this.table.show(this.columns, listed, state.sort, state.rows);
  }

  /**
   * @param {Difference} difference
   * @returns {ChangeColumn[]}
   */
  makeColumns(difference) {
    const { names } = difference.sides.here;
    const noise = (/** @type {Which} */ which, /** @type {Change} */ one) => this.noise?.of(which, one.name) ?? null;
    const bound = (/** @type {number | null} */ size) => (size === null ? this.unknown : boundText(difference, size));
    /** @type {ChangeColumn} */
    const chance = {
      key: "noise", label: "Noise", title: "Sort by what chance may make of the change", className: "number own",
      value: (one) => noise("all", one) ?? -1, cell: (one) => [make("span", "soft", bound(noise("all", one)))],
    };
    return [
      {
        key: "change", label: "Change", title: "Sort by how much the method changed with all it calls", className: "change",
        value: (one) => Math.abs(one.change), cell: (one) => changeCell(difference, one.change, this.largest, noise("all", one)),
      },
      chance,
      {
        key: "own", label: "Self", title: "Sort by how much the method itself changed", className: "number own",
        value: (one) => Math.abs(one.selfChange), cell: (one) => [ownCell(difference, one.selfChange, noise("own", one))],
      },
      {
        key: "there", label: difference.thereName, className: "number side",
        title: `Sort by the total in ${difference.thereName}`,
        value: (one) => one.there, cell: (one) => [make("span", "", difference.part(one.there))],
      },
      {
        key: "here", label: difference.hereName, className: "number side",
        title: `Sort by the total in ${difference.hereName}`,
        value: (one) => one.here, cell: (one) => [make("span", "", difference.part(one.here))],
      },
      {
        key: "name", label: "Method", title: "Sort by name", className: "name",
        value: (one) => names[one.name], cell: (one) => [methodButton(this.context, names[one.name])],
      },
    ];
  }
}

/**
 * The change in words, and a bar to the right for more, to the left for less.
 * @param {Difference} difference
 * @param {number} change
 * @param {number} largest
 * @param {number | null} noise
 */
function changeCell(difference, change, largest, noise) {
  const bar = make("span", change > 0 ? "delta more" : "delta less");
  bar.style.setProperty("--share", String(largest ? Math.abs(change) / largest : 0));
  return [make("span", isChance(change, noise) ? "soft" : "", difference.change(change)), bar];
}

/**
 * @param {Difference} difference
 * @param {number} change
 * @param {number | null} noise
 */
function ownCell(difference, change, noise) {
  const cell = make("span", isChance(change, noise) ? "soft" : "", difference.change(change));
  if (noise !== null) cell.title = `Chance may make ${boundText(difference, noise)} of it`;
  return cell;
}

/**
 * @param {number} change
 * @param {number | null} noise
 */
function isChance(change, noise) {
  return noise !== null && Math.abs(change) <= noise;
}

/**
 * "±5.9 points".
 * @param {Difference} difference
 * @param {number} noise
 */
function boundText(difference, noise) {
  return `±${difference.size(noise)}`;
}

/** How many of each side are listed. */
export const LISTED = 12;
/** Callers that are named. */
const CALLERS_NAMED = 2;
const LONGEST_CALLER = 120;

export class UniqueLists {
  /** @param {(node: number) => void} zoom to one in the graph */
  constructor(zoom) {
    this.zoom = zoom;
    this.element = make("div", "unique");
    this.here = make("section");
    this.here.id = "only-here";
    this.there = make("section");
    this.there.id = "only-there";
  }

  /**
   * @param {Difference} difference
   * @param {UniquePaths} appeared
   * @param {UniquePaths} vanished
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
   * @param {UniquePaths} found
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
   * @param {UniquePath} path
   * @param {Difference} difference
   */
  path({ node, part }, difference) {
    const { here } = difference.sides;
    const callers = here.pathOf(node).slice(0, -1);
    const button = linkButton("Zoom to it in the graph", () => this.zoom(node), nameElement(here.nameOf(node)));
    const item = filled("li", "", make("b", "", difference.part(part)), " ", button);
    if (callers.length === 0) return item;
    const named = callers.slice(-CALLERS_NAMED).reverse().map((at) => shortName(here.nameOf(at)).slice(0, LONGEST_CALLER));
    if (callers.length > CALLERS_NAMED) named.push("…");
    item.append(make("span", "soft path", ` called by ${named.join(" ← ")}`));
    return item;
  }
}
