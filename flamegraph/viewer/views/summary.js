// @ts-check
/** What the page says of an event: the answer above the views, the hottest methods below them. */

import { filled, make, part, staticTable } from "../controls/dom.js";
import { percent, shortName } from "../data/format.js";
import { formatHash, INITIAL } from "../data/state.js";
import { nameElement } from "../graph/frame_details.js";
import { barOf } from "./table.js";

/** @import { Folds } from "../controls/tabs.js" */
/** @import { Finding, Hottest, MethodNumbers, PageInfo, Reason, Summary } from "../data/page.js" */
/** @import { State } from "../data/state.js" */

const SHARE = /<?\d[\d.]*\u202f%/;
/** A link with a longer name would be too long for some browsers. */
const LONGEST_LINK = 300;
/** Of more hosts than this there is no cell each, and of more than the second no space between cells. */
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
    /** @type {Map<number, {head: HTMLElement, hottest: HTMLElement | null}>} */
    this.made = new Map();
  }

  /**
   * @param {number} event
   * @param {boolean} whole whether what is shown is what the hottest methods are of
   */
  show(event, whole) {
    if (!this.made.has(event)) this.made.set(event, this.make(event));
    for (const [at, { head, hottest }] of this.made) {
      head.hidden = at !== event;
      if (hottest) hottest.hidden = at !== event || !whole;
    }
  }

  /** The answers of all events below each other, where nothing chooses between them. */
  showAll() {
    this.page.events.forEach((_, event) => this.show(event, true));
    for (const { head } of this.made.values()) head.hidden = false;
  }

  /** @param {number} event */
  make(event) {
    const { page } = this;
    const summary = page.summaries[event];
    const name = page.events[event].name;
    const head = make("section", "of-event");
    head.dataset.event = String(event);
    head.append(headerOf(name, summary), ...(summary.empty ? [reasonsOf(summary.empty)] : []));
    const hottest = summary.hottest ? this.hottestOf(event, name, summary.hottest) : null;
    const explorer = part("explorer", HTMLElement);
    explorer.before(head);
    if (hottest) explorer.after(hottest);
    return { head, hottest };
  }

  /**
   * @param {number} event
   * @param {string} name
   * @param {Hottest} hottest
   */
  hottestOf(event, name, hottest) {
    const section = make("section", "hottest");
    const more = document.createElement("details");
    more.append(make("summary", "", "Hottest by total, with all they call"), byTotal(name, hottest));
    this.folds.add(`total${event}`, more);
    section.append(make("h2", "", "Hottest methods"), make("p", "lead", hottest.lead), this.bySelf(name, hottest), more);
    return section;
  }

  /**
   * @param {string} event
   * @param {Hottest} hottest
   */
  bySelf(event, { by_self, total, hosts, shares = [], stands_out = [] }) {
    const longest = by_self[0]?.[1] ?? 0;
    const largest = Math.max(0, ...shares.flat());
    const rows = by_self.map((method, at) => {
      const cells = [...shareCells(method, total, longest), nameCell(event, method[0])];
      if (hosts.length < 2) return cells;
      const most = shares[at].reduce((best, share, host) => (share > shares[at][best] ? host : best), 0);
      const share = percent(shares[at][most], 1);
      const name = make("b");
      name.append(make("bdi", "", this.hostName(hosts[most].host)));
      cells.push(this.strip(event, method[0], hosts, shares[at], largest));
      cells.push(stands_out[at] ? filled("td", "most", name, ` ${share}`) : make("td", "soft", `up to ${share}`));
      return cells;
    });
    /** @type {[string, string][]} */
    const heads = [["Self", "share"], ["Total", "share"], ["Method", ""]];
    return staticTable("hottest", hosts.length > 1 ? [...heads, ["Hosts", ""], ["Most on", ""]] : heads, rows);
  }

  /** @param {number} host */
  hostName(host) {
    return this.page.hosts[host].name;
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
      cell.title = `${this.hostName(host)}: ${share}`;
      cell.setAttribute("aria-label", cell.title);
      cell.tabIndex = -1; // with a hundred hosts the next method would be far away
      cell.style.setProperty("--share", (largest ? shares[at] / largest : 0).toFixed(3));
      return cell;
    });
    return filled("td", "", filled("div", hosts.length > MOST_SPACED ? "strip dense" : "strip", ...cells));
  }
}

/**
 * The first finding is the answer.
 * @param {string} event
 * @param {Summary} summary
 */
function headerOf(event, { findings, second, chips, empty }) {
  const header = make("header");
  const [answer, ...others] = findings;
  header.append(empty || !answer ? make("h1", "", empty?.answer ?? "") : answerOf(answer));
  if (second) header.append(make("p", "second", second));
  if (others.length) {
    header.append(filled("ul", "findings", ...others.map((one) => filled("li", "", ...marked(one, linkOf(event, one))))));
  }
  const facts = chips.map(({ text, partial }) => filled("li", partial ? "partial" : "", make("b", "", text)));
  header.append(filled("ul", "chips", ...facts));
  return header;
}

/**
 * The sentence with its first share marked.
 * @param {Finding} finding
 */
function answerOf(finding) {
  const text = finding.text.replace(/\.$/, "");
  let hot = false;
  return filled("h1", "", ...marked({ ...finding, text }, nameElement(finding.method ?? "")).flatMap((piece) => {
    const share = hot || typeof piece !== "string" ? null : SHARE.exec(piece);
    if (typeof piece !== "string" || !share) return [piece];
    hot = true;
    const end = share.index + share[0].length;
    return [piece.slice(0, share.index), make("span", "hot", share[0]), piece.slice(end)];
  }));
}

/**
 * The sentence with an element for its method's name; a name that is too long for a sentence stays cut.
 * @param {Finding} finding
 * @param {HTMLElement} name
 * @returns {(string | HTMLElement)[]}
 */
function marked({ text, method, at }, name) {
  if (!method || at === null) return [text];
  return [text.slice(0, at), name, text.slice(at + shortName(method).length)];
}

/**
 * @param {string} event
 * @param {Finding} finding
 */
function linkOf(event, { method }) {
  const name = make("bdi", "method", shortName(method ?? ""));
  name.title = method ?? "";
  return linkTo({ event, q: queryOf(method ?? "") }, name);
}

/** @param {import("../data/page.js").Empty} empty why there are no samples */
function reasonsOf({ why, reasons, remedy }) {
  const section = make("section", "empty");
  if (why) section.append(make("p", "", why), filled("ul", "", ...reasons.map((one) => filled("li", "", ...reasonOf(one)))));
  else section.append(...reasons.map((one) => filled("p", "", ...reasonOf(one))));
  if (remedy) section.append(make("p", "remedy", remedy));
  return section;
}

/**
 * @param {Reason} reason
 * @returns {(string | HTMLElement)[]}
 */
function reasonOf({ hosts, more, text, remedy }) {
  const named = hosts.flatMap((host, at) => [at ? ", " : "", make("bdi", "", host)]);
  if (hosts.length) named.push(`${more ? ` and ${more} more` : ""}: `);
  return [...named, text, ...(remedy ? [" ", make("span", "remedy", remedy)] : [])];
}

/**
 * @param {string} event
 * @param {Hottest} hottest
 */
function byTotal(event, { by_total, total }) {
  const longest = Math.max(0, ...by_total.map(([, self]) => self));
  const rows = by_total.map((method) => [...shareCells(method, total, longest), nameCell(event, method[0])]);
  return staticTable("", [["Self", "share"], ["Total", "share"], ["Method", ""]], rows);
}

/**
 * @param {MethodNumbers} method
 * @param {number} whole
 * @param {number} longest what fills the bar of the self share
 */
function shareCells([, self, total], whole, longest) {
  return [
    filled("td", "share self", ...barOf(percent(self, whole), longest ? self / longest : 0)),
    filled("td", "share total", ...barOf(percent(total, whole), whole ? total / whole : 0)),
  ];
}

/**
 * A method's callers and callees, in the scope that is shown then.
 * @param {string} event
 * @param {string} method
 */
function nameCell(event, method) {
  return filled("td", "name", linkTo({ event, view: "sandwich", method }, nameElement(method)));
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
