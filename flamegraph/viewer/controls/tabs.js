// @ts-check
/** The row of views: one tab is chosen, its panel shown; arrow keys move along the row. Pieces of the page that fold. */

import { part } from "./dom.js";

/** @import { ViewName } from "../data/state.js" */

/**
 * @param {(view: ViewName) => boolean} wanted
 * @param {(view: ViewName) => void} chosen
 */
export function startTabs(wanted, chosen) {
  for (const tab of allTabs()) {
    tab.hidden = !wanted(viewOf(tab));
    tab.addEventListener("click", () => chosen(viewOf(tab)));
  }
  const visible = allTabs().filter((tab) => !tab.hidden);
  part("views", HTMLDivElement).addEventListener("keydown", (event) => {
    const at = visible.findIndex((tab) => tab === event.target);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: visible.length - 1 }[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    const tab = visible[(to + visible.length) % visible.length];
    tab.focus();
    tab.click();
  });
}

/**
 * What a tab is called on this page.
 * @param {ViewName} view
 * @param {string} name
 */
export function nameTab(view, name) {
  const tab = part(`view-${view}`, HTMLButtonElement);
  [tab.textContent, tab.title] = [name, ""];
}

/** @param {ViewName} view */
export function showTab(view) {
  for (const tab of allTabs()) {
    const chosen = viewOf(tab) === view;
    tab.setAttribute("aria-selected", String(chosen));
    tab.tabIndex = chosen ? 0 : -1;
    part(`${viewOf(tab)}-panel`, HTMLDivElement).hidden = !chosen;
  }
}

function allTabs() {
  return [...part("views", HTMLDivElement).children].filter((child) => child instanceof HTMLButtonElement);
}

/** @param {HTMLElement} tab */
function viewOf(tab) {
  return /** @type {ViewName} */ (tab.id.replace("view-", ""));
}

/** Pieces that fold. The state has the names of those that the reader opened or closed. */
export class Folds {
  constructor() {
    /** @type {(folds: string) => void} */
    this.changed = () => {};
    /** Each with whether it was made open. @type {Map<string, {piece: HTMLDetailsElement, open: boolean}>} */
    this.pieces = new Map();
    this.shown = "";
  }

  /**
   * @param {string} name
   * @param {HTMLDetailsElement} piece
   */
  add(name, piece) {
    this.pieces.set(name, { piece, open: piece.open });
    piece.open = piece.open !== this.shown.split(".").includes(name);
    piece.addEventListener("toggle", () => {
      // Names of pieces that are not made yet stay.
      const later = this.shown.split(".").filter((one) => one && !this.pieces.has(one));
      const made = [...this.pieces].flatMap(([one, { piece, open }]) => (piece.open === open ? [] : [one]));
      const now = [...later, ...made].join(".");
      if (now === this.shown) return;
      this.shown = now;
      this.changed(now);
    });
  }

  /** @param {string} folds */
  show(folds) {
    if (folds === this.shown) return;
    this.shown = folds;
    const turned = new Set(folds.split("."));
    for (const [name, { piece, open }] of this.pieces) piece.open = open !== turned.has(name);
  }
}
