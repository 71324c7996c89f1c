// @ts-check
/** The search field: what is typed, whether it is a regular expression, and how much matched. */

import { percent } from "../data/format.js";
import { matchNames, measureMatches } from "../data/search.js";
import { part } from "./dom.js";

/** @import { Profile } from "../data/profile.js" */
/** @import { Matches } from "../data/search.js" */
/** @import { State } from "../data/state.js" */

export class SearchBox {
  /**
   * @param {(change: {q?: string, regexp?: boolean}) => void} changed
   * @param {(step: 1 | -1) => void} walk to the next match, or the one before
   */
  constructor(changed, walk) {
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
        walk(event.shiftKey ? -1 : 1);
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
    const asked = `${state.regexp} ${state.q}`;
    let error = "";
    if (state.regexp && state.q && !this.agreed.has(state.q)) {
      error = "regular expression from a link: press Enter to run it";
    } else if (asked !== this.asked) {
      try {
        this.matches = matchNames(profile.names, state.q, state.regexp);
      } catch {
        error = "not a regular expression";
        this.input.classList.add("wrong");
      }
    }
    this.asked = error ? "" : asked;
    if (error) this.matches = null;
    this.result.textContent = error;
    if (!this.matches) return null;
    const { frames, total, inView } = measureMatches(profile, this.matches, view);
    const all = `${percent(total, profile.sum())} matched`;
    const text = view > 0 ? `${all}, ${percent(inView, profile.total[view])} of view` : all;
    this.result.textContent = frames === 0 ? "no match" : text;
    return this.matches;
  }
}
