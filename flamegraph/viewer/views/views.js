// @ts-check
/** All views in one list; README.md says what a new one needs. */

import { quantity } from "../data/format.js";
import { mergedFromLeaves } from "../data/merged_tree.js";
import { MergedGraph } from "../graph/merged_graph.js";
import { ScopeGraph } from "../graph/scope_graph.js";
import { CompareView } from "./compare_view.js";
import { HostsView } from "./hosts_view.js";
import { MachinesView } from "./machines_view.js";
import { MethodsView } from "./methods_view.js";
import { RunView } from "./run_view.js";
import { SandwichView } from "./sandwich_view.js";
import { SparkView } from "./spark_view.js";
import { TimeView } from "./time_view.js";
import { WorkView } from "./work_view.js";

/** @import { Context, View } from "../controls/context.js" */
/** @import { Profile } from "../data/profile.js" */
/** @import { ViewName } from "../data/state.js" */

/** @implements {View} */
class ReversedView {
  /**
   * @param {Context} context
   * @param {HTMLElement} panel
   */
  constructor(context, panel) {
    this.context = context;
    this.graph = new MergedGraph(context, "reversed", "Flame graph from the leaves");
    panel.append(this.graph.graph.element);
    /** @type {Profile | null} */
    this.profile = null;
  }

  update() {
    const { profile, scope, part } = this.context;
    if (profile === this.profile) return this.graph.update();
    this.profile = profile;
    const words = [`${scope.label}, from the leaves`, part, quantity(profile.sum(), profile.event)];
    this.graph.show(mergedFromLeaves(profile), words.filter(Boolean).join(" · "));
  }
}

/** @type {Record<ViewName, new (context: Context, panel: HTMLElement) => View>} */
export const VIEWS_BY_NAME = {
  graph: ScopeGraph,
  time: TimeView,
  reversed: ReversedView,
  sandwich: SandwichView,
  methods: MethodsView,
  hosts: HostsView,
  compare: CompareView,
  machines: MachinesView,
  spark: SparkView,
  work: WorkView,
  run: RunView,
};
