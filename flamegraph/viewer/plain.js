// @ts-check
/** Where the script of a page without a profile begins: a headline, and sections of tables and charts. */

import { make, part } from "./controls/dom.js";
import { startTheme } from "./controls/theme.js";
import { listOf, Sections } from "./views/sections.js";

/** @import { Section } from "./data/page.js" */

/** Shows the page, or an error. */
function start() {
  startTheme(() => {});
  try {
    /** The first line is the heading. @type {{title: string, headline: string[], findings: string[], sections: Section[]}} */
    const page = JSON.parse(part("hprofiler-page", HTMLScriptElement).textContent ?? "");
    const [heading, ...lines] = page.headline;
    part("title", HTMLElement).textContent = page.title;
    const sections = new Sections(page.sections, () => null);
    const answer = part("answer", HTMLElement);
    answer.append(make("h1", "", heading.replace(/\.$/, "")), ...lines.map((line) => make("p", "second", line)), ...listOf(page.findings), sections.element);
  } catch (error) {
    const failure = part("failure", HTMLParagraphElement);
    failure.textContent = `This page cannot be shown: ${error instanceof Error ? error.message : error}`;
    failure.hidden = false;
  }
  document.documentElement.dataset.ready = "true";
}

start();
