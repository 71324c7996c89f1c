// @ts-check
/** The graph from the leaves: what costs by itself stands at the top, and below it who called it. */

import { make } from "./dom.js";
import { quantity } from "./format.js";
import { mergedFromLeaves } from "./merged.js";
import { MergedGraph } from "./merged_graph.js";

/** @typedef {import("./context.js").Context} Context */
/** @typedef {import("./profile.js").Profile} Profile */

export class ReversedView {
  /**
   * @param {Context} context
   * @param {HTMLElement} panel
   */
  constructor(context, panel) {
    const element = make("div");
    element.id = "reversed";
    panel.append(element);
    this.context = context;
    this.graph = new MergedGraph(context, element, "reversed", "Flame graph from the leaves");
    /** @type {Profile | null} */
    this.profile = null;
  }

  update() {
    const { profile, scope } = this.context;
    if (profile === this.profile) return this.graph.update();
    this.profile = profile;
    const total = quantity(profile.sum(), profile.event);
    this.graph.show(mergedFromLeaves(profile), `${scope.label}, from the leaves · ${total}`);
  }
}
