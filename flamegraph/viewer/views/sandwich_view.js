// @ts-check
/** One method, whoever calls it above and what it calls below. */

import { Combobox } from "../controls/combobox.js";
import { filled, make } from "../controls/dom.js";
import { percent, quantity, shortName, shownName } from "../data/format.js";
import { mergedAround } from "../data/merged_tree.js";
import { collectMethods } from "../data/methods.js";
import { MergedGraph } from "../graph/merged_graph.js";

/** @import { Context, View } from "../controls/context.js" */
/** @import { Method } from "../data/methods.js" */
/** @import { Profile } from "../data/profile.js" */
/** @import { State } from "../data/state.js" */

const LONGEST_NAME = 600;

/** @implements {View} */
export class SandwichView {
  /**
   * @param {Context} context
   * @param {HTMLElement} panel
   */
  constructor(context, panel) {
    this.context = context;
    /** @type {Profile | null} */
    this.profile = null;
    /** @type {string | null} */
    this.method = null;
    /** @type {Method[]} */
    this.methods = [];
    const choice = make("div");
    choice.id = "sandwich-method";
    this.cost = make("p", "cost");
    this.none = make("p", "none");
    this.graphs = make("div", "sandwich");
    panel.replaceChildren(filled("div", "controls", make("span", "soft", "Method"), choice, this.cost), this.none, this.graphs);
    const options = () => {
      const { names } = context.tree;
      const whole = this.profile?.sum() ?? 0;
      return this.methods.map(({ name, total }) => {
        return { id: names[name], label: shownName(names[name]), section: "By total", note: () => percent(total, whole) };
      });
    };
    this.box = new Combobox(choice, "Method", options, (name) => context.openMethod(name));
    const graphOf = (/** @type {"callers" | "callees"} */ id, /** @type {string} */ title) => {
      const merged = new MergedGraph(context, id, title);
      this.graphs.append(filled("section", "half", make("h2", "", title), merged.graph.element));
      return merged;
    };
    this.callers = graphOf("callers", "Callers");
    this.callees = graphOf("callees", "Callees");
    this.callers.graph.turnedBy = () => true;
    this.callees.graph.turnedBy = () => false;
  }

  /** The method that is shown until one is chosen: that of the first finding, else the one with the highest self cost. */
  usual() {
    const { page, event, tree } = this.context;
    const found = page.summaries[event].findings[0]?.method ?? "";
    if (this.methods.some(({ name }) => tree.names[name] === found)) return found;
    const hottest = this.methods.reduce((most, one) => (one.self > most.self ? one : most), { name: -1, self: 0 });
    return tree.names[hottest.name] ?? "";
  }

  /** @param {State} state */
  update(state) {
    const { profile } = this.context;
    if (profile === this.profile && (state.method || this.usual()) === this.method) {
      this.callers.update();
      this.callees.update();
      return;
    }
    if (profile !== this.profile) this.methods = collectMethods(profile).filter(({ does }) => does === 0);
    this.profile = profile;
    const method = state.method || this.usual();
    this.method = method;
    const name = method ? profile.names.indexOf(method) : -1;
    const merged = name < 0 ? null : mergedAround(profile, name);
    this.box.show(method, shownName(method));
    this.graphs.hidden = merged === null;
    this.none.hidden = merged !== null;
    this.cost.textContent = "";
    if (!merged) {
      for (const { graph } of [this.callers, this.callees]) graph.leave();
      const shown = method.length > LONGEST_NAME ? `${method.slice(0, LONGEST_NAME)}…` : method;
      this.none.textContent = shown
        ? `${shown} is on no stack of this selection.`
        : "Choose a method, or double-click a frame.";
      return;
    }
    const one = this.methods.find((each) => each.name === name);
    const whole = profile.sum();
    const total = merged.callees.root.total;
    this.cost.textContent =
      `${percent(total, whole)} total, ${percent(one?.self ?? 0, whole)} self · ${quantity(total, profile.event)}`;
    this.callers.show(merged.callers, shortName(method));
    this.callees.show(merged.callees, shortName(method));
  }
}
