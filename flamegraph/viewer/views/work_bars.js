// @ts-check
/** Bars of categories of work, and what their colours mean. */

import { filled, linkButton, make } from "../controls/dom.js";
import { percent } from "../data/format.js";
import { categoryLabel } from "../data/work.js";

/** @import { Coloring } from "../graph/colors.js" */
/** Costs by number of category. @typedef {Float64Array} WorkSums */

/** A bar's part of its panel, and the width of a letter in pixels: both about right. */
const [BAR_OF_PANEL, LETTER] = [0.74, 7];

export class WorkBars {
  /**
   * @param {Coloring} coloring of categories
   * @param {WorkSums} sums of everything: the largest category is first in all bars, "other" last
   * @param {number} chosen the category that is shown alone, -1 for none
   * @param {number} width of the panel that they are in, in pixels
   */
  constructor(coloring, sums, chosen, width) {
    this.coloring = coloring;
    this.chosen = chosen;
    this.room = width * BAR_OF_PANEL;
    this.order = [...sums.keys()].filter((one) => sums[one] > 0);
    this.order.sort((a, b) => Number(a === 0) - Number(b === 0) || sums[b] - sums[a] || a - b);
  }

  /** @param {number} category */
  colorOf(category) {
    const { coloring, chosen } = this;
    return chosen < 0 || chosen === category ? coloring.shadesOf(category, [])[2] : coloring.rest;
  }

  /**
   * @param {HTMLElement} name
   * @param {WorkSums} sums
   * @param {(category: number) => void} choose what a click on a category does
   */
  row(name, sums, choose) {
    const bar = make("div", "bar");
    bar.setAttribute("role", "img");
    const total = sums.reduce((sum, one) => sum + one, 0);
    const words = [];
    for (const category of this.order.filter((one) => sums[one] > 0)) {
      const piece = make("span");
      piece.style.width = `${(100 * sums[category]) / total}%`;
      const color = this.colorOf(category);
      const label = categoryLabel(category);
      piece.style.background = color;
      if ((label.length + 2) * LETTER < (sums[category] / total) * this.room) {
        piece.textContent = label;
        piece.style.color = this.coloring.inkOn(color).text;
      }
      piece.title = `${label} ${percent(sums[category], total)}`;
      piece.addEventListener("click", () => choose(category));
      words.push(piece.title);
      bar.append(piece);
    }
    bar.setAttribute("aria-label", words.slice(0, 8).join(", "));
    return filled("div", "row", filled("div", "name", name), bar);
  }

  /**
   * @param {(category: number) => string} text what is said of each category
   * @param {(category: number) => void} choose what a click on one does
   */
  legend(text, choose) {
    const items = this.order.map((category) => {
      const swatch = make("i");
      swatch.style.background = this.colorOf(category);
      const label = make("bdi", "", `${categoryLabel(category)} ${text(category)}`);
      const button = linkButton("Only this category, in every view; again: all", () => choose(category), swatch, label);
      button.setAttribute("aria-pressed", String(category === this.chosen));
      return filled("li", "", button);
    });
    return filled("ul", "work-legend", ...items);
  }
}
