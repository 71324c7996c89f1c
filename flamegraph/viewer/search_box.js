// @ts-check
/** The search field: what is typed, whether it is a regular expression, and how much matched. */

import { part } from "./dom.js";
import { percent } from "./format.js";
import { compileQuery, findMatches } from "./search.js";

/** @typedef {import("./profile.js").Profile} Profile */
/** @typedef {import("./search.js").Matches} Matches */
/** @typedef {import("./state.js").State} State */

export class SearchBox {
  /** @param {(change: {query?: string, regexp?: boolean}) => void} changed */
  constructor(changed) {
    this.input = part("search", HTMLInputElement);
    this.regexp = part("search-regexp", HTMLButtonElement);
    this.result = part("search-result", HTMLOutputElement);
    this.input.addEventListener("input", () => changed({ query: this.input.value }));
    this.regexp.addEventListener("click", () => {
      changed({ regexp: this.regexp.getAttribute("aria-pressed") !== "true" });
      this.input.focus();
    });
    this.input.addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.input.blur();
    });
  }

  focus() {
    this.input.focus();
    this.input.select();
  }

  /**
   * Shows what is searched and how much of it there is; null when nothing is searched, or it is no regular expression.
   * @param {Profile} profile
   * @param {State} state
   * @returns {Matches | null}
   */
  run(profile, state) {
    if (this.input.value !== state.query) this.input.value = state.query;
    this.regexp.setAttribute("aria-pressed", String(state.regexp));
    this.input.classList.remove("wrong");
    this.result.textContent = "";
    try {
      const test = compileQuery(state.query, state.regexp);
      if (!test) return null;
      const matches = findMatches(profile, test, state.zoom);
      this.result.textContent = matchedText(profile, matches, state.zoom);
      return matches;
    } catch {
      this.input.classList.add("wrong");
      this.result.textContent = "not a regular expression";
      return null;
    }
  }
}

/**
 * @param {Profile} profile
 * @param {Matches} matches
 * @param {number} zoom
 */
function matchedText(profile, matches, zoom) {
  if (matches.frames === 0) return "no match";
  const all = `${percent(matches.total, profile.sum())} matched`;
  return zoom > 0 ? `${all}, ${percent(matches.inView, profile.total[0][zoom])} of view` : all;
}
