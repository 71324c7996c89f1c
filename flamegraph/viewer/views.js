// @ts-check
/**
 * All views, in one list: a new one is a module, a line here, its name in state.js, its tab and panel in explorer.html,
 * and what it has of the tools (graphs, a search) in explorer.js; it gets its panel.
 */

import { CompareView } from "./compare_view.js";
import { GraphView } from "./graph_view.js";
import { HostsView } from "./hosts_view.js";
import { MethodsView } from "./methods_view.js";
import { ReversedView } from "./reversed.js";
import { RunView } from "./run_view.js";
import { SandwichView } from "./sandwich_view.js";

/** @typedef {import("./context.js").Context} Context */
/** @typedef {import("./context.js").View} View */
/** @typedef {import("./state.js").ViewName} ViewName */

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
