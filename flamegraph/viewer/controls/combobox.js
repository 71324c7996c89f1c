// @ts-check
/** A choice among many with a search in it: type to narrow, arrows to walk, Enter to choose, Esc to leave. */

import { searchable } from "../data/search.js";
import { filled, make } from "./dom.js";

/** A note is asked for when the option is shown. @typedef {{id: string, label: string, section: string, note?: () => string}} Option */

/** Listed at most; more are found by typing. */
const MOST_OPTIONS = 100;
/** @type {Record<string, number>} */
const WALKS = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 };

export class Combobox {
  /**
   * @param {HTMLElement} element is filled with it; has an id
   * @param {string} label what is chosen
   * @param {() => Option[]} options is asked whenever the list opens
   * @param {(id: string) => void} chosen
   */
  constructor(element, label, options, chosen) {
    this.options = options;
    this.chosen = chosen;
    this.current = "";
    this.label = "";
    /** @type {Option[]} */
    this.listed = [];
    /** All there are, and what is searched of each, while the list is shown. @type {{option: Option, text: string}[]} */
    this.all = [];
    /** Those that fit what is typed. @type {{option: Option, text: string}[]} */
    this.fitting = [];
    this.active = -1;
    const input = (this.input = document.createElement("input"));
    const list = (this.list = make("ul"));
    list.id = `${element.id}-list`;
    list.hidden = true;
    list.setAttribute("role", "listbox");
    list.setAttribute("aria-label", label);
    input.id = `${element.id}-input`;
    input.type = "text";
    input.autocomplete = "off";
    input.spellcheck = false;
    const attributes = {
      role: "combobox", "aria-label": label, "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": list.id,
    };
    for (const [name, value] of Object.entries(attributes)) input.setAttribute(name, value);
    input.addEventListener("focus", () => input.select());
    input.addEventListener("click", () => this.open(""));
    input.addEventListener("input", () => this.open(input.value));
    input.addEventListener("blur", () => this.close());
    input.addEventListener("keydown", (event) => {
      if (!this.key(event.key)) return;
      event.preventDefault();
      event.stopPropagation();
    });
    list.addEventListener("mousedown", (event) => {
      event.preventDefault();
      const option = event.target instanceof Element ? event.target.closest("[data-index]") : null;
      if (option instanceof HTMLElement) this.choose(Number(option.dataset.index));
    });
    element.classList.add("combobox");
    element.replaceChildren(input, list);
  }

  /**
   * What is chosen now.
   * @param {string} id
   * @param {string} label
   */
  show(id, label) {
    this.current = id;
    this.label = label;
    this.input.title = label;
    if (this.list.hidden) this.input.value = label;
  }

  /**
   * @param {string} key
   * @returns {boolean} whether it meant something
   */
  key(key) {
    if (this.list.hidden) {
      const opens = key === "ArrowDown" || key === "ArrowUp";
      if (opens) this.open("");
      return opens;
    }
    if (key in WALKS) this.point(Math.max(0, Math.min(this.listed.length - 1, this.active + WALKS[key])));
    else if (key === "Enter") this.choose(this.active);
    else if (key === "Escape") this.close();
    else return false;
    return true;
  }

  /** @param {string} typed */
  open(typed) {
    const words = searchable(typed).split(/\s+/).filter(Boolean);
    const opens = this.list.hidden;
    if (opens) this.all = this.options().map((option) => ({ option, text: searchable(`${option.section} ${option.label}`) }));
    const before = this.fitting;
    this.fitting = this.all.filter(({ text }) => words.every((word) => text.includes(word)));
    // One more letter often leaves the list as it is, and to make it anew takes much memory for a while.
    const same = !opens && this.fitting.length === before.length && this.fitting.every((one, at) => one === before[at]);
    if (!same) this.fill();
    this.list.hidden = false;
    this.input.setAttribute("aria-expanded", "true");
    const current = this.listed.findIndex((option) => option.id === this.current);
    this.point(typed || current < 0 ? 0 : current);
  }

  /** Lists what fits. */
  fill() {
    this.listed = this.fitting.slice(0, MOST_OPTIONS).map(({ option }) => option);
    const heading = (/** @type {string} */ text) => {
      const item = make("li", "section", text);
      item.setAttribute("role", "presentation");
      return item;
    };
    const items = this.listed.flatMap((option, index) => {
      const begins = option.section !== (this.listed[index - 1]?.section ?? "");
      return [...(begins ? [heading(option.section)] : []), this.item(option, index)];
    });
    const left = this.fitting.length - this.listed.length;
    if (left) items.push(heading(`${left} more: type to find them`));
    this.list.replaceChildren(...(items.length ? items : [heading("No match")]));
  }

  /**
   * @param {Option} option
   * @param {number} index
   */
  item(option, index) {
    const item = filled("li", "option", make("bdi", "", option.label), make("span", "note", option.note?.() ?? ""));
    item.id = `${this.list.id}-${index}`;
    item.dataset.index = String(index);
    item.setAttribute("role", "option");
    item.setAttribute("aria-selected", String(option.id === this.current));
    item.setAttribute("aria-setsize", String(this.listed.length));
    item.setAttribute("aria-posinset", String(index + 1));
    return item;
  }

  /** @param {number} index of the option that Enter chooses */
  point(index) {
    const { list, input } = this;
    list.querySelector(".active")?.classList.remove("active");
    this.active = index < this.listed.length ? index : -1;
    const item = document.getElementById(`${list.id}-${this.active}`);
    if (!item) return input.removeAttribute("aria-activedescendant");
    item.classList.add("active");
    input.setAttribute("aria-activedescendant", item.id);
    // Scrolls the list alone: asking the page to do it lays out all of it.
    const [top, bottom] = [item.offsetTop, item.offsetTop + item.offsetHeight];
    if (top < list.scrollTop) list.scrollTop = top;
    else if (bottom > list.scrollTop + list.clientHeight) list.scrollTop = bottom - list.clientHeight;
  }

  /** @param {number} index */
  choose(index) {
    const option = this.listed[index];
    this.close();
    if (!option) return;
    this.input.blur(); // keys are the page's again, and Tab goes on from here
    this.chosen(option.id);
  }

  close() {
    this.list.hidden = true;
    this.list.replaceChildren();
    this.all = this.fitting = [];
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
    this.input.value = this.label;
  }
}
