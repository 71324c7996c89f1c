// @ts-check
/** Two scopes side by side: a graph coloured by difference, changes by method, paths that only one side has. */

import { filled, make } from "../controls/dom.js";
import { SidesBox } from "../controls/sides_box.js";
import { isDark } from "../controls/theme.js";
import { fillAverage, uniquePaths, methodChanges, kindlessOf, kindlessProfile, sidesOf } from "../data/comparison.js";
import { percent, quantity } from "../data/format.js";
import { inTurns } from "../data/method_costs.js";
import { attributionOf, collectMethods } from "../data/methods.js";
import { Noise, readSides } from "../data/noise.js";
import { Profile } from "../data/profile.js";
import { coverageOfBoth } from "../data/scopes.js";
import { categoryCode, isWork } from "../data/work.js";
import { Difference } from "../graph/difference.js";
import { ChangesTable, LISTED, UniqueLists } from "./compare_lists.js";
import { WorkBars } from "./work_bars.js";

/** @import { Context, View } from "../controls/context.js" */
/** @import { Pair } from "../controls/sides_box.js" */
/** @import { State } from "../data/state.js" */

const NO_SELF = new Float64Array(0);
const NOTHING_ELSE = "Nothing to compare with: all samples are of one process. “hprofiler diff BEFORE AFTER” compares two runs.";

/** With so many nodes the lists are made after the picture is drawn. */
const MANY = 50_000;

const OVERLAP = "Both sides share samples, so noise cannot be estimated.";
const UNKNOWN = "The number of samples behind these amounts is not known, so noise cannot be estimated.";

/** @implements {View} */
export class CompareView {
  /**
   * @param {Context} context
   * @param {HTMLElement} panel
   */
  constructor(context, panel) {
    this.context = context;
    /** What is shown now; "" for nothing. */
    this.shown = "";
    /** @type {Difference | null} */
    this.difference = null;
    /** Whether the bars of categories are those of the dark theme. */
    this.darkWork = false;
    /** The totals drawn. The next comparison overwrites them. */
    this.total = new Float64Array(0);
    this.none = make("p", "none", NOTHING_ELSE);
    this.sides = new SidesBox(context);
    this.facts = make("p", "lead");
    this.graph = context.makeGraph("compare", "Flame graph coloured by difference", (node) => this.zoom(node));
    this.ramp = make("p", "ramp");
    this.work = make("section", "work");
    this.unique = new UniqueLists((node) => this.zoom(node));
    this.changes = new ChangesTable(context);
    this.body = filled("div", "", this.sides.element, this.facts, this.graph.element, this.ramp, this.work, this.unique.element, this.changes.element);
    panel.replaceChildren(this.none, this.body);
  }

  /** @param {State} state */
  update(state) {
    const { context } = this;
    const pair = this.sides.pair();
    this.none.hidden = pair !== null;
    this.body.hidden = pair === null;
    if (!pair) return;
    this.sides.show(pair, state);
    const parts = `${state.time} ${state.time2} ${state.band} ${context.category}`;
    const shown = `${context.event} ${context.thread} ${pair.one.key} ${pair.another.key} ${parts} ${state.normalize}`;
    if (shown !== this.shown) {
      this.forget();
      const difference = this.compare(pair, state);
      this.shown = shown;
      this.difference = difference;
      this.showWork(pair, isDark());
      void this.list(difference, pair).catch((error) => {
        if (difference !== this.difference) return;
        this.setBusy(false);
        this.unique.element.hidden = this.changes.element.hidden = true;
        this.shown = ""; // tried again when something else is asked for
        context.failed(error);
      });
    } else if (this.graph.profile) {
      this.graph.zoom(this.graph.profile.present(this.kindlessNode(state.zoom)));
    }
    this.changes.update(state);
  }

  /** @param {boolean} dark */
  recolor(dark) {
    const pair = this.sides.pair();
    if (pair && this.darkWork !== dark) this.showWork(pair, dark);
  }

  /**
   * Both sides' work by category: of all categories, also where one is shown alone.
   * @param {Pair} pair
   * @param {boolean} dark
   */
  showWork({ one, another, oneName, anotherName }, dark) {
    const { context } = this;
    const { event, thread, category, page, state } = context;
    this.darkWork = dark;
    this.work.hidden = !isWork(page.events[event].name);
    if (this.work.hidden) return;
    const [here, there] = [context.numbersOf(state.time, -1), context.numbersOf(state.time2 || state.time, -1)];
    const sides = [here.workOf(here.columns(one, event, thread)), there.workOf(there.columns(another, event, thread))];
    const totals = sides.map((sums) => sums.reduce((sum, value) => sum + value, 0));
    const sums = sides[0].map((value, at) => value / (totals[0] || 1) + sides[1][at] / (totals[1] || 1));
    const bars = new WorkBars(context.categoryColoring(dark), sums, category, this.work.clientWidth);
    const choose = (/** @type {number} */ chosen) => context.go({ category: chosen === category ? "" : categoryCode(chosen) });
    const share = (/** @type {number} */ side, /** @type {number} */ of) => percent(sides[side][of], totals[side]);
    const rows = [oneName, anotherName].map((name, side) => bars.row(make("bdi", "", name), sides[side], choose));
    const legend = bars.legend((of) => `${share(0, of)}, ${share(1, of)}`, choose);
    this.work.replaceChildren(make("h2", "", "Work by category"), ...rows, legend);
  }

  leave() {
    this.forget();
    kindlessOf(this.context.tree).pool.clear();
  }

  /** Frees what was compared, which may be large, and stops work on it. */
  forget() {
    this.shown = "";
    this.difference = null;
    this.changes.show(null, []);
  }

  /**
   * Shows the picture.
   * @param {Pair} pair
   * @param {State} state
   */
  compare(pair, state) {
    const { context } = this;
    const { event, thread } = context;
    const { one, another, oneName, anotherName } = pair;
    const kindless = kindlessOf(context.tree);
    const here = kindlessProfile(pair.here.profileOf(one, event, thread), kindless);
    const there = kindlessProfile(pair.there.profileOf(another, event, thread), kindless);
    const sides = sidesOf(here, there, state.normalize);
    const difference = new Difference(sides, state.normalize, oneName, anotherName);
    if (this.total.length !== kindless.shape.count) this.total = new Float64Array(kindless.shape.count);
    fillAverage(sides, this.total);
    // What a frame costs itself is shown for each side, not for both.
    const profile = new Profile(kindless.shape, here.event, NO_SELF, this.total);
    this.facts.textContent =
      `${quantity(here.sum(), here.event)} and ${quantity(there.sum(), here.event)}. ` +
      "Frames are as wide as the average of both sides, so nothing that only one side has is hidden.";
    this.graph.show(profile, {
      label: "both sides, average",
      title: `${oneName} compared with ${anotherName}`,
      coverage: coverageOfBoth(context.recorded, one, another, event),
      average: true,
      rows: (node) => difference.rows(node),
      tint: (node, { dark }) => difference.tint(node, dark),
    }, profile.present(this.kindlessNode(state.zoom)));
    this.showRamp(difference);
    return difference;
  }

  /**
   * Makes the lists, after the picture if there are many nodes, then estimates noise.
   * @param {Difference} difference
   * @param {Pair} pair
   */
  async list(difference, pair) {
    const { one, another, here, there } = pair;
    const { context, changes } = this;
    const { event, thread } = context;
    const { sides, normalised } = difference;
    const stopped = () => this.difference !== difference;
    this.setBusy(true);
    const work = this.makeLists(difference, pair);
    if (sides.here.count < MANY) for (const _ of work);
    else if (!(await inTurns(work, stopped))) return;
    this.setBusy(false);

    const columns = here.columns(one, event, thread);
    const others = there.columns(another, event, thread);
    const chosen = new Set(columns.map(({ column }) => column));
    const overlap = here.overlaps(there) && others.some(({ column }) => chosen.has(column));
    const chosenSides = [{ columns, numbers: here }, { columns: others, numbers: there }];
    const spreads = overlap ? null : await readSides(context, chosenSides, attributionOf(context.profile), stopped);
    if (stopped()) return;
    const noise = spreads && new Noise(spreads[0], spreads[1], !normalised);
    difference.noise = noise?.known ? noise : null;
    if (difference.noise) {
      if (!(await inTurns(this.listUnique(difference, one.run > another.run), stopped))) return;
      this.showRamp(difference);
      this.graph.redraw();
    }
    changes.judge(noise ? noteOf(noise) : OVERLAP);
    changes.update(context.state);
  }

  /**
   * The paths that only one side has, and the changes by method; yields so that the page stays responsive.
   * @param {Difference} difference
   * @param {Pair} pair
   */
  *makeLists(difference, { one, another, here, there }) {
    const { event, thread } = this.context;
    // Of the page's tree: what threads do is known of its nodes.
    const methods = collectMethods(here.profileOf(one, event, thread));
    yield;
    const others = collectMethods(there.profileOf(another, event, thread));
    yield;
    yield* this.listUnique(difference, one.run > another.run);
    this.changes.show(difference, methodChanges(methods, others, difference.sides));
    this.changes.update(this.context.state);
  }

  /**
   * The paths that only one side has; those within noise are only counted. Yields, too.
   * @param {Difference} difference
   * @param {boolean} later whether the first side is the later run
   */
  *listUnique(difference, later) {
    const { here, there, hereWhole, thereWhole } = difference.sides;
    const isChance = (/** @type {number} */ node) => difference.isChance(node);
    const appeared = uniquePaths(here, there, hereWhole, LISTED, isChance);
    yield;
    const vanished = uniquePaths(there, here, thereWhole, LISTED, isChance);
    // Lists that do not change keep the focus.
    if (!difference.noise || appeared.chance + vanished.chance) this.unique.show(difference, appeared, vanished, later);
  }

  /** @param {boolean} busy whether the lists are yet to come */
  setBusy(busy) {
    for (const { element } of [this.unique, this.changes]) {
      element.setAttribute("aria-busy", String(busy));
      element.hidden = false;
    }
  }

  /**
   * Zooms to a node; the address has nodes of the page's tree.
   * @param {number} node of the comparison's
   */
  zoom(node) {
    const same = kindlessOf(this.context.tree).node;
    this.context.go({ zoom: this.context.originOf(same ? same.indexOf(node) : node) });
  }

  /** @param {number} node of the page's tree */
  kindlessNode(node) {
    const same = kindlessOf(this.context.tree).node;
    const shown = this.context.shownAt(node);
    return same ? same[shown] ?? 0 : shown;
  }

  /**
   * Shows what the colours mean.
   * @param {Difference} difference
   */
  showRamp(difference) {
    const { noise, scale, thereName, hereName } = difference;
    const swatches = make("span", "swatches");
    for (let part = -1; part <= 1; part += 0.25) {
      const swatch = make("i");
      swatch.style.background = difference.colorsOf(Math.sign(part) * part * part * scale);
      swatches.append(swatch);
    }
    const strongest = `the strongest colours are ${difference.size(scale)} apart`;
    let strength = noise ? `${strongest}; changes within noise are faint` : strongest;
    if (noise && difference.isAllChance()) strength = "every change is within noise, and faint";
    const [less, more] = [thereName, hereName].map((name) => make("bdi", "", `more in ${name}`));
    this.ramp.replaceChildren(less, swatches, more, make("span", "soft", strength));
    this.ramp.hidden = difference.largest === 0;
  }
}

/**
 * How the noise was estimated.
 * @param {Noise} noise
 */
function noteOf({ known, countedAlone, sides }) {
  if (!known) return UNKNOWN;
  const [here, there] = sides.map(({ parts }) => parts);
  const how = countedAlone
    ? "from the number of samples alone; how processes vary is not known with one process of a kind on each side"
    : `from the number of samples and the spread over ${here} and ${there} processes`;
  return `Noise is estimated ${how}. Changes within noise are grey.`;
}
