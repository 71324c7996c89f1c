// @ts-check
/** What part of the recording is shown, in every view: a switch for idle threads, and a chip for each limit and change, which a click takes away. */

import { percent } from "../data/format.js";
import { bandsText, rangeText } from "../data/range.js";
import { formatTransforms, transformText } from "../data/transforms.js";
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
    const { range, otherRange, bands, category, transforms, source } = this.context;
    /** @type {[text: string, what: string, change: Partial<State>][]} */
    const chips = [];
    if (range) {
      const next = otherRange ? { time: this.context.state.time2, time2: "" } : { time: "" };
      chips.push([rangeText(range), "range", next]);
    }
    if (otherRange) chips.push([`compared with ${rangeText(otherRange)}`, "second range", { time2: "" }]);
    if (bands) chips.push([`${bandsText(bands)} each`, "durations", { band: "" }]);
    if (category >= 0) chips.push([categoryLabel(category), "category", { category: "" }]);
    transforms.forEach((transform, at) => {
      const others = formatTransforms(transforms.filter((_, other) => other !== at));
      chips.push([transformText(transform, source), "change", { changes: others }]);
    });
    const idle = this.idleSwitch();
    const shown = [idle?.textContent, ...chips.map(([text]) => text)].join();
    if (shown === this.shown) return; // the focus stays
    this.shown = shown;
    this.element.hidden = !idle && chips.length === 0;
    this.element.replaceChildren(...(idle ? [idle] : []), ...chips.map(([text, what, change]) => {
      const chip = filled("button", "chip", make("bdi", "", text), make("span", "", "×"));
      chip.title = `Clear the ${what}`;
      chip.setAttribute("aria-label", `Clear the ${what} ${text}`);
      chip.addEventListener("click", () => this.context.go(change));
      return chip;
    }));
  }

  /** Shows idle threads, or hides them; null where there are none. */
  idleSwitch() {
    const { context } = this;
    const { idleShare, state } = context;
    if (idleShare === 0) return null;
    const button = make("button", "", `${percent(idleShare, 1)} is idle: ${state.idle ? "hide" : "show"}`);
    button.id = "idle";
    button.title = "Threads that wait for work (z)";
    button.setAttribute("aria-pressed", String(state.idle));
    button.addEventListener("click", () => context.go({ idle: !context.state.idle }));
    return button;
  }
}
