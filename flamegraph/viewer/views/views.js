// @ts-check
/** All views in one list; README.md says what a new one needs. */

import { make, part } from "../controls/dom.js";
import { amounts, quantity } from "../data/format.js";
import { mergedFromLeaves } from "../data/merged_tree.js";
import { MergedGraph } from "../graph/merged_graph.js";
import { CompareView } from "./compare_view.js";
import { HostsView } from "./hosts_view.js";
import { MethodsView } from "./methods_view.js";
import { RunView } from "./run_view.js";
import { SandwichView } from "./sandwich_view.js";

/** @import { Context, View } from "../controls/context.js" */
/** @import { Profile } from "../data/profile.js" */
/** @import { State, ViewName } from "../data/state.js" */

/** @implements {View} */
class GraphView {
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

class ReversedView {
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

/** @type {Record<ViewName, new (context: Context, panel: HTMLElement) => View>} */
export const VIEWS_BY_NAME = {
  graph: GraphView,
  reversed: ReversedView,
  sandwich: SandwichView,
  methods: MethodsView,
  hosts: HostsView,
  compare: CompareView,
  run: RunView,
};
