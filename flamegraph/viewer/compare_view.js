// @ts-check
/** Two scopes side by side: one graph coloured by difference, what changed most, what only one of them has. */

import { Combobox } from "./combobox.js";
import { averageSelf, loneFrames, methodChanges, sidesOf } from "./compare.js";
import { ChangesTable } from "./changes_table.js";
import { Difference } from "./difference.js";
import { make } from "./dom.js";
import { quantity, shortName } from "./format.js";
import { collectMethods } from "./methods.js";
import { outermostOf } from "./outermost.js";
import { likelyOther, othersOf } from "./others.js";
import { plainOf, plainProfile } from "./plain.js";
import { Profile } from "./profile.js";
import { nameElement } from "./tooltip.js";

/** @typedef {import("./compare.js").Lone} Lone */
/** @typedef {import("./context.js").Context} Context */
/** @typedef {import("./scopes.js").Scope} Scope */
/** @typedef {import("./state.js").State} State */

const LONE_PATHS = 12;
/** Frames of a lone path that are told besides its own. */
const CALLERS_TOLD = 2;
const LONGEST_CALLER = 120;

export class CompareView {
  /**
   * @param {Context} context
   * @param {HTMLElement} panel
   */
  constructor(context, panel) {
    this.context = context;
    this.shown = "";
    const choice = make("div");
    choice.id = "compare-with";
    this.first = make("b");
    this.swap = make("button", "", "Swap");
    this.swap.id = "compare-swap";
    this.shares = make("button", "", "Shares");
    this.shares.title = "Each as a share of its own whole";
    this.amounts = make("button", "", "Amounts");
    this.amounts.title = "How much each has in all";
    this.facts = make("p", "lead");
    this.ramp = make("p", "ramp");
    const element = make("div");
    element.id = "compare";
    this.graph = context.makeGraph(element, "Flame graph coloured by difference", (node) => this.zoom(node));
    this.changes = new ChangesTable(context);
    this.lone = make("div", "lone");
    this.none = make("p", "none", "There is nothing to compare with: all that was recorded is one process. “hprofiler diff BEFORE AFTER” compares two runs.");
    const head = make("div", "controls");
    const measures = make("div", "switch");
    measures.id = "compare-measure";
    measures.setAttribute("role", "group");
    measures.setAttribute("aria-label", "What is compared");
    measures.append(this.shares, this.amounts);
    head.append(this.first, make("span", "soft", "compared with"), choice, this.swap, measures);
    this.body = make("div");
    this.body.append(head, this.facts, element, this.ramp, this.lone, this.changes.element);
    panel.replaceChildren(this.none, this.body);
    this.box = new Combobox(choice, "Compared with", () => othersOf(context, this.pair()?.one ?? context.scope), (id) => this.go(this.pair()?.one, id));
    this.listen();
  }

  listen() {
    const { context } = this;
    this.swap.addEventListener("click", () => {
      const pair = this.pair();
      this.go(pair?.another, pair?.one.key ?? "");
    });
    this.shares.addEventListener("click", () => context.set({ normalize: true }));
    this.amounts.addEventListener("click", () => context.set({ normalize: false }));
  }

  /** What the scope is compared with; null where there is nothing else. */
  other() {
    const { context } = this;
    const asked = context.state.with ? context.scopes.parse(context.state.with) : null;
    return asked && asked.key !== context.scope.key ? asked : likelyOther(context);
  }

  /**
   * Whether the scope is what the other is compared with: the run before, or the whole while nobody chose a part of it.
   * @param {Scope} other
   */
  isTurned(other) {
    const { scope, state } = this.context;
    const whole = scope.kind === "sum" || scope.kind === "mean";
    return other.run !== scope.run ? other.run > scope.run : whole && state.with === "";
  }

  /**
   * @param {Scope | undefined} one
   * @param {string} another
   */
  go(one, another) {
    if (one) this.context.go({ scope: one.key === "sum" ? "" : one.key, with: another });
  }

  /** What is compared, and with what. */
  pair() {
    const { scope } = this.context;
    const other = this.other();
    if (!other) return null;
    return this.isTurned(other) ? { one: other, another: scope } : { one: scope, another: other };
  }

  /** @param {State} state */
  update(state) {
    const { context } = this;
    const pair = this.pair();
    this.none.hidden = pair !== null;
    this.body.hidden = pair === null;
    if (!pair) return;
    const { one, another } = pair;
    this.shares.setAttribute("aria-pressed", String(state.normalize));
    this.amounts.setAttribute("aria-pressed", String(!state.normalize));
    const shown = `${context.event} ${context.thread} ${one.key} ${another.key} ${state.normalize}`;
    if (shown !== this.shown) this.compare(one, another, state);
    else if (this.graph.profile) this.graph.zoom(this.graph.profile.present(this.plainNode(state.zoom)));
    this.shown = shown;
    this.changes.update(state);
  }

  /**
   * @param {Scope} scope
   * @param {Scope} other
   * @param {State} state
   */
  compare(scope, other, state) {
    const { context } = this;
    const plain = plainOf(context.tree);
    this.changes.forget();
    const [here, there] = [scope, other].map((one) => plainProfile(context.profileOf(one), plain));
    const sides = sidesOf(here, there, state.normalize);
    const difference = new Difference(sides, state.normalize, scope.label, other.label);
    const profile = new Profile(plain.shape, here.event, averageSelf(sides));
    const outermost = outermostOf(plain.shape);
    this.first.replaceChildren(make("bdi", "", scope.label));
    this.swap.hidden = scope.run !== other.run;
    this.box.show(other.key, other.label);
    this.facts.textContent =
      `${quantity(here.sum(), here.event)} and ${quantity(there.sum(), here.event)}. ` +
      "A frame is as wide as both have it on average, so nothing that only one has is hidden.";
    this.graph.show(profile, {
      label: "both, on average", only: true, tint: (node) => difference.tint(node), rows: (node) => difference.rows(node),
    }, profile.present(this.plainNode(state.zoom)));
    this.showRamp(difference);
    this.showLone(difference, scope.run !== other.run);
    this.changes.show(difference, methodChanges(collectMethods(here, outermost), collectMethods(there, outermost), sides));
  }

  /**
   * The address has nodes of the page's tree.
   * @param {number} node of the comparison's
   */
  zoom(node) {
    const same = plainOf(this.context.tree).node;
    this.context.go({ zoom: same ? same.indexOf(node) : node });
  }

  /** @param {number} node of the page's tree */
  plainNode(node) {
    const same = plainOf(this.context.tree).node;
    return same ? same[node] ?? 0 : node;
  }

  /** @param {Difference} difference */
  showRamp(difference) {
    const swatches = make("span", "swatches");
    for (let part = -1; part <= 1; part += 0.25) {
      const swatch = make("i");
      swatch.style.background = difference.colorsOf(Math.sign(part) * part * part * difference.largest);
      swatches.append(swatch);
    }
    const less = make("bdi", "", `more in ${difference.thereName}`);
    const more = make("bdi", "", `more in ${difference.hereName}`);
    const strongest = make("span", "soft", `the strongest colours are ${difference.size(difference.largest)} apart`);
    this.ramp.replaceChildren(less, swatches, more, strongest);
    this.ramp.hidden = difference.largest === 0;
  }

  /**
   * @param {Difference} difference
   * @param {boolean} later whether the one side was before the other
   */
  showLone(difference, later) {
    const { here, there, hereWhole, thereWhole } = difference.sides;
    const appeared = loneFrames(here, there, hereWhole, LONE_PATHS);
    const vanished = loneFrames(there, here, thereWhole, LONE_PATHS);
    if (appeared.count + vanished.count === 0) return this.lone.replaceChildren(make("p", "soft", "Both have the same paths."));
    const [first, second] = later ? ["Appeared: only in", "Vanished: only in"] : ["Only in", "Only in"];
    this.lone.replaceChildren(
      this.loneList("only-here", `${first} ${difference.hereName}`, appeared, difference),
      this.loneList("only-there", `${second} ${difference.thereName}`, vanished, difference),
    );
  }

  /**
   * @param {string} id
   * @param {string} title
   * @param {{paths: Lone[], count: number}} found
   * @param {Difference} difference
   */
  loneList(id, title, found, difference) {
    const section = make("section");
    const heading = make("h3");
    const list = make("ul");
    section.id = id;
    heading.append(make("bdi", "", title), make("span", "soft", ` ${found.count.toLocaleString("en-US")} ${found.count === 1 ? "path" : "paths"}`));
    list.append(...found.paths.map((path) => this.lonePath(path, difference)));
    if (found.count > found.paths.length) list.append(make("li", "soft", `and ${found.count - found.paths.length} thinner ones`));
    section.append(heading, found.count ? list : make("p", "soft", "Nothing."));
    return section;
  }

  /**
   * @param {Lone} path
   * @param {Difference} difference
   */
  lonePath({ node, part }, difference) {
    const { here } = difference.sides;
    const callers = here.pathOf(node).slice(0, -1);
    const item = make("li");
    const button = make("button", "link");
    button.append(nameElement(here.nameOf(node)));
    button.title = "Zoom to it in the graph";
    button.addEventListener("click", () => this.zoom(node));
    item.append(make("b", "", difference.part(part)), " ", button);
    if (callers.length) {
      const told = callers.slice(-CALLERS_TOLD).reverse().map((at) => shortName(here.nameOf(at)).slice(0, LONGEST_CALLER));
      item.append(make("span", "soft path", ` called by ${told.join(" ← ")}${callers.length > CALLERS_TOLD ? " ← …" : ""}`));
    }
    return item;
  }
}
