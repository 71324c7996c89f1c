// @ts-check
/** The row of views: one tab is chosen, its panel shown; arrows walk along the row. Folded pieces of the page. */

import { part } from "./dom.js";

/** @typedef {import("../data/state.js").ViewName} ViewName */

/** @param {(view: ViewName) => void} chosen */
export function startTabs(chosen) {
  const tabs = allTabs();
  for (const tab of tabs) tab.addEventListener("click", () => chosen(viewOf(tab)));
  part("views", HTMLDivElement).addEventListener("keydown", (event) => {
    const visible = tabs.filter((tab) => !tab.hidden);
    const at = visible.indexOf(/** @type {HTMLButtonElement} */ (event.target));
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: visible.length - 1 }[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    const tab = visible[(to + visible.length) % visible.length];
    tab.focus();
    chosen(viewOf(tab));
  });
}

/** @param {(view: ViewName) => boolean} wanted */
export function hideTabs(wanted) {
  for (const tab of allTabs()) tab.hidden = !wanted(viewOf(tab));
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

/**
 * @param {(folds: string) => void} changed
 * @returns {(folds: string) => void} brings the pieces into that state; "" is as they were written
 */
export function followFolds(changed) {
  const pieces = [...document.querySelectorAll("main details")].filter((one) => one instanceof HTMLDetailsElement);
  const written = pieces.map((piece) => piece.open);
  const told = () => pieces.flatMap((piece, at) => (piece.open === written[at] ? [] : [at])).join(".");
  let shown = "";
  for (const piece of pieces) {
    piece.addEventListener("toggle", () => {
      if (told() === shown) return;
      shown = told();
      changed(shown);
    });
  }
  return (folds) => {
    if (folds === shown) return;
    const turned = new Set(folds.split("."));
    pieces.forEach((piece, at) => (piece.open = written[at] !== turned.has(String(at))));
    shown = told();
  };
}

/** @type {Record<string, string>} */
const SECTIONS = { hosts: "#hosts, section.hosts", run: "#run" };

/** Moves the sections into their panels, and the hottest methods below the graph; each stays its event's. */
export function adoptSections() {
  for (const [view, selector] of Object.entries(SECTIONS)) {
    part(`${view}-panel`, HTMLDivElement).append(...ofEvents(selector));
  }
  part("explorer", HTMLElement).after(...ofEvents("section.hottest"));
}

/** @param {string} selector */
function ofEvents(selector) {
  const sections = [...document.querySelectorAll(selector)];
  for (const section of sections) {
    const around = section.parentElement?.closest(".of-event");
    if (section instanceof HTMLElement && around instanceof HTMLElement) {
      section.classList.add("of-event");
      section.dataset.event = around.dataset.event;
    }
  }
  return sections;
}

/** @param {string} view whether it has something to show beside what scripts make */
export function hasSections(view) {
  return !(view in SECTIONS) || part(`${view}-panel`, HTMLDivElement).childElementCount > 0;
}
