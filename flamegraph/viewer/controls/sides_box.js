// @ts-check
/** What is compared with what, in shares or in amounts. */

import { sampledHosts } from "../data/page.js";
import { rangeText } from "../data/range.js";
import { Combobox } from "./combobox.js";
import { filled, make } from "./dom.js";

/** @import { Numbers } from "../data/numbers.js" */
/** @import { Scope } from "../data/scopes.js" */
/** @import { State } from "../data/state.js" */
/** @import { Option } from "./combobox.js" */
/** @import { Context } from "./context.js" */

/**
 * What is compared, and with what: scopes, each in a part of the recording, and what they are called.
 * @typedef {{one: Scope, another: Scope, here: Numbers, there: Numbers, oneName: string, anotherName: string}} Pair
 */

/**
 * @param {Context} context
 * @param {Scope} scope what is compared
 * @returns {Option[]}
 */
function othersOf(context, scope) {
  const { page, scopes, event, thread, otherRange } = context;
  const numbers = otherNumbers(context);
  const known = scopes.threadsOf(event);
  const threads = known.length < 2 ? [] : page.runs.flatMap((_, run) => known.map((one) => scopes.parse(`${run}/thread:${one}`)));
  return [scopes.restOf(scope), ...scopes.all(), ...threads]
    .filter((one) => one !== null)
    .filter((one) => (otherRange || one.key !== scope.key) && numbers.amounts(one, event, thread).amount > 0)
    .map(({ key, label, section }) => ({ id: key, label, section: section || page.title }));
}

/**
 * The numbers of what is compared with: of the second range, or the same range.
 * @param {Context} context
 */
function otherNumbers(context) {
  return context.otherRange ? context.numbersOf(context.state.time2) : context.numbers;
}

/**
 * The scope in two ranges; the scope with the same of the other run; a part of the cluster with the rest; for the cluster the host that is least
 * like the others with them.
 * @param {Context} context
 * @returns {(Scope | null)[]}
 */
function likelyPair({ page, scopes, scope, event, otherRange }) {
  if (otherRange) return [scope, scope];
  if (page.runs.length > 1) {
    // By name, or else all of it.
    const run = scope.run ? 0 : 1;
    const name = scope.kind === "host" ? page.hosts[scope.index].name : null;
    const host = page.hosts.findIndex((one) => one.run === run && one.name === name);
    const same = host >= 0 ? `host:${host}` : scopes.keyOf({ ...scope, run });
    const alike = host >= 0 || !["host", "process", "rest"].includes(scope.kind);
    return [scope, (alike ? scopes.parse(same) : null) ?? scopes.sumOfRun(run)];
  }
  if (scope.kind !== "sum" && scope.kind !== "mean") {
    return [scope, scopes.restOf(scope) ?? scope.of ?? scopes.sumOfRun(scope.run)];
  }
  const ranked = sampledHosts(page, event);
  const far = (/** @type {typeof ranked[number]} */ { unlike }) =>
    unlike ? (unlike.outlier ? 1e6 : 0) + unlike.divergence / (unlike.noise || 1) : 0;
  const least = ranked.reduce((most, one) => (far(one) > far(most) ? one : most), ranked[0])?.host ?? 0;
  const part = scopes.parse(scopes.hostsOf(scope.run) > 1 ? `host:${least}` : "process:0");
  return [part, scopes.restOf(part)];
}

export class SidesBox {
  /** @param {Context} context */
  constructor(context) {
    this.context = context;
    this.first = make("b");
    const swap = make("button", "", "Swap");
    swap.id = "compare-swap";
    const measure = (/** @type {string} */ label, /** @type {string} */ title, /** @type {boolean} */ normalize) => {
      const button = make("button", "", label);
      button.title = title;
      button.addEventListener("click", () => context.set({ normalize }));
      return button;
    };
    this.shares = measure("Shares", "Each side as a share of its own total", true);
    this.amounts = measure("Amounts", "Totals of each side", false);
    const choice = make("div");
    choice.id = "compare-with";
    const measures = filled("div", "switch", this.shares, this.amounts);
    measures.id = "compare-measure";
    measures.setAttribute("role", "group");
    measures.setAttribute("aria-label", "What is compared");
    this.element = filled("div", "controls", this.first, make("span", "soft", "compared with"), choice, swap, measures);
    const options = () => othersOf(context, this.pair()?.one ?? context.scope);
    this.box = new Combobox(choice, "Compared with", options, (id) => this.go(this.pair()?.one, id));
    swap.addEventListener("click", () => {
      const pair = this.pair();
      const { time, time2 } = context.state;
      this.go(pair?.another, pair?.one.key ?? "", time2 ? { time: time2, time2: time } : {});
    });
  }

  /** @returns {Pair | null} null where there is nothing to compare with */
  pair() {
    const { context } = this;
    const { scope, scopes, state, event, thread, range, otherRange } = context;
    const there = otherNumbers(context);
    const asked = state.with ? scopes.parse(state.with) : null;
    const fits = asked && (otherRange || asked.key !== scope.key) && there.amounts(asked, event, thread).amount > 0;
    const [one, another] = fits ? [scope, asked] : likelyPair(context);
    if (!one || !another || (one.key === another.key && !otherRange)) return null;
    // Of one scope the ranges are enough.
    const names = [one, another].map(({ label }, at) => {
      if (!otherRange) return label;
      const when = at ? rangeText(otherRange) : range ? rangeText(range) : "the whole recording";
      return one.key === another.key ? when : `${label}, ${when}`;
    });
    return { one, another, here: context.numbers, there, oneName: names[0], anotherName: names[1] };
  }

  /**
   * @param {Scope | undefined} one
   * @param {string} another
   * @param {Partial<State>} [change]
   */
  go(one, another, change) {
    if (one) this.context.go({ scope: this.context.addressOf(one.key), with: another, ...change });
  }

  /**
   * @param {Pair} pair
   * @param {State} state
   */
  show({ another, oneName, anotherName }, state) {
    this.first.replaceChildren(make("bdi", "", oneName));
    this.box.show(another.key, anotherName);
    this.shares.setAttribute("aria-pressed", String(state.normalize));
    this.amounts.setAttribute("aria-pressed", String(!state.normalize));
  }
}
