// @ts-check
/** Where the page's script begins. A page without data (nothing was recorded) needs none. */

import { loadTree, readPage } from "./data.js";
import { part } from "./dom.js";
import { Explorer } from "./explorer.js";
import { INITIAL } from "./state.js";
import { showStill } from "./still.js";

/** Shows the page, or says why it cannot be shown, above the still pictures. */
async function start() {
  try {
    const page = readPage();
    if (!page) return;
    document.documentElement.classList.add("live");
    // A page of two runs is there to compare them.
    if (page.runs.length > 1) INITIAL.view = "compare";
    new Explorer(page, await loadTree(page)).start();
  } catch (error) {
    document.documentElement.classList.remove("live");
    const failure = part("failure", HTMLParagraphElement);
    failure.textContent = `This picture cannot be shown: ${error instanceof Error ? error.message : error}`;
    failure.hidden = false;
    showStill();
  }
  document.documentElement.dataset.ready = "true";
}

void start();
