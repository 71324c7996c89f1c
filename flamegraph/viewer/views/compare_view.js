// @ts-check
/** Two scopes side by side: one graph coloured by difference, what changed most, what only one of them has. */

import { make } from "../controls/dom.js";
import { SidesBox } from "../controls/sides_box.js";
import { fillAverage, uniquePaths, methodChanges, kindlessOf, kindlessProfile, sidesOf } from "../data/comparison.js";
import { quantity } from "../data/format.js";
import { inTurns } from "../data/method_costs.js";
import { collectMethods, outermostOf } from "../data/methods.js";
import { Noise, ProcessCosts } from "../data/noise.js";
import { Profile } from "../data/profile.js";
import { coverageOfBoth } from "../data/scopes.js";
import { Difference } from "../graph/difference.js";
import { ChangesTable, LISTED, UniqueLists } from "./compare_lists.js";

/** @import { Context, View } from "../controls/context.js" */
/** @import { Pair } from "../controls/sides_box.js" */
/** @import { Sides } from "../data/comparison.js" */
/** @import { Shape } from "../data/profile.js" */
/** @import { State } from "../data/state.js" */

const NO_SELF = new Float64Array(0);
const NOTHING_ELSE = "There is nothing to compare with: all that was recorded is one process. “hprofiler diff BEFORE AFTER” compares two runs.";

/** From so many nodes on the lists come after the picture. */
const MANY = 50_000;

const OVERLAP = "Both have samples in common, so it is not known which changes are chance.";
const UNKNOWN = "How many samples these amounts stand for is not known here, so it is not known which changes are chance.";

/** @implements {View} */
export class CompareView {
  /**
   * @param {Context} context
   * @param {HTMLElement} panel
   */
  constructor(context, panel) {
    this.context = context;
    /** What is shown now. */
    this.shown = "";
    /** Being read: what separates chance from change. @type {ProcessCosts | null} */
    this.costs = null;
    /** What is shown of both sides. @type {Difference | null} */
    this.difference = null;
    /** Being made: its lists. @type {Iterator<void> | null} */
    this.work = null;
    /** What is drawn, and nothing else looks at: the next comparison takes its place. */
    this.total = new Float64Array(0);
    const element = make("div");
    element.id = "compare";
    this.none = make("p", "none", NOTHING_ELSE);
    this.sides = new SidesBox(context);
    this.facts = make("p", "lead");
    this.graph = context.makeGraph(element, "Flame graph coloured by difference", (node) => this.zoom(node));
    this.ramp = make("p", "ramp");
    this.unique = new UniqueLists((node) => this.zoom(node));
    this.changes = new ChangesTable(context);
    this.body = make("div");
    this.body.append(this.sides.element, this.facts, element, this.ramp, this.unique.element, this.changes.element);
    panel.replaceChildren(this.none, this.body);
    window.addEventListener("beforeprint", () => {
      if (context.state.view === "compare") this.finish();
    });
  }

  /** @param {State} state */
  update(state) {
    const { context } = this;
    const pair = this.sides.pair();
    this.none.hidden = pair !== null;
    this.body.hidden = pair === null;
    if (!pair) return;
    this.sides.show(pair, state);
    const shown = `${context.event} ${context.thread} ${pair.one.key} ${pair.another.key} ${state.normalize}`;
    if (shown !== this.shown) {
      const difference = this.compare(pair, state);
      this.shown = shown;
      this.startLists(difference, pair);
    } else if (this.graph.profile) {
      this.graph.zoom(this.graph.profile.present(this.kindlessNode(state.zoom)));
    }
    this.changes.update(state);
  }

  leave() {
    kindlessOf(this.context.tree).pool.clear();
  }

  /**
   * Shows the picture.
   * @param {Pair} pair
   * @param {State} state
   */
  compare({ one, another }, state) {
    const { context } = this;
    const kindless = kindlessOf(context.tree);
    this.changes.forget();
    const [here, there] = [one, another].map((scope) => kindlessProfile(context.profileOf(scope), kindless));
    const sides = sidesOf(here, there, state.normalize);
    const difference = new Difference(sides, state.normalize, one.label, another.label);
    const profile = this.average(sides, kindless.shape);
    this.facts.textContent =
      `${quantity(here.sum(), here.event)} and ${quantity(there.sum(), here.event)}. ` +
      "A frame is as wide as both have it on average, so nothing that only one has is hidden.";
    this.graph.show(profile, {
      label: "both, on average",
      title: `${one.label} compared with ${another.label}`,
      coverage: coverageOfBoth(context.scopes, one, another, context.event),
      average: true,
      rows: (node) => difference.rows(node),
      tint: (node, { dark }) => difference.tint(node, dark),
    }, profile.present(this.kindlessNode(state.zoom)));
    this.showRamp(difference);
    return difference;
  }

  /**
   * The lists of what is shown now.
   * @param {Difference} difference
   * @param {Pair} pair
   */
  startLists(difference, { one, another }) {
    if (this.costs) this.costs.stopped = true;
    this.difference = difference;
    this.work = this.list(difference, one.run > another.run);
    this.setBusy(true);
    if (difference.sides.here.count < MANY) this.finish();
    if (!this.shown) return; // they could not be made, and the page says so
    const costs = new ProcessCosts(this.context, one, another);
    void this.judge(difference, costs, one.run > another.run).catch((error) => this.fail(difference, error));
  }

  /**
   * Makes the lists; yields so that other work can run.
   * @param {Difference} difference
   * @param {boolean} later whether the first side is the later run
   */
  *list(difference, later) {
    const { sides } = difference;
    const outermost = outermostOf(kindlessOf(this.context.tree).shape);
    const here = collectMethods(sides.here, outermost);
    yield;
    const there = collectMethods(sides.there, outermost);
    yield;
    yield* this.listUnique(difference, later);
    this.changes.show(difference, methodChanges(here, there, sides));
    this.changes.update(this.context.state);
    this.setBusy(false);
    this.work = null;
  }

  /**
   * Lists the paths that only one side has; those that may be chance are only counted, once that is known.
   * @param {Difference} difference
   * @param {boolean} later
   */
  *listUnique(difference, later) {
    const { sides, noise } = difference;
    const isChance = (/** @type {number} */ node) => difference.isChance(node);
    const appeared = uniquePaths(sides.here, sides.there, sides.hereWhole, LISTED, isChance);
    yield;
    const vanished = uniquePaths(sides.there, sides.here, sides.thereWhole, LISTED, isChance);
    yield;
    // Lists that stay as they are keep their places, and what in them has the focus.
    if (!noise || appeared.chance + vanished.chance) this.unique.show(difference, appeared, vanished, later);
  }

  /**
   * The same once more, now that one knows what may be chance.
   * @param {Difference} difference
   * @param {boolean} later
   */
  async listAnew(difference, later) {
    const work = (this.work = this.listUnique(difference, later));
    const done = await this.listed(work, difference);
    if (this.work === work) this.work = null;
    return done;
  }

  /** Makes what is left of the lists at once. */
  finish() {
    try {
      while (this.work?.next().done === false);
    } catch (error) {
      if (this.difference) this.fail(this.difference, error);
    }
  }

  /**
   * What was to come after the picture does not come, and is tried again when something else is asked for.
   * @param {Difference} difference
   * @param {unknown} error
   */
  fail(difference, error) {
    if (difference !== this.difference) return;
    this.setBusy(false);
    // Those that are there are of the comparison before.
    if (this.work) this.unique.element.hidden = this.changes.element.hidden = true;
    this.work = null;
    this.shown = "";
    if (this.context.state.view === "compare") this.context.failed(error);
  }

  /** @param {boolean} busy whether the lists are yet to come */
  setBusy(busy) {
    for (const { element } of [this.unique, this.changes]) {
      element.setAttribute("aria-busy", String(busy));
      element.hidden = false;
    }
  }

  /**
   * Its array is that of the comparison before: no picture of that is left. What a frame costs itself is shown for each
   * side, not for both.
   * @param {Sides} sides
   * @param {Shape} shape
   */
  average(sides, shape) {
    if (this.total.length !== shape.count) this.total = new Float64Array(shape.count);
    fillAverage(sides, this.total);
    return new Profile(shape, sides.here.event, NO_SELF, this.total);
  }

  /**
   * Marks changes that may be chance, as soon as that is known.
   * @param {Difference} difference
   * @param {ProcessCosts} costs of the two sides
   * @param {boolean} later whether the first side is the later run
   */
  async judge(difference, costs, later) {
    this.costs = costs;
    if (this.work && !(await this.listed(this.work, difference))) return;
    if (costs.overlap) {
      this.changes.judge(null, OVERLAP);
    } else {
      if (!(await costs.read())) return;
      const noise = new Noise(costs.sides[0], costs.sides[1], !difference.normalised);
      difference.noise = noise.known ? noise : null;
      if (noise.known && !(await this.listAnew(difference, later))) return;
      this.showRamp(difference);
      this.graph.redraw();
      this.changes.judge(difference.noise, noteOf(noise));
    }
    if (this.context.state.view === "compare") this.changes.update(this.context.state);
  }

  /**
   * Waits for the lists. Of a comparison that is no longer looked at there are none: it is made anew.
   * @param {Iterator<void>} work
   * @param {Difference} difference
   * @returns {Promise<boolean>} whether they are there
   */
  async listed(work, difference) {
    const left = () => this.work === work && this.context.state.view !== "compare";
    const done = await inTurns(work, () => this.difference !== difference || left());
    if (!done && left()) this.shown = "";
    return done;
  }

  /**
   * The address has nodes of the page's tree.
   * @param {number} node of the comparison's
   */
  zoom(node) {
    const same = kindlessOf(this.context.tree).node;
    this.context.go({ zoom: same ? same.indexOf(node) : node });
  }

  /** @param {number} node of the page's tree */
  kindlessNode(node) {
    const same = kindlessOf(this.context.tree).node;
    return same ? same[node] ?? 0 : node;
  }

  /** @param {Difference} difference */
  showRamp(difference) {
    const swatches = make("span", "swatches");
    for (let part = -1; part <= 1; part += 0.25) {
      const swatch = make("i");
      swatch.style.background = difference.colorsOf(Math.sign(part) * part * part * difference.scale);
      swatches.append(swatch);
    }
    const less = make("bdi", "", `more in ${difference.thereName}`);
    const more = make("bdi", "", `more in ${difference.hereName}`);
    const strongest = make("span", "soft", strengthOf(difference));
    this.ramp.replaceChildren(less, swatches, more, strongest);
    this.ramp.hidden = difference.largest === 0;
  }
}

/**
 * What the colours mean.
 * @param {Difference} difference
 */
function strengthOf(difference) {
  const { noise, scale } = difference;
  if (noise && difference.isAllChance()) return "no frame changed beyond noise: all of it may be chance, and is faint";
  const strongest = `the strongest colours are ${difference.size(scale)} apart`;
  return noise ? `${strongest}; what may be chance is faint` : strongest;
}

/**
 * How it is known what chance makes.
 * @param {Noise} noise
 */
function noteOf({ known, countedAlone, sides }) {
  if (!known) return UNKNOWN;
  const [here, there] = sides.map(({ parts }) => parts);
  const how = countedAlone
    ? "the change expected by chance from the number of samples; how processes vary cannot be known from one on each side"
    : `the change expected by chance, from the number of samples and the spread over ${here} and ${there} processes`;
  return `Noise is ${how}. Changes within it are grey.`;
}
