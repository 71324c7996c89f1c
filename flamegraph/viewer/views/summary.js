// @ts-check
/** The summary of an event: findings above the views, the hottest methods below them. */

import { filled, linkButton, make, part, staticTable } from "../controls/dom.js";
import { percent, shortName } from "../data/format.js";
import { formatHash, INITIAL } from "../data/state.js";
import { nameElement } from "../graph/frame_details.js";
import { barOf } from "./table.js";

/** @import { Folds } from "../controls/tabs.js" */
/** @import { Finding, Hottest, MethodNumbers, PageInfo } from "../data/page.js" */
/** @import { State } from "../data/state.js" */

/** Some browsers refuse longer links. */
const LONGEST_LINK = 300;
/** With more hosts there are no cells; with more than the second number no space between cells. */
const MOST_CELLS = 100;
const MOST_SPACED = 40;

/** Each event's sections, made when the event is first shown. */
export class Summaries {
  /**
   * @param {PageInfo} page
   * @param {Folds} folds
   */
  constructor(page, folds) {
    this.page = page;
    this.folds = folds;
    /** @type {Map<number, {head: HTMLElement, ofAll: HTMLElement, hottest: HTMLElement | null}>} */
    this.made = new Map();
  }

  /**
   * @param {number} event
   * @param {boolean} first whether the page's first view is shown
   * @param {boolean} [chosen] whether less than the whole run is shown, which all that is said here is of
   */
  show(event, first, chosen = false) {
    if (!this.made.has(event)) this.made.set(event, this.make(event));
    for (const [at, { head, ofAll, hottest }] of this.made) {
      head.hidden = at !== event;
      ofAll.classList.toggle("said", chosen);
      if (hottest) hottest.hidden = at !== event || !first || chosen;
    }
  }

  /** Shows the findings of all events, on a page where no event can be chosen. */
  showAll() {
    this.page.events.forEach((_, event) => this.show(event, true));
    for (const { head } of this.made.values()) head.hidden = false;
  }

  /** @param {number} event */
  make(event) {
    const { page } = this;
    const { findings, second, chips, empty, hottest } = page.summaries[event];
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
    const explorer = part("explorer", HTMLElement);
    if (page.data) part("tools", HTMLDivElement).before(head);
    else explorer.before(head);
    const section = hottest && this.hottestOf(event, name, hottest);
    if (section) explorer.after(section);
    return { head, ofAll, hottest: section };
  }

  /**
   * @param {number} number of the event
   * @param {string} event
   * @param {Hottest} hottest
   */
  hottestOf(number, event, { lead, total, by_self, by_total, allocators = [], hosts, shares = [], stands_out = [] }) {
    const largest = Math.max(0, ...shares.flat());
    /** @type {[string, string][]} */
    const heads = allocators.length ? [["Self", "share"], ["Class", ""]] : by_total.length ? [["Self", "share"], ["Total", "share"], ["Method", ""]] : [["Self", "share"], ["Method", ""]];
    // A name leads to the method's callers and callees in the scope shown.
    const rowsOf = (/** @type {MethodNumbers[]} */ methods) => {
      const longest = Math.max(0, ...methods.map(([, self]) => self));
      return methods.map(([name, self, all, says = "", method = name]) => [
        filled("td", "share self", ...barOf(percent(self, total), longest ? self / longest : 0)),
        ...(all === null || (allocators.length && methods === by_self) ? [] : [filled("td", "share total", ...barOf(percent(all, total), total ? all / total : 0))]),
        filled("td", "name", says ? `${says} ` : "", linkTo({ event, view: "sandwich", method }, nameElement(method))),
      ]);
    };
    const bySelf = rowsOf(by_self);
    if (hosts.length > 1) {
      heads.push(["Hosts", ""], ["Most on", ""]);
      bySelf.forEach((cells, at) => {
        const most = shares[at].reduce((best, share, host) => (share > shares[at][best] ? host : best), 0);
        const share = percent(shares[at][most], 1);
        const host = filled("b", "", make("bdi", "", this.page.hosts[hosts[most].host].name));
        cells.push(this.strip(event, by_self[at][4] ?? by_self[at][0], hosts, shares[at], largest));
        cells.push(stands_out[at] ? filled("td", "most", host, ` ${share}`) : make("td", "soft", `up to ${share}`));
      });
    }
    const more = document.createElement("details");
    more.append(make("summary", "", "Hottest by total cost"), staticTable("", heads.slice(0, 3), rowsOf(by_total)));
    this.folds.add(`total${number}`, more);
    const table = staticTable("hottest", heads, bySelf);
    const all = by_total.length ? [table, more] : [table];
    if (allocators.length) {
      const methods = staticTable("hottest", [["Self", "share"], ["Total", "share"], ["Method", ""]], rowsOf(allocators));
      all.splice(0, all.length, methods, filled("section", "", make("h2", "", "Hottest classes"), table));
    }
    return filled("section", "hottest", make("h2", "", "Hottest methods"), make("p", "lead", lead), ...all);
  }

  /**
   * One cell a host, in the order of the run.
   * @param {string} event
   * @param {string} method
   * @param {Hottest["hosts"]} hosts
   * @param {number[]} shares
   * @param {number} largest
   */
  strip(event, method, hosts, shares, largest) {
    if (hosts.length > MOST_CELLS) return make("td", "soft", `${hosts.length} hosts`);
    const cells = hosts.map(({ host, forgot }, at) => {
      const share = shares[at] || !forgot ? percent(shares[at], 1) : `less than ${percent(forgot, 1)}`;
      const cell = linkTo({ event, scope: `host:${host}`, q: queryOf(method) });
      cell.title = `${this.page.hosts[host].name}: ${share}`;
      cell.setAttribute("aria-label", cell.title);
      cell.tabIndex = -1; // with a hundred hosts the next method would be far away
      cell.style.setProperty("--share", (largest ? shares[at] / largest : 0).toFixed(3));
      return cell;
    });
    return filled("td", "", filled("div", hosts.length > MOST_SPACED ? "strip dense" : "strip", ...cells));
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

/** @param {string} method */
function queryOf(method) {
  return method && method.length <= LONGEST_LINK ? `"${method}"` : "";
}
