// @ts-check
/**
 * What an answer has beside the profile. Of Spark: its time, stages, blocked time, stragglers, executors, queries. Of
 * dumps: groups of threads, locks, texts.
 */

import { make } from "../controls/dom.js";
import { listOf, Sections } from "./sections.js";
import { queryOf } from "./summary.js";

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
    const methods = new Map(Object.entries(job.methods ?? {}));
    const sections = new Sections(job.sections, (key) => {
      const method = queryOf(methods.get(key) ?? "");
      if (method) return { text: "flame graph", act: () => context.go({ view: "graph", q: method, zoom: 0 }) };
      const index = slices.findIndex(({ name }) => name === key);
      const act = () => context.go({ view: "graph", scope: `slice:${index}`, zoom: 0 });
      return index < 0 ? null : { text: "flame graph", act };
    });
    panel.append(...job.headline.map((line) => make("p", "lead", line)), ...listOf(job.findings), sections.element);
  }

  update() {}
}
