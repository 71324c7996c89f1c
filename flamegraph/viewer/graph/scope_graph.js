// @ts-check
/** The flame graph of what is chosen: scope, event, threads, part of the recording; or its frames in the order of time. */

import { amounts } from "../data/format.js";
import { microsecondsText, rangeText, SECOND } from "../data/range.js";
import { TimeOrdered } from "../data/time_order.js";

/** @import { Context, View } from "../controls/context.js" */
/** @import { Profile } from "../data/profile.js" */
/** @import { State } from "../data/state.js" */
/** @import { Coloring } from "./colors.js" */
/** @import { TooltipRow } from "./frame_details.js" */

/** @implements {View} */
export class ScopeGraph {
  /**
   * @param {Context} context
   * @param {HTMLElement} panel
   * @param {string} [id]
   */
  constructor(context, panel, id = "graph") {
    this.context = context;
    this.mayOrder = id === "graph";
    /** The frames in the order of time, if they are shown. @type {TimeOrdered | null} */
    this.ordered = null;
    this.graph = context.makeGraph(id, "Flame graph", (node) => {
      if (this.ordered) this.graph.zoom(node);
      else context.go({ zoom: context.originOf(node) });
    });
    panel.append(this.graph.element);
    /** @type {Profile | null} */
    this.profile = null;
  }

  /** @param {State} state */
  update(state) {
    const { graph, context } = this;
    const { profile, scope, part } = context;
    if (this.mayOrder && state.order && context.ofOneThread) return this.showOrdered();
    const zoom = profile.present(context.shownAt(state.zoom));
    if (profile !== this.profile || this.ordered) {
      const words = [scope.label, part, context.idleHidden, ...amounts(profile.sum(), profile.event)];
      graph.show(profile, { label: words.filter(Boolean).join(" · ") }, zoom);
    } else {
      graph.zoom(zoom);
    }
    this.profile = profile;
    this.ordered = null;
  }

  /** Shows each stack when it was sampled. The zoom is not in the address. */
  showOrdered() {
    const { graph, context } = this;
    const { profile, page, range, numbers, scope, thread, ofOneThread } = context;
    if (!page.time || !ofOneThread || (profile === this.profile && this.ordered)) return;
    const { width, seconds } = page.time;
    const shown = range ?? { from: 0, to: Math.ceil((seconds * SECOND) / width) * width };
    const ordered = new TimeOrdered(numbers, ofOneThread, profile.event, shown, page.time);
    const cell = microsecondsText(ordered.cell);
    const words = [scope.label, page.threads[thread] ?? "", context.part, `of each ${cell} the stack with most samples`];
    /** @type {(node: number) => TooltipRow[]} */
    const rows = (node) => [["Time", rangeText(ordered.rangeOf(node))], ["Lasts", microsecondsText(ordered.total[node])]];
    const title = `${scope.label}, in the order of time`;
    /** Of a time without samples the ground is seen. @type {(node: number, coloring: Coloring) => string} */
    const tint = (node, coloring) => (ordered.isEmpty(node) ? coloring.edge : coloring.fill(ordered, node));
    graph.show(ordered, { label: words.filter(Boolean).join(" · "), rows, average: true, title, tint });
    this.profile = profile;
    this.ordered = ordered;
  }
}
