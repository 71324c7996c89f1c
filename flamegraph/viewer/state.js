// @ts-check
/**
 * What the user sees, kept in the URL's hash: a link, a reload and the browser's back button show the same again.
 */

/**
 * @typedef {object} State
 * @property {string} scope id of the scope shown; "" is the page's first
 * @property {"graph" | "methods"} view
 * @property {number} zoom the node that fills the width (preorder number; 0 is everything)
 * @property {string} query
 * @property {boolean} regexp whether `query` is a regular expression
 * @property {boolean} flame root at the bottom instead of the top
 * @property {"self" | "total"} sort
 */

/** @type {State} */
const INITIAL = { scope: "", view: "graph", zoom: 0, query: "", regexp: false, flame: false, sort: "self" };

/** @param {string} hash */
export function parseHash(hash) {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const zoom = Number(given.get("zoom"));
  /** @type {State} */
  const state = {
    scope: given.get("scope") ?? "",
    view: given.get("view") === "methods" ? "methods" : "graph",
    zoom: Number.isInteger(zoom) && zoom > 0 ? zoom : 0,
    query: given.get("q") ?? "",
    regexp: given.get("regexp") === "1",
    flame: given.get("flame") === "1",
    sort: given.get("sort") === "total" ? "total" : "self",
  };
  return state;
}

/** @param {State} state */
export function formatHash(state) {
  const out = new URLSearchParams();
  if (state.scope) out.set("scope", state.scope);
  if (state.view !== INITIAL.view) out.set("view", state.view);
  if (state.zoom) out.set("zoom", String(state.zoom));
  if (state.query) out.set("q", state.query);
  if (state.query && state.regexp) out.set("regexp", "1");
  if (state.flame) out.set("flame", "1");
  if (state.sort !== INITIAL.sort) out.set("sort", state.sort);
  return `#${out.toString()}`;
}

/** The one place where the state changes; everything that draws listens to it. */
export class Store {
  constructor() {
    this.state = parseHash(location.hash);
    /** @type {((state: State, before: State) => void)[]} */
    this.listeners = [];
    window.addEventListener("popstate", () => this.apply(parseHash(location.hash)));
  }

  /** How many steps of this page one can go back. */
  get steps() {
    return Number(history.state?.steps ?? 0);
  }

  /** @param {(state: State, before: State) => void} listener */
  listen(listener) {
    this.listeners.push(listener);
  }

  /**
   * A change one can go back from.
   * @param {Partial<State>} change
   */
  go(change) {
    const state = { ...this.state, ...change };
    if (formatHash(state) === formatHash(this.state)) return;
    history.pushState({ steps: this.steps + 1 }, "", formatHash(state));
    this.apply(state);
  }

  /**
   * A change that is no step of its own, such as one more letter of a search.
   * @param {Partial<State>} change
   */
  set(change) {
    const state = { ...this.state, ...change };
    history.replaceState({ steps: this.steps }, "", formatHash(state));
    this.apply(state);
  }

  /** @param {State} state */
  apply(state) {
    const before = this.state;
    this.state = state;
    for (const listener of this.listeners) listener(state, before);
  }

  back() {
    if (this.steps > 0) history.back();
  }
}
