// @ts-check
/** The search field: what is typed, whether it is a regular expression, and how much matched. */

import { percent } from "../data/format.js";
import { matchNames, measureMatches } from "../data/search.js";
import { part } from "./dom.js";

/** @import { Profile } from "../data/profile.js" */
/** @import { Matches } from "../data/search.js" */
/** @import { State } from "../data/state.js" */

export class SearchBox {
  /** @param {(change: {q?: string, regexp?: boolean}) => void} changed */
  constructor(changed) {
    this.input = part("search", HTMLInputElement);
    this.regexp = part("search-regexp", HTMLButtonElement);
    this.result = part("search-result", HTMLOutputElement);
    /** @type {Matches | null} */
    this.matches = null;
    this.asked = "";
    /** What the reader typed or confirmed: a link may have an expression that takes forever on a long name. */
    this.agreed = new Set();
    const agree = () => this.agreed.add(this.input.value);
    this.input.addEventListener("input", () => {
      agree();
      changed({ q: this.input.value });
    });
    this.regexp.addEventListener("click", () => {
      agree();
      changed({ regexp: this.regexp.getAttribute("aria-pressed") !== "true" });
      this.input.focus();
    });
    this.input.addEventListener("keydown", (event) => {
      if (event.key === "Enter") {
        agree();
        changed({});
        this.input.blur();
      }
      if (event.key === "Escape" && this.input.value) changed({ q: "" });
    });
  }

  focus() {
    this.input.focus();
    this.input.select();
  }

  /**
   * Shows the query and how much matches it; null without a query, and for a wrong regular expression.
   * @param {Profile} profile
   * @param {State} state
   * @param {number} view the node that fills the width
   * @returns {Matches | null} the same as before where the same is asked
   */
  run(profile, state, view) {
    if (this.input.value !== state.q) this.input.value = state.q;
    this.regexp.setAttribute("aria-pressed", String(state.regexp));
    this.input.classList.remove("wrong");
    this.result.textContent = "";
    if (state.regexp && state.q && !this.agreed.has(state.q)) {
      this.asked = "";
      this.matches = null;
      this.result.textContent = "regular expression from a link: press Enter to run it";
      return null;
    }
    try {
      const asked = `${state.regexp} ${state.q}`;
      if (asked !== this.asked) this.matches = matchNames(profile.names, state.q, state.regexp);
      this.asked = asked;
    } catch {
      this.asked = "";
      this.matches = null;
      this.input.classList.add("wrong");
      this.result.textContent = "not a regular expression";
    }
    if (this.matches) this.result.textContent = matchedText(profile, this.matches, view);
    return this.matches;
  }
}

/**
 * @param {Profile} profile
 * @param {Matches} matches
 * @param {number} view the node that fills the width
 */
function matchedText(profile, matches, view) {
  const { frames, total, inView } = measureMatches(profile, matches, view);
  if (frames === 0) return "no match";
  const all = `${percent(total, profile.sum())} matched`;
  return view > 0 ? `${all}, ${percent(inView, profile.total[view])} of view` : all;
}
