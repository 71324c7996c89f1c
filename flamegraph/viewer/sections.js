// @ts-check
/** What the page was written with and readers without scripts have below each other: here it stands in the views. */

import { part } from "./dom.js";

/** @type {Record<string, string>} */
const SECTIONS = { hosts: "#hosts, section.hosts", run: "#run" };

/** Moves the sections into their panels; each stays its event's. */
export function adoptSections() {
  for (const [view, selector] of Object.entries(SECTIONS)) {
    const panel = part(`${view}-panel`, HTMLDivElement);
    for (const section of document.querySelectorAll(selector)) {
      const around = section.parentElement?.closest(".of-event");
      if (section instanceof HTMLElement && around instanceof HTMLElement) {
        section.classList.add("of-event");
        section.dataset.event = around.dataset.event;
      }
      panel.append(section);
    }
  }
}

/** @param {string} view whether it has something to show beside what scripts make */
export function hasSections(view) {
  return !(view in SECTIONS) || part(`${view}-panel`, HTMLDivElement).childElementCount > 0;
}
