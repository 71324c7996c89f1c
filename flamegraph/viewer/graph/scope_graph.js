// @ts-check
/** The flame graph of what is chosen: scope, event, threads, part of the recording. */

import { amounts } from "../data/format.js";

/** @import { Context, View } from "../controls/context.js" */
/** @import { Profile } from "../data/profile.js" */
/** @import { State } from "../data/state.js" */

/** @implements {View} */
export class ScopeGraph {
  /**
   * @param {Context} context
   * @param {HTMLElement} panel
   * @param {string} [id]
   */
  constructor(context, panel, id = "graph") {
    this.context = context;
    this.graph = context.makeGraph(id, "Flame graph", (node) => context.go({ zoom: context.originOf(node) }));
    panel.append(this.graph.element);
    /** @type {Profile | null} */
    this.profile = null;
  }

  /** @param {State} state */
  update(state) {
    const { graph, context } = this;
    const { profile, scope, part } = context;
    const zoom = profile.present(context.shownAt(state.zoom));
    if (profile !== this.profile) {
      const words = [scope.label, part, context.idleHidden, ...amounts(profile.sum(), profile.event)];
      graph.show(profile, { label: words.filter(Boolean).join(" · ") }, zoom);
    } else {
      graph.zoom(zoom);
    }
    this.profile = profile;
  }
}
