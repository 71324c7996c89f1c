// @ts-check
/** What kind of work it was: a bar of categories for the whole, each host, stage and process. */

import { filled, linkButton, make } from "../controls/dom.js";
import { isDark } from "../controls/theme.js";
import { percent } from "../data/format.js";
import { categoryLabel, categoryNumber } from "../data/work.js";
import { Coloring } from "../graph/colors.js";

/** @import { Context, View } from "../controls/context.js" */
/** @import { WorkRow } from "../data/page.js" */

const MOST_ROWS_OF_KIND = 100;
const HEADS = { whole: "All", host: "Hosts", stage: "Spark stages", process: "Processes" };

/** @implements {View} */
export class WorkView {
  /**
   * @param {Context} context
   * @param {HTMLElement} panel
   */
  constructor(context, panel) {
    this.context = context;
    this.panel = panel;
    this.drawn = "";
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
    const drawn = `${context.event} ${dark}`;
    if (drawn === this.drawn) return;
    this.drawn = drawn;
    const rows = context.page.summaries[context.event].work ?? [];
    const coloring = new Coloring(dark, "category");
    const color = (/** @type {number} */ category) => coloring.shadesOf(category, [])[2];
    const order = Object.keys(rows[0]?.parts ?? {});
    const note = "Of the whole recording. A category is at least what is shown: inlined code counts for its caller. "
      + "Choose a category to see the flame graph in colours of categories.";
    const sections = Object.entries(HEADS).flatMap(([kind, head]) => {
      const own = rows.filter((row) => row.kind === kind);
      if (own.length === 0) return [];
      const bars = own.slice(0, MOST_ROWS_OF_KIND).map((row) => this.bar(row, order, color));
      const more = own.length > MOST_ROWS_OF_KIND ? [make("p", "lead", `… and ${own.length - MOST_ROWS_OF_KIND} more.`)] : [];
      return [filled("section", "work", make("h2", "", head), ...bars, ...more)];
    });
    panel.replaceChildren(make("p", "lead", rows.length ? note : "Waits are no work: this event has no categories."), ...this.legend(rows[0], color), ...sections);
  }

  /**
   * @param {WorkRow | undefined} whole
   * @param {(category: number) => string} color
   */
  legend(whole, color) {
    if (!whole) return [];
    const items = Object.entries(whole.parts).map(([code, value]) => {
      const category = categoryNumber(code);
      const swatch = make("i");
      swatch.style.background = color(category);
      const label = `${categoryLabel(category)} ${percent(value, whole.total)}`;
      const show = () => this.context.go({ view: "graph", color: "category" });
      return filled("li", "", linkButton(`Flame graph by category`, show, swatch, make("bdi", "", label)));
    });
    return [filled("ul", "work-legend", ...items)];
  }

  /**
   * @param {WorkRow} row
   * @param {string[]} order of the categories, the same in all bars
   * @param {(category: number) => string} color
   */
  bar({ label, scope, slice, total, parts }, order, color) {
    const { context } = this;
    const stage = slice ? context.page.slices.findIndex((one) => one.name === slice) : -1;
    const target = stage >= 0 ? `slice:${stage}` : scope;
    const show = () => context.go({ view: "graph", scope: target, zoom: 0, color: "category" });
    const name = linkButton(`Flame graph of ${label}`, show, make("bdi", "", label));
    const bar = make("div", "bar");
    bar.setAttribute("role", "img");
    const said = [];
    for (const code of order) {
      const value = parts[code] ?? 0;
      if (value === 0) continue;
      const category = categoryNumber(code);
      const part = make("span");
      part.style.width = `${(100 * value) / total}%`;
      part.style.background = color(category);
      part.title = `${categoryLabel(category)} ${percent(value, total)}`;
      said.push(part.title);
      bar.append(part);
    }
    bar.setAttribute("aria-label", said.slice(0, 8).join(", "));
    return filled("div", "row", filled("div", "name", name), bar);
  }
}
