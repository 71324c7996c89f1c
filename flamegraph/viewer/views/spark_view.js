// @ts-check
/** What Spark knows of the application: its time, stages, blocked time, stragglers, executors, queries. */

import { make } from "../controls/dom.js";
import { listOf, Sections } from "./sections.js";

/** @import { Context, View } from "../controls/context.js" */

/** @implements {View} */
export class SparkView {
  /**
   * @param {Context} context
   * @param {HTMLElement} panel
   */
  constructor(context, panel) {
    const { job, slices } = context.page;
    if (!job) return;
    const sections = new Sections(job.sections, (key) => {
      const index = slices.findIndex(({ name }) => name === key);
      const act = () => context.go({ view: "graph", scope: `slice:${index}`, zoom: 0 });
      return index < 0 ? null : { text: "flame graph", act };
    });
    panel.append(...job.headline.map((line) => make("p", "lead", line)), ...listOf(job.findings), sections.element);
  }

  update() {}
}
