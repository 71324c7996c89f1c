// @ts-check
/** Where the page's script begins. */

import { part } from "./controls/dom.js";
import { Explorer } from "./controls/explorer.js";
import { Folds } from "./controls/tabs.js";
import { startTheme } from "./controls/theme.js";
import { loadTree, readPage } from "./data/page.js";
import { INITIAL, parseHash } from "./data/state.js";
import { setFrameRules } from "./data/work.js";
import { HostsTable } from "./views/hosts_view.js";
import { runSection } from "./views/run_view.js";
import { Summaries } from "./views/summary.js";

/** @import { PageInfo } from "./data/page.js" */

/** Shows the page, or an error. The findings are shown before the tree is read. */
async function start() {
  const root = document.documentElement;
  try {
    const page = readPage();
    setFrameRules(() => part("frame-rules", HTMLScriptElement).textContent ?? "", page.rules ?? []);
    part("title", HTMLElement).textContent = page.title;
    // The page of two runs begins with the comparison.
    if (page.runs.length > 1) INITIAL.view = "compare";
    const folds = new Folds();
    const summaries = new Summaries(page);
    const { event } = parseHash(location.hash);
    summaries.show(Math.max(0, page.events.findIndex(({ name }) => name === event)));
    try {
      if (page.data) {
        root.classList.add("live");
        new Explorer(page, await loadTree(page), folds, summaries);
      } else {
        part("explorer", HTMLElement).hidden = true;
        startTheme(() => {});
        showTables(page, folds, summaries);
      }
    } catch (error) {
      showTables(page, folds, summaries);
      throw error;
    }
  } catch (error) {
    root.classList.remove("live");
    const failure = part("failure", HTMLParagraphElement);
    failure.textContent = `This page cannot be shown: ${error instanceof Error ? error.message : error}`;
    failure.hidden = false;
  }
  root.dataset.ready = "true";
}

/**
 * Shows findings, hosts and run, without views.
 * @param {PageInfo} page
 * @param {Folds} folds
 * @param {Summaries} summaries
 */
function showTables(page, folds, summaries) {
  summaries.showAll();
  const main = part("explorer", HTMLElement).parentElement;
  page.events.forEach((_, event) => {
    if (!page.summaries[event].hosts) return;
    const table = new HostsTable(page, null, `hosts-${event}`);
    table.show(event, "", 0);
    main?.append(table.element);
  });
  if (page.run) main?.append(runSection(page.run, folds));
}

void start();
