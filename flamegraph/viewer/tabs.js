// @ts-check
/** The row of views: one tab is chosen, its panel shown; arrows walk along the row. */

import { part } from "./dom.js";

/** @typedef {import("./state.js").ViewName} ViewName */

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
