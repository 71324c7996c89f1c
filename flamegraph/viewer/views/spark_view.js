// @ts-check
/** What Spark knows of the application: its stages, blocked time, stragglers, executors. */

import { filled, linkButton, make, staticTable } from "../controls/dom.js";
import { grouped } from "../data/format.js";

/** @import { Context, View } from "../controls/context.js" */
/** @import { Job } from "../data/page.js" */

/** @implements {View} */
export class SparkView {
  /**
   * @param {Context} context
   * @param {HTMLElement} panel
   */
  constructor(context, panel) {
    const { job } = context.page;
    if (!job) return;
    const headline = job.headline.map((line) => make("p", "lead", line));
    const sections = job.sections.map(({ title, text }) => {
      const lines = make("pre", "", text);
      lines.tabIndex = 0; // wide ones scroll
      return filled("section", "", make("h2", "", title), lines);
    });
    const stages = job.stages.length ? [stageSection(context, job)] : [];
    panel.append(...headline, ...stages, ...sections);
  }

  update() {}
}

/**
 * The stages; the name of one that has samples leads to its flame graph.
 * @param {Context} context
 * @param {Job} job
 */
function stageSection(context, { heads, stages, more_stages: more }) {
  const { slices } = context.page;
  const rows = stages.map(({ slice, cells: [name, ...cells] }) => {
    const index = slices.findIndex((one) => one.name === slice);
    const show = () => context.go({ view: "graph", scope: `slice:${index}`, zoom: 0 });
    const link = index < 0 ? make("bdi", "", name) : linkButton(`Flame graph of ${slice}`, show, make("bdi", "", name));
    return [filled("td", "name", link), ...cells.map((cell) => make("td", "number", cell))];
  });
  /** @type {[string, string][]} */
  const columns = heads.map((head, at) => [head, at ? "number" : ""]);
  const table = staticTable("stages", columns, rows);
  const rest = more ? [make("p", "lead", `… and ${grouped(more)} more stages.`)] : [];
  return filled("section", "", make("h2", "", "Stages by the time of their tasks"), table, ...rest);
}
