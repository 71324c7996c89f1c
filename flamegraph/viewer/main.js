// @ts-check
/** Where the page's script begins. A page without data (nothing was recorded) needs none. */

import { make, part } from "./controls/dom.js";
import { Explorer } from "./controls/explorer.js";
import { loadTree, readPage } from "./data/page.js";
import { INITIAL } from "./data/state.js";

/** Shows the page, or says why it cannot be shown, above the still pictures. */
async function start() {
  try {
    const page = readPage();
    if (!page) {
      part("explorer", HTMLElement).hidden = true;
      return;
    }
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

/** Takes the pictures out of what a browser that runs scripts passes over. */
export function showStill() {
  for (const skipped of document.querySelectorAll("noscript.still-picture")) {
    const written = new DOMParser().parseFromString(skipped.textContent ?? "", "text/html").querySelector("img");
    if (!written) continue;
    const picture = document.createElement("img");
    picture.src = written.src;
    picture.alt = written.alt;
    const figure = make("figure", "still");
    figure.append(picture);
    skipped.replaceWith(figure);
  }
}
