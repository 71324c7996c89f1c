// @ts-check
/** What is printed: the view that is shown, the flame graph below a view of tables, then the tables of the whole run. */

import { MOST_ROWS } from "../data/state.js";
import { showLegend } from "../graph/colors.js";
import { part } from "./dom.js";

/** @import { ViewName } from "../data/state.js" */
/** @import { Context } from "./context.js" */
/** @import { Explorer } from "./explorer.js" */

/**
 * Lays the page out for paper: all rows of the graphs that are seen, in light colours.
 * @param {Explorer} explorer
 * @param {boolean} tables whether the view that is shown has no graph
 */
export function layOnPaper(explorer, tables) {
  const { context } = explorer;
  const { state, active } = context;
  for (const view of /** @type {ViewName[]} */ (["hosts", "run"])) {
    if (view === explorer.view || !context.has(view)) continue;
    explorer.viewOf(view).view.update({ ...state, sort: "", rows: MOST_ROWS });
  }
  if (tables) {
    markBeside(true);
    explorer.viewOf("graph").view.update(state);
  }
  context.active = active;
  const coloring = context.coloring(false);
  part("printed", HTMLParagraphElement).textContent = printedText(context);
  if (explorer.view) explorer.viewOf(explorer.view).view.recolor?.(false);
  for (const graph of context.graphs) {
    graph.recolor(coloring);
    if (graph.seen) graph.unroll(true);
  }
  showLegend(context.profile, coloring);
}

/**
 * @param {Context} context
 * @param {boolean} tables
 */
export function takeFromPaper({ graphs }, tables) {
  if (tables) markBeside(false);
  for (const graph of graphs) if (graph.sheet.unrolled) graph.unroll(false);
}

/** @param {boolean} beside whether the flame graph stands below a view of tables */
function markBeside(beside) {
  for (const element of [part("graph-panel", HTMLDivElement), part("legend", HTMLUListElement)]) {
    element.hidden = !beside;
    element.classList.toggle("beside", beside);
  }
}

/** @param {Context} context */
function printedText(context) {
  const { page, scope, event, thread, state } = context;
  const threads = thread >= 0 ? `, threads ${page.threads[thread]}` : "";
  const shown = [`${scope.label}${threads}`, context.part, context.idleHidden].filter(Boolean).join(", ");
  const sentences = [`Shown: ${page.events[event].title} of ${shown}.`];
  const others = page.events.filter((_, at) => at !== event).map(({ title }) => title);
  if (others.length) sentences.push(`Not printed: ${others.join(", ")}.`);
  if (state.q) sentences.push(`Marked: ${state.q}, ${part("search-result", HTMLOutputElement).textContent}.`);
  return sentences.join(" ");
}
