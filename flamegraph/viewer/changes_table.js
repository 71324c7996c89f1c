// @ts-check
/** The methods of a comparison by how much they changed, with all they call. */

import { make } from "./dom.js";
import { SortedTable } from "./table.js";
import { nameElement } from "./tooltip.js";

/** @typedef {import("./compare.js").Change} Change */
/** @typedef {import("./context.js").Context} Context */
/** @typedef {import("./difference.js").Difference} Difference */
/** @typedef {import("./noise.js").Noise} Noise */
/** @typedef {import("./noise.js").Which} Which */
/** @typedef {import("./state.js").State} State */
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
    /** What chance makes of changes; null while nobody knows. @type {Noise | null} */
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
   * Tells what chance makes of changes, or why it cannot be told.
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
        value: (one) => names[one.name], cell: (one) => [this.nameButton(names[one.name])],
      },
    ];
  }

  /** @param {string} name */
  nameButton(name) {
    const button = make("button", "link");
    button.append(nameElement(name));
    button.title = "Callers and callees";
    button.addEventListener("click", () => this.context.openMethod(name));
    return button;
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
