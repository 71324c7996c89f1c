// @ts-check
/** What part of the recording is shown, in every view: a chip for each limit, which a click takes away. */

import { bandsText, rangeText } from "../data/range.js";
import { categoryLabel } from "../data/work.js";
import { filled, make, part } from "./dom.js";

/** @import { State } from "../data/state.js" */
/** @import { Context } from "./context.js" */

export class PartChips {
  /** @param {Context} context */
  constructor(context) {
    this.context = context;
    this.element = part("part", HTMLDivElement);
    this.shown = "";
  }

  update() {
    const { range, otherRange, bands, category } = this.context;
    /** @type {[text: string, what: string, change: Partial<State>][]} */
    const chips = [];
    if (range) {
      const next = otherRange ? { time: this.context.state.time2, time2: "" } : { time: "" };
      chips.push([rangeText(range), "range", next]);
    }
    if (otherRange) chips.push([`compared with ${rangeText(otherRange)}`, "second range", { time2: "" }]);
    if (bands) chips.push([`${bandsText(bands)} each`, "durations", { band: "" }]);
    if (category >= 0) chips.push([categoryLabel(category), "category", { category: "" }]);
    const shown = chips.map(([text]) => text).join();
    if (shown === this.shown) return; // the focus stays
    this.shown = shown;
    this.element.hidden = chips.length === 0;
    this.element.replaceChildren(...chips.map(([text, what, change]) => {
      const chip = filled("button", "chip", text, make("span", "", "×"));
      chip.title = `Clear the ${what}`;
      chip.setAttribute("aria-label", `Clear the ${what} ${text}`);
      chip.addEventListener("click", () => this.context.go(change));
      return chip;
    }));
  }
}
