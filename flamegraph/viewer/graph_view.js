// @ts-check
/** The flame graph of the scope; its zoom is kept in the address. */

import { part } from "./dom.js";
import { amounts } from "./format.js";

/** @typedef {import("./context.js").Context} Context */
/** @typedef {import("./context.js").View} View */
/** @typedef {import("./profile.js").Profile} Profile */
/** @typedef {import("./state.js").State} State */

/** @implements {View} */
export class GraphView {
  /** @param {Context} context */
  constructor(context) {
    this.context = context;
    this.graph = context.makeGraph(part("graph", HTMLDivElement), "Flame graph", (node) => context.go({ zoom: node }));
    /** @type {Profile | null} */
    this.profile = null;
  }

  /** @param {State} state */
  update(state) {
    const { graph, context } = this;
    const { profile, scope } = context;
    const zoom = profile.present(state.zoom);
    if (profile !== this.profile) {
      const label = `${scope.label} · ${amounts(profile.sum(), profile.event).join(" · ")}`;
      graph.show(profile, { label }, zoom);
    } else {
      graph.zoom(zoom);
    }
    this.profile = profile;
  }
}
