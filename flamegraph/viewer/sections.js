// @ts-check
/** What the page was written with and readers without scripts have below each other: here it stands in the views. */

import { part } from "./dom.js";

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
