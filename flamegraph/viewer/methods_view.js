// @ts-check
/** The table of all methods of a scope. */

import { FAMILIES, familyOf } from "./colors.js";
import { make, part } from "./dom.js";
import { percent, quantity } from "./format.js";
import { collectMethods, sortMethods } from "./methods.js";
import { nameElement } from "./tooltip.js";

/** @typedef {import("./profile.js").Profile} Profile */
/** @typedef {import("./methods.js").Method} Method */
/** @typedef {import("./search.js").Matches} Matches */

const PAGE = 100;

export class MethodsView {
  /** @param {{find: (name: string) => void, sort: (by: "self" | "total") => void}} events */
  constructor(events) {
    this.events = events;
    this.body = part("methods-body", HTMLTableSectionElement);
    this.more = part("methods-more", HTMLButtonElement);
    /** @type {Profile | null} */
    this.profile = null;
    /** @type {Method[] | null} */
    this.methods = null;
    /** @type {Matches | null} */
    this.matches = null;
    /** @type {"self" | "total"} */
    this.by = "self";
    this.limit = PAGE;
    this.more.addEventListener("click", () => {
      this.limit += PAGE;
      this.render();
    });
    for (const by of /** @type {const} */ (["self", "total"])) {
      part(`sort-${by}`, HTMLButtonElement).addEventListener("click", () => events.sort(by));
    }
  }

  /** @param {Profile} profile */
  show(profile) {
    this.profile = profile;
    this.methods = null;
    this.matches = null;
    this.limit = PAGE;
  }

  /**
   * @param {"self" | "total"} by
   * @param {Matches | null} matches only these are listed
   */
  update(by, matches) {
    this.by = by;
    this.matches = matches;
    this.render();
  }

  render() {
    const { profile } = this;
    if (!profile) return;
    this.methods ??= collectMethods(profile);
    const matches = this.matches;
    const listed = matches ? this.methods.filter((method) => matches.names[method.name]) : this.methods;
    const sorted = sortMethods(listed, this.by);
    const longest = this.methods.reduce((most, method) => Math.max(most, method.self), 1);
    this.body.replaceChildren(...sorted.slice(0, this.limit).map((method) => this.row(profile, method, longest)));
    this.more.hidden = sorted.length <= this.limit;
    this.more.textContent = `Show more (${sorted.length - this.limit} left)`;
    part("methods-none", HTMLParagraphElement).hidden = sorted.length > 0;
    for (const by of ["self", "total"]) {
      const head = part(`sort-${by}`, HTMLButtonElement).closest("th");
      head?.setAttribute("aria-sort", by === this.by ? "descending" : "none");
    }
  }

  /**
   * @param {Profile} profile
   * @param {Method} method
   * @param {number} longest self value of all methods
   */
  row(profile, method, longest) {
    const name = profile.names[method.name];
    const row = make("tr");
    row.append(
      this.share(profile, method.self, "self", longest),
      this.share(profile, method.total, "total", profile.sum()),
    );
    const cell = make("td", "name");
    const button = make("button", "link");
    button.append(nameElement(name));
    button.title = "Show in the flame graph";
    button.addEventListener("click", () => this.events.find(name));
    cell.append(button);
    row.append(cell, make("td", "kind", FAMILIES[familyOf(method.kind, name, method.depth)].label));
    return row;
  }

  /**
   * @param {Profile} profile
   * @param {number} amount
   * @param {string} className
   * @param {number} longest what fills the bar
   */
  share(profile, amount, className, longest) {
    const cell = make("td", `share ${className}`);
    cell.title = quantity(amount, profile.values[0]);
    const bar = make("span", "bar");
    bar.style.setProperty("--share", String(amount / longest));
    cell.append(make("span", "", percent(amount, profile.sum())), bar);
    return cell;
  }
}
