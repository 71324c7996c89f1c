// @ts-check
/** Categories of work by time: a stacked bar for each step of time, of what is chosen. */

import { filled, make } from "../controls/dom.js";
import { percent } from "../data/format.js";
import { formatRange, rangeText } from "../data/range.js";
import { countCategories } from "../data/time_grid.js";
import { categoryCount, categoryLabel } from "../data/work.js";
import { hideTooltip, showTip } from "../graph/frame_details.js";
import { CellMap } from "../heat/cell_map.js";
import { timeAxis } from "../heat/time_axis.js";
import { perSecondText } from "./time_view.js";

/** @import { Context } from "../controls/context.js" */
/** @import { TimeGrid } from "../data/time_grid.js" */
/** @import { TooltipRow } from "../graph/frame_details.js" */
/** @import { WorkBars, WorkSums } from "./work_bars.js" */

/** In pixels. */
const [NARROW_BAR, WIDE_BAR, BARS_TALL] = [10, 60, 160];
const MOST_IN_TIP = 8;

export class WorkByTime {
  /** @param {Context} context */
  constructor(context) {
    this.context = context;
    this.head = make("h2");
    this.note = make("p", "time-note");
    this.note.setAttribute("aria-live", "polite");
    this.map = new CellMap("work-time", "Work by time", {
      select: (from, to) => {
        const range = this.grid?.rangeOfColumns(from.column, to.column);
        hideTooltip();
        if (range) context.go({ time: formatRange(range), time2: "" });
      },
      point: (cell, x, y) => (cell ? this.tip(cell.column, x, y) : hideTooltip()),
      walk: (from, to) => this.describe(from.column, to.column),
      clear: () => context.clearTime(),
    });
    this.element = filled("section", "work", this.head, this.map.element, this.note);
    /** @type {TimeGrid | null} */
    this.grid = null;
    /** By column of the grid and category. @type {WorkSums} */
    this.sums = new Float64Array(0);
    /** What they are of. @type {unknown[]} */
    this.counted = [];
  }

  /**
   * @param {WorkBars} bars
   * @param {boolean} dark
   * @param {number} width in pixels
   */
  show(bars, dark, width) {
    const { context } = this;
    const { page, scope, scopes, event, thread, range, recorded, times } = context;
    const columns = recorded.columns(scope, event, thread);
    const known = page.time !== null && columns.some(({ column }) => context.source.times.has(column));
    this.element.hidden = !known;
    if (!known || !page.time) return;
    const { grid, columnWidth, ticks } = timeAxis(page.time, width, NARROW_BAR, WIDE_BAR);
    const count = categoryCount();
    const counted = [scope.key, event, thread, recorded, grid.columns];
    if (counted.some((one, at) => one !== this.counted[at])) {
      const chosen = (/** @type {number} */ column) => recorded.chosenIn(column);
      this.sums = countCategories(times, columns, grid, (column) => recorded.categoriesIn(column), count, chosen);
      this.counted = counted;
    }
    this.grid = grid;
    const totals = Array.from({ length: grid.columns }, (_, column) => this.ofColumns(column, column).reduce((sum, one) => sum + one, 0));
    const highest = Math.max(...totals);
    const color = dark ? "#ffffff" : "#16191d";
    this.map.show({
      columns: grid.columns, rows: 1, rowHeight: BARS_TALL, columnWidth, ticks, inTime: true, dark,
      labels: [[1, perSecondText(context, highest, grid.span)]],
      color: () => "",
      pieces: (column) => bars.order.map((category) => [this.sums[column * count + category] / (highest || 1), bars.colorOf(category)]),
    }, range ? [{ from: range.from / grid.span, to: range.to / grid.span, color }] : []);
    this.head.textContent = scope.key === scopes.whole.key ? "By time" : `By time: ${scope.label}`;
    this.note.textContent = range ? `Shown in all views: ${rangeText(range)}.` : "Drag over bars to see that range alone in every view.";
  }

  /**
   * Of two columns and those between, by category.
   * @param {number} one
   * @param {number} other
   */
  ofColumns(one, other) {
    const sums = new Float64Array(categoryCount());
    for (let column = Math.min(one, other); column <= Math.max(one, other); column++) {
      for (let category = 0; category < sums.length; category++) sums[category] += this.sums[column * sums.length + category];
    }
    return sums;
  }

  /**
   * The largest categories of columns, and their shares.
   * @param {number} one
   * @param {number} other
   * @returns {TooltipRow[]}
   */
  largest(one, other) {
    const sums = this.ofColumns(one, other);
    const total = sums.reduce((sum, value) => sum + value, 0);
    const found = [...sums.keys()].filter((category) => sums[category] > 0).sort((a, b) => sums[b] - sums[a]);
    return found.slice(0, MOST_IN_TIP).map((category) => [categoryLabel(category), percent(sums[category], total)]);
  }

  /**
   * @param {number} column
   * @param {number} x client pixels
   * @param {number} y client pixels
   */
  tip(column, x, y) {
    const range = this.grid?.rangeOfColumns(column, column);
    if (range) showTip(rangeText(range), this.largest(column, column), x, y);
  }

  /**
   * Describes what the keys' cursor is on.
   * @param {number} one column
   * @param {number} other
   */
  describe(one, other) {
    const range = this.grid?.rangeOfColumns(one, other);
    const words = this.largest(one, other).map(([label, share]) => `${label} ${share}`).join(", ");
    if (range) this.note.textContent = `${rangeText(range)}: ${words || "no samples"}. Enter selects.`;
  }
}
