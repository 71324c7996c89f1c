// @ts-check
/** The lists of a comparison: changes by method, and paths that only one side has. */

import { filled, linkButton, make } from "../controls/dom.js";
import { hasNoTotal } from "../data/callers.js";
import { grouped, shortName } from "../data/format.js";
import { nameElement } from "../graph/frame_details.js";
import { rowCell, rowName } from "./methods_view.js";
import { noTotal, SortedTable } from "./table.js";

/** @import { Context } from "../controls/context.js" */
/** @import { Change, UniquePaths } from "../data/comparison.js" */
/** @import { Which } from "../data/noise.js" */
/** @import { State } from "../data/state.js" */
/** @import { Difference } from "../graph/difference.js" */
/** @typedef {import("./table.js").TableColumn<Change>} ChangeColumn */

export class ChangesTable {
  /** @param {Context} context */
  constructor(context) {
    this.context = context;
    /** @type {SortedTable<Change>} */
    this.table = new SortedTable("changes", "Changes by method", (change) => context.set(change));
    this.note = make("p", "soft noise-note");
    this.element = filled("section", "changes", make("h2", "", "Changes by method"), this.note, this.table.element);
    /** @type {Difference | null} */
    this.difference = null;
    /** @type {Change[]} */
    this.changes = [];
    /** Shown instead of an unknown noise. */
    this.unknown = "…";
    /** Of this difference with its noise; made when first shown. @type {ChangeColumn[] | null} */
    this.columns = null;
  }

  /**
   * @param {Difference | null} difference
   * @param {Change[]} changes
   */
  show(difference, changes) {
    this.difference = difference;
    this.changes = changes;
    this.unknown = "…";
    this.note.textContent = "";
    this.columns = null;
  }

  /**
   * Noise was estimated, or cannot be.
   * @param {string} note
   */
  judge(note) {
    this.unknown = "?";
    this.note.textContent = note;
    this.columns = null;
  }

  /** @param {State} state */
  update(state) {
    const { difference, changes, context: { matches } } = this;
    if (!difference) return;
    const listed = matches ? changes.filter((change) => matches[change.name]) : changes;
    this.columns ??= this.makeColumns(difference);
    this.table.show(this.columns, listed, state.sort, state.rows);
  }

  /**
   * @param {Difference} difference
   * @returns {ChangeColumn[]}
   */
  makeColumns(difference) {
    const { names } = difference.sides.here;
    const { event } = difference.sides.here;
    const unknown = (/** @type {Change} */ one) => one.does === 0 && hasNoTotal(event, names[one.name]);
    const known = (/** @type {Change} */ one, /** @type {number} */ value) => (unknown(one) ? -1 : value);
    /** @type {(one: Change, cells: () => HTMLElement[]) => HTMLElement[]} */
    const ifKnown = (one, cells) => (unknown(one) ? [noTotal()] : cells());
    const largest = this.changes.reduce((most, one) => Math.max(most, known(one, Math.abs(one.change))), 0) || 1;
    const noiseOf = (/** @type {Which} */ which, /** @type {Change} */ one) => difference.noise?.of(which, one.row) ?? null;
    const bound = (/** @type {number | null} */ size) => (size === null ? this.unknown : `±${difference.size(size)}`);
    const changeText = (/** @type {number} */ change, /** @type {number | null} */ noise) =>
      make("span", noise !== null && Math.abs(change) <= noise ? "soft" : "", difference.change(change));
    return [
      {
        key: "change", label: "Change", title: "Sort by the change of the method's total", className: "change",
        value: (one) => known(one, Math.abs(one.change)),
        cell: (one) => ifKnown(one, () => {
          const bar = make("span", one.change > 0 ? "delta more" : "delta less");
          bar.style.setProperty("--share", String(Math.abs(one.change) / largest));
          return [changeText(one.change, noiseOf("all", one)), bar];
        }),
      },
      {
        key: "noise", label: "Noise", title: "Sort by the noise of the change", className: "number own",
        value: (one) => known(one, noiseOf("all", one) ?? -1),
        cell: (one) => ifKnown(one, () => [make("span", "soft", bound(noiseOf("all", one)))]),
      },
      {
        key: "own", label: "Self", title: "Sort by the change of the method's self cost", className: "number own",
        value: (one) => Math.abs(one.selfChange),
        cell: (one) => {
          const noise = noiseOf("own", one);
          const text = changeText(one.selfChange, noise);
          if (noise !== null) text.title = `Noise ${bound(noise)}`;
          return [text];
        },
      },
      {
        key: "there", label: difference.thereName, className: "number side",
        title: `Sort by the total in ${difference.thereName}`,
        value: (one) => known(one, one.there), cell: (one) => ifKnown(one, () => [make("span", "", difference.part(one.there))]),
      },
      {
        key: "here", label: difference.hereName, className: "number side",
        title: `Sort by the total in ${difference.hereName}`,
        value: (one) => known(one, one.here), cell: (one) => ifKnown(one, () => [make("span", "", difference.part(one.here))]),
      },
      {
        key: "name", label: "Method", title: "Sort by name", className: "name",
        value: (one) => rowName(names, one), cell: (one) => rowCell(this.context, names, one),
      },
    ];
  }
}

/** Paths that are listed for each side. */
export const LISTED = 12;
/** Callers that are named. */
const CALLERS_NAMED = 2;
const LONGEST_CALLER = 120;

export class UniqueLists {
  /** @param {(node: number) => void} zoom to one in the graph */
  constructor(zoom) {
    this.zoom = zoom;
    this.element = make("div", "unique");
  }

  /**
   * @param {Difference} difference
   * @param {UniquePaths} appeared
   * @param {UniquePaths} vanished
   * @param {boolean} later whether the first side is the later run
   */
  show(difference, appeared, vanished, later) {
    const found = [appeared, vanished].some(({ count, chance, unsure }) => count + chance + unsure > 0);
    if (!found) {
      this.element.replaceChildren(make("p", "soft", "Both sides have the same paths."));
      return;
    }
    const [first, second] = later ? ["Appeared: only in", "Vanished: only in"] : ["Only in", "Only in"];
    const here = filled("section", "", ...this.list(`${first} ${difference.hereName}`, appeared, difference));
    const there = filled("section", "", ...this.list(`${second} ${difference.thereName}`, vanished, difference));
    here.id = "only-here";
    there.id = "only-there";
    this.element.replaceChildren(here, there);
  }

  /**
   * @param {string} title
   * @param {UniquePaths} found
   * @param {Difference} difference
   */
  list(title, { paths, count, chance, unsure }, difference) {
    const { here } = difference.sides;
    const items = paths.map(({ node, part }) => {
      const button = linkButton("Zoom to this path", () => this.zoom(node), nameElement(here.nameOf(node)));
      const item = filled("li", "", make("b", "", difference.part(part)), " ", button);
      const callers = here.pathOf(node).slice(0, -1);
      if (callers.length === 0) return item;
      const named = callers.slice(-CALLERS_NAMED).reverse().map((at) => shortName(here.nameOf(at)).slice(0, LONGEST_CALLER));
      if (callers.length > CALLERS_NAMED) named.push("…");
      item.append(make("span", "soft path", ` called by ${named.join(" ← ")}`));
      return item;
    });
    if (count > paths.length) items.push(make("li", "soft", `and ${grouped(count - paths.length)} smaller ones`));
    if (chance) items.push(make("li", "soft", `${count ? "and " : ""}${grouped(chance)} within noise`));
    if (unsure) items.push(make("li", "soft", `${grouped(unsure)} left out: their callers may be wrong`));
    const counted = make("span", "soft", ` ${grouped(count)} ${count === 1 ? "path" : "paths"}`);
    const heading = filled("h2", "", make("bdi", "", title), counted);
    return [heading, items.length ? filled("ul", "", ...items) : make("p", "soft", "None.")];
  }
}
