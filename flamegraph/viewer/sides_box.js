// @ts-check
/** What is compared with what, in shares or in amounts. */

import { Combobox } from "./combobox.js";
import { make } from "./dom.js";
import { likelyPair, othersOf } from "./others.js";

/** @typedef {import("./context.js").Context} Context */
/** @typedef {import("./scopes.js").Scope} Scope */
/** @typedef {import("./state.js").State} State */
/** @typedef {import("./others.js").Pair} Pair */

export class SidesBox {
  /** @param {Context} context */
  constructor(context) {
    this.context = context;
    this.element = make("div", "controls");
    this.first = make("b");
    this.swap = make("button", "", "Swap");
    this.swap.id = "compare-swap";
    this.shares = this.measure("Shares", "Each as a share of its own whole", true);
    this.amounts = this.measure("Amounts", "How much each has in all", false);
    const choice = make("div");
    choice.id = "compare-with";
    const measures = make("div", "switch");
    measures.id = "compare-measure";
    measures.setAttribute("role", "group");
    measures.setAttribute("aria-label", "What is compared");
    measures.append(this.shares, this.amounts);
    this.element.append(this.first, make("span", "soft", "compared with"), choice, this.swap, measures);
    const options = () => othersOf(context, this.pair()?.one ?? context.scope);
    this.box = new Combobox(choice, "Compared with", options, (id) => this.go(this.pair()?.one, id));
    this.swap.addEventListener("click", () => {
      const pair = this.pair();
      this.go(pair?.another, pair?.one.key ?? "");
    });
  }

  /**
   * @param {string} label
   * @param {string} title
   * @param {boolean} normalize
   */
  measure(label, title, normalize) {
    const button = make("button", "", label);
    button.title = title;
    button.addEventListener("click", () => this.context.set({ normalize }));
    return button;
  }

  /** @returns {Pair | null} null where there is nothing to compare with */
  pair() {
    const { scope, scopes, state, event, thread } = this.context;
    const asked = state.with ? scopes.parse(state.with) : null;
    const fits = asked && asked.key !== scope.key && scopes.has(asked, event, thread);
    return fits ? { one: scope, another: asked } : likelyPair(this.context);
  }

  /**
   * @param {Scope | undefined} one
   * @param {string} another
   */
  go(one, another) {
    if (one) this.context.go({ scope: this.context.addressOf(one.key), with: another });
  }

  /**
   * @param {Pair} pair
   * @param {State} state
   */
  show({ one, another }, state) {
    this.first.replaceChildren(make("bdi", "", one.label));
    this.box.show(another.key, another.label);
    this.shares.setAttribute("aria-pressed", String(state.normalize));
    this.amounts.setAttribute("aria-pressed", String(!state.normalize));
  }
}
