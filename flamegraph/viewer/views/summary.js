// @ts-check
/** The summary of an event: findings above the views. */

import { filled, linkButton, make, part } from "../controls/dom.js";
import { shortName } from "../data/format.js";
import { formatHash, INITIAL } from "../data/state.js";
import { nameElement } from "../graph/frame_details.js";

/** @import { Finding, PageInfo } from "../data/page.js" */
/** @import { State } from "../data/state.js" */

/** Some browsers refuse longer links. */
const LONGEST_LINK = 300;

/** Each event's sections, made when the event is first shown. */
export class Summaries {
  /** @param {PageInfo} page */
  constructor(page) {
    this.page = page;
    /** @type {Map<number, {head: HTMLElement, ofAll: HTMLElement}>} */
    this.made = new Map();
  }

  /**
   * @param {number} event
   * @param {boolean} [chosen] whether less than the whole run is shown, which all that is said here is of
   */
  show(event, chosen = false) {
    if (!this.made.has(event)) this.made.set(event, this.make(event));
    for (const [at, { head, ofAll }] of this.made) {
      head.hidden = at !== event;
      ofAll.classList.toggle("said", chosen);
    }
  }

  /** Shows the findings of all events, on a page where no event can be chosen. */
  showAll() {
    this.page.events.forEach((_, event) => this.show(event));
    for (const { head } of this.made.values()) head.hidden = false;
  }

  /** @param {number} event */
  make(event) {
    const { page } = this;
    const { findings, second, chips, empty } = page.summaries[event];
    const { name } = page.events[event];
    const [answer, ...others] = findings;
    const ofAll = make("p", "of-all", "Whole run:");
    const header = filled("header", "", ofAll);
    header.append(empty || !answer ? make("h1", "", empty?.answer ?? "") : answerOf(answer, name));
    header.append(moreButton(header));
    if (second) header.append(make("p", "second", second));
    if (others.length) {
      const items = others.map((one) => {
        const method = one.method ?? "";
        const link = make("bdi", "method", shortName(method));
        link.title = method;
        const query = linkTo({ event: name, q: queryOf(method) }, link);
        return filled("li", "", ...one.parts.map(([kind, text]) => (kind === "method" ? query : text)));
      });
      header.append(filled("ul", "findings", ...items));
    }
    const facts = chips.map(({ text, partial }) => filled("li", partial ? "partial" : "", make("b", "", text)));
    header.append(filled("ul", "chips", ...facts));
    const head = filled("section", "of-event", header, ...(empty ? [reasonsOf(empty)] : []));
    head.dataset.event = String(event);
    (page.data ? part("tools", HTMLDivElement) : part("explorer", HTMLElement)).before(head);
    return { head, ofAll };
  }
}

/**
 * The sentence as a heading, without its full stop.
 * @param {Finding} finding
 * @param {string} event
 */
function answerOf({ method, parts }, event) {
  return filled("h1", "", ...parts.map(([kind, text], at) => {
    if (kind === "method") {
      const link = linkTo({ event, q: queryOf(method ?? "") }, nameElement(method ?? ""));
      link.dataset.method = method ?? "";
      link.title = "Zoom to its widest frame";
      return link;
    }
    if (kind === "share") return make("span", "hot", text);
    return at === parts.length - 1 ? text.replace(/\.$/, "") : text;
  }));
}

/**
 * Where only the headline is seen: it shows and hides the rest.
 * @param {HTMLElement} header
 */
function moreButton(header) {
  const button = linkButton("All findings of the whole run", () => {
    const all = header.classList.toggle("all");
    button.textContent = all ? "less" : "more";
    button.setAttribute("aria-expanded", String(all));
  }, "more");
  button.classList.add("more-findings");
  button.setAttribute("aria-expanded", "false");
  return button;
}

/** @param {import("../data/page.js").Empty} empty why there are no samples */
function reasonsOf({ why, reasons, remedy }) {
  const lines = reasons.map(({ hosts, more, text, remedy }) => {
    const line = filled(why ? "li" : "p", "", ...hosts.flatMap((host, at) => [at ? ", " : "", make("bdi", "", host)]));
    line.append(hosts.length ? `${more ? ` and ${more} more` : ""}: ` : "", text);
    if (remedy) line.append(" ", make("span", "remedy", remedy));
    return line;
  });
  const section = filled("section", "empty", ...(why ? [make("p", "", why), filled("ul", "", ...lines)] : lines));
  if (remedy) section.append(make("p", "remedy", remedy));
  return section;
}

/**
 * @param {Partial<State>} state
 * @param {...HTMLElement} content
 */
export function linkTo(state, ...content) {
  const link = document.createElement("a");
  link.href = formatHash({ ...INITIAL, ...state });
  link.append(...content);
  return link;
}

/**
 * What to search for to find a method, "" for a name that is too long.
 * @param {string} method
 */
export function queryOf(method) {
  return method && method.length <= LONGEST_LINK ? `"${method}"` : "";
}
