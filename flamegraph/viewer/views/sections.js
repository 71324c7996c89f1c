// @ts-check
/** Sections of an answer: facts, lists, tables and charts. What is chosen in one leaves what belongs to it in all. */

import { filled, linkButton, make } from "../controls/dom.js";
import { LineChart } from "./chart.js";
import { CellTable } from "./cell_table.js";
import { SpanChart } from "./span_chart.js";

/** @import { Block, LinksBlock, Row, Section } from "../data/page.js" */
/** @import { Keys, Link } from "./keys.js" */

/** In pixels. */
const PAPER_WIDTH = 1000;
/** A path below the page's own folder. */
const RELATIVE = /^[\w%-][\w.~%-]*(?:\/[\w%-][\w.~%-]*)*$/;

/** @implements {Keys} */
export class Sections {
  /**
   * @param {Section[]} sections
   * @param {(key: string) => Link | null} linkOf
   */
  constructor(sections, linkOf) {
    this.linkOf = linkOf;
    /** @type {Row[]} */
    const rows = sections.flatMap(({ blocks }) => blocks.flatMap((block) => (block.kind === "table" ? block.rows : [])));
    /** Rows that say what belongs to them. */
    this.roots = rows.filter(({ belongs }) => belongs?.length);
    /** What rows of several are of, by their keys. @type {Map<string, string[]>} */
    this.members = new Map(rows.flatMap(({ key, members }) => (key && members ? [[key, members]] : [])));
    /** How often each key is there: one that is nowhere else leads nowhere. @type {Map<string, number>} */
    this.times = new Map();
    for (const key of sections.flatMap(keysOf)) this.times.set(key, (this.times.get(key) ?? 0) + 1);
    /** @type {{show: (related: Set<string> | null) => void, lay?: (width: number) => void}[]} */
    this.shown = [];
    this.chosen = make("div", "controls chosen");
    this.chosen.hidden = true;
    this.chosen.setAttribute("role", "status");
    this.element = filled("div", "sections", ...sections.map((section) => this.section(section)), this.chosen);
  }

  /** @param {Section} section */
  section({ title, about, blocks }) {
    const head = make("h2", "", title);
    const words = about ? [make("p", "lead", about)] : [];
    return filled("section", "", head, ...words, ...blocks.map((block) => this.block(block, title)));
  }

  /**
   * @param {Block} block
   * @param {string} title of its section
   */
  block(block, title) {
    if (block.kind === "facts") {
      const list = make("dl", "facts");
      list.append(...block.pairs.flatMap(([label, text]) => [make("dt", "", label), make("dd", "", text)]));
      return list;
    }
    if (block.kind === "lines") {
      const lines = () => filled("div", "", ...block.texts.map((text) => make("p", "lead", text)));
      return block.list ? listOf(block.texts)[0] ?? lines() : lines();
    }
    if (block.kind === "links") return filesOf(block);
    const drawn =
      block.kind === "table" ? new CellTable(block, title, this)
      : block.kind === "chart" ? new LineChart(block, this)
      : new SpanChart(block, this);
    this.shown.push(drawn);
    return drawn.element;
  }

  /** Draws what is not seen now, for paper. */
  lay() {
    for (const one of this.shown) one.lay?.(PAPER_WIDTH);
  }

  /** @param {string} key */
  leads(key) {
    return (this.times.get(key) ?? 0) > 1 || this.members.has(key);
  }

  /** @param {string} key "" for all */
  choose(key) {
    const related = key ? this.related(key) : null;
    const again = linkButton("Show all again", () => this.choose(""), "show all");
    const link = key ? this.linkOf(key) : null;
    const more = link ? [linkButton(link.text, link.act, link.text)] : [];
    this.chosen.replaceChildren(...(key ? [filled("span", "", "Only ", filled("b", "", make("bdi", "", key)), ` and what belongs to ${this.members.has(key) ? "them" : "it"}`), ...more, again] : []));
    this.chosen.hidden = !key;
    for (const one of this.shown) one.show(related);
  }

  /**
   * What belongs to a key, by the rows that say so; of its own kind that is itself alone.
   * @param {string} key
   * @returns {Set<string>}
   */
  related(key) {
    const kind = kindOf(key);
    const members = this.members.get(key);
    if (members) return new Set(members.flatMap((member) => [...this.related(member)]));
    const related = new Set([key]);
    for (const row of this.roots) {
      const belongs = row.belongs ?? [];
      if (row.key !== key && !belongs.includes(key)) continue;
      for (const one of [row.key ?? "", ...belongs]) if (kindOf(one) !== kind) related.add(one);
    }
    return related;
  }
}

/**
 * A list, none where there is nothing in it.
 * @param {string[]} texts
 */
export function listOf(texts) {
  return texts.length ? [filled("ul", "findings", ...texts.map((text) => make("li", "", text)))] : [];
}

/** A list of files beside the page. @param {LinksBlock} block */
function filesOf({ files, more }) {
  const links = files.map(([name, path]) => {
    const link = document.createElement("a");
    link.append(make("bdi", "", name));
    if (RELATIVE.test(path)) link.href = path;
    return filled("li", "", link);
  });
  return filled("ul", "files", ...links, ...(more ? [make("li", "", `${more} more`)] : []));
}

/**
 * "stage" of "stage 3.0".
 * @param {string} key
 */
function kindOf(key) {
  return key.split(" ", 1)[0];
}

/** @param {Section} section */
function keysOf({ blocks }) {
  return blocks.flatMap((block) => {
    if (block.kind === "table") return block.rows.flatMap(({ key, belongs }) => (key ? [key, ...(belongs ?? [])] : []));
    if (block.kind === "chart") return block.series.flatMap(({ marks }) => marks.map((mark) => mark[5]));
    if (block.kind === "timeline") return block.lanes.flatMap(({ spans }) => spans.map((span) => span[3]));
    return [];
  }).filter(Boolean);
}
