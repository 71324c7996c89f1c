// @ts-check
/** What is printed: the view that is shown, the flame graph below a view of tables, and a line that says what they are of. */

import { Coloring, showLegend } from "../graph/colors.js";
import { part } from "./dom.js";

/** @import { Context } from "./context.js" */

/**
 * All rows of the graphs that are seen, in light colours.
 * @param {Context} context
 * @param {boolean} beside whether the flame graph stands below a view of tables
 */
export function layOnPaper(context, beside) {
  const coloring = new Coloring(false, context.state.color);
  part("printed", HTMLParagraphElement).textContent = printedText(context);
  for (const graph of context.graphs) {
    graph.recolor(coloring);
    if (graph.seen) graph.unroll(true);
  }
  showLegend(context.profile, coloring);
  markBeside(beside);
}

/** @param {Context} context */
export function takeFromPaper(context) {
  markBeside(false);
  for (const graph of context.graphs) if (graph.sheet.unrolled) graph.unroll(false);
}

/** @param {boolean} beside */
function markBeside(beside) {
  part("graph-panel", HTMLDivElement).classList.toggle("beside", beside);
  part("legend", HTMLUListElement).classList.toggle("beside", beside);
}

/** @param {Context} context */
function printedText({ page, scope, event, thread, state }) {
  const threads = thread >= 0 ? `, threads ${page.threads[thread]}` : "";
  const sentences = [`Shown: ${page.events[event].title} of ${scope.label}${threads}.`];
  const others = page.events.filter((_, at) => at !== event).map(({ title }) => title);
  if (others.length) sentences.push(`Printed by themselves: ${others.join(", ")}.`);
  if (state.query) sentences.push(`Marked: ${state.query}, ${part("search-result", HTMLOutputElement).textContent}.`);
  return sentences.join(" ");
}
