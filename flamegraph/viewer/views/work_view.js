// @ts-check
/** What kind of work it was: a bar of categories for the whole, each host, stage and process, and bars by time. */

import { filled, linkButton, make } from "../controls/dom.js";
import { isDark } from "../controls/theme.js";
import { percent } from "../data/format.js";
import { bandsText, rangeText } from "../data/range.js";
import { transformText } from "../data/transforms.js";
import { categoryCode, categoryCount, categoryNumber } from "../data/work.js";
import { WorkBars } from "./work_bars.js";
import { WorkByTime } from "./work_time.js";

/** @import { Context, View } from "../controls/context.js" */
/** @import { WorkRow } from "../data/page.js" */
/** @import { WorkSums } from "./work_bars.js" */
/** @typedef {{row: WorkRow, sums: WorkSums, total: number}} SummedRow */

const HEADS = { whole: "All", phase: "Phases", host: "Hosts", stage: "Spark stages", process: "Processes" };
const INLINED_NOTE = "A category is at least what is shown: inlined code counts for its caller. ";
const HOW_TO = "Choose a category to see it alone in every view, again to see all. A name leads to its flame graph (not those of phases).";

/** @implements {View} */
export class WorkView {
  /**
   * @param {Context} context
   * @param {HTMLElement} panel
   */
  constructor(context, panel) {
    this.context = context;
    this.panel = panel;
    /** What is drawn. @type {unknown[]} */
    this.drawn = [];
    this.lead = make("p", "lead");
    this.whole = make("div");
    this.parts = make("div");
    this.byTime = new WorkByTime(context);
    panel.replaceChildren(this.lead, this.whole, this.byTime.element, this.parts);
    new ResizeObserver(() => {
      if (!panel.hidden && panel.clientWidth > 0) this.draw(isDark());
    }).observe(panel);
  }

  update() {
    this.draw(isDark());
  }

  /** @param {boolean} dark */
  recolor(dark) {
    this.draw(dark);
  }

  /** @param {boolean} dark */
  draw(dark) {
    const { context, panel } = this;
    const { event, thread, category, scope, state } = context;
    const drawn = [event, thread, category, scope.key, state.time, state.band, state.changes, dark, panel.clientWidth];
    if (drawn.every((one, at) => one === this.drawn[at])) return;
    this.drawn = drawn;
    const rows = this.rows();
    this.lead.textContent = rows.length ? `${this.what()} ${rows[0].row.inlined ? INLINED_NOTE : ""}${HOW_TO}` : this.nothing();
    this.whole.hidden = this.byTime.element.hidden = this.parts.hidden = rows.length === 0;
    if (rows.length === 0) return;
    const [{ sums, total }] = rows;
    const bars = new WorkBars(context.categoryColoring(dark), sums, category, panel.clientWidth);
    this.byTime.show(bars, dark, panel.clientWidth);
    const [all, ...sections] = Object.entries(HEADS).map(([kind, head]) => this.section(head, rows.filter(({ row }) => row.kind === kind), bars, total));
    const legend = bars.legend((one) => percent(sums[one], total), (one) => context.go({ category: one === category ? "" : categoryCode(one) }));
    this.whole.replaceChildren(legend, ...all);
    this.parts.replaceChildren(...sections.flat());
  }

  /** What the bars are of. */
  what() {
    const { page, thread, range, bands, transforms, source } = this.context;
    const times = [
      range && rangeText(range), bands && `${bandsText(bands)} each`, thread >= 0 && `threads ${page.threads[thread]}`,
      ...transforms.map((transform) => transformText(transform, source)),
    ];
    return `Of ${times.filter(Boolean).join(", ") || "the whole recording"}.`;
  }

  /** Why there are no bars. */
  nothing() {
    const { page, event } = this.context;
    return page.summaries[event].work?.length ? "No samples here." : "Waits are no work: this event has no categories.";
  }

  /**
   * The whole first, then the others, those that cost most first.
   * @returns {SummedRow[]}
   */
  rows() {
    const { page, event, thread, inTime, state, scopes, transforms } = this.context;
    const partly = inTime || thread >= 0 || transforms.length > 0;
    const numbers = this.context.numbersOf(state.time, -1);
    const rows = (page.summaries[event].work ?? []).map((row) => {
      const sums = new Float64Array(categoryCount());
      if (partly && row.kind === "phase") return { row, sums, total: 0 }; // known of the whole recording only
      if (partly) {
        const scope = scopes.parse(this.keyOf(row));
        if (scope) sums.set(numbers.workOf(numbers.columns(scope, event, thread)));
      } else for (const [code, value] of Object.entries(row.parts)) sums[categoryNumber(code)] += value;
      return { row, sums, total: sums.reduce((sum, one) => sum + one, 0) };
    });
    return rows.filter(({ total }) => total > 0).sort((a, b) => Number(b.row.kind === "whole") - Number(a.row.kind === "whole") || b.total - a.total);
  }

  /**
   * The key of a row's scope.
   * @param {WorkRow} row
   */
  keyOf({ scope, slice }) {
    return slice ? `slice:${this.context.page.slices.findIndex((one) => one.name === slice)}` : scope;
  }

  /**
   * @param {string} head
   * @param {SummedRow[]} rows
   * @param {WorkBars} bars
   * @param {number} whole
   */
  section(head, rows, bars, whole) {
    const { context } = this;
    if (rows.length === 0) return [];
    const made = rows.map(({ row, sums, total }) => {
      if (row.kind === "phase") return bars.row(make("bdi", "", row.label), sums, (category) => context.go({ category: categoryCode(category) }));
      const target = { view: /** @type {const} */ ("graph"), scope: this.keyOf(row), zoom: 0, color: /** @type {const} */ ("category") };
      const name = linkButton(`Flame graph of ${row.label}`, () => context.go(target), make("bdi", "", row.label));
      // A bar of a few samples is as wide as the others.
      const share = make("span", "soft", row.kind === "whole" ? "" : ` ${percent(total, whole)}`);
      return bars.row(filled("span", "", name, share), sums, (category) => context.go({ ...target, category: categoryCode(category) }));
    });
    const left = rows[0].row.more ?? 0;
    const more = left ? [make("p", "lead", `… and ${left} more, which had less over the whole recording.`)] : [];
    return [filled("section", "work", make("h2", "", head), ...made, ...more)];
  }
}
