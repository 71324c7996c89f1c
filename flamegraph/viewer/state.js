// @ts-check
/**
 * What the user sees, kept in the URL's hash: a link, a reload and the browser's back button show the same again. The
 * zoom of graphs that are made anew each time (reversed, sandwich) and the full window are not part of it.
 */

/** @typedef {"graph" | "reversed" | "sandwich" | "methods" | "hosts" | "compare" | "run"} ViewName */

/**
 * @typedef {object} State
 * @property {string} event name of the event shown; "" is the page's first
 * @property {string} scope key of the scope, as in scopes.js; "" is the cluster's sum, of two runs the later one's
 * @property {number} thread only this group of threads; -1 is all
 * @property {string} with key of the other scope in a comparison; "" leaves it to the view
 * @property {ViewName} view
 * @property {string} method whose callers and callees are shown; "" for none
 * @property {number} zoom the node of the page's tree that fills the width; 0 is everything
 * @property {string} query
 * @property {boolean} regexp whether `query` is a regular expression
 * @property {boolean} flame root at the bottom instead of the top
 * @property {string} sort what a table is sorted by; "" leaves it to the view
 * @property {"kind" | "package"} color
 * @property {boolean} normalize whether a comparison is of shares, not of amounts
 */

/** @type {State} */
export const INITIAL = {
  event: "", scope: "", thread: -1, with: "", view: "graph", method: "", zoom: 0, query: "", regexp: false,
  flame: false, sort: "", color: "kind", normalize: true,
};
/** @type {ViewName[]} */
const VIEWS = ["graph", "reversed", "sandwich", "methods", "hosts", "compare", "run"];

/** @param {string} hash */
export function parseHash(hash) {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  /** @type {State} */
  const state = {
    event: given.get("event") ?? "",
    scope: given.get("scope") ?? "",
    thread: wholeNumber(given.get("thread"), -1),
    with: given.get("with") ?? "",
    view: VIEWS.find((view) => view === given.get("view")) ?? INITIAL.view,
    method: given.get("method") ?? "",
    zoom: wholeNumber(given.get("zoom"), 0),
    query: given.get("q") ?? "",
    regexp: given.get("regexp") === "1",
    flame: given.get("flame") === "1",
    sort: given.get("sort") ?? "",
    color: given.get("color") === "package" ? "package" : "kind",
    normalize: given.get("normalize") !== "0",
  };
  return state;
}

/**
 * @param {string | null} text
 * @param {number} otherwise
 */
function wholeNumber(text, otherwise) {
  const number = text ? Number(text) : NaN;
  return Number.isInteger(number) && number >= 0 ? number : otherwise;
}

/** @param {State} state */
export function formatHash(state) {
  const out = new URLSearchParams();
  for (const key of /** @type {const} */ (["event", "scope", "with", "view", "method", "sort", "color"])) {
    if (state[key] !== INITIAL[key]) out.set(key, state[key]);
  }
  if (state.thread >= 0) out.set("thread", String(state.thread));
  if (state.zoom) out.set("zoom", String(state.zoom));
  if (state.query) out.set("q", state.query);
  if (state.query && state.regexp) out.set("regexp", "1");
  if (state.flame) out.set("flame", "1");
  if (!state.normalize) out.set("normalize", "0");
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
   * A change one can go back from. Each view's table has columns of its own: another view begins unsorted. A comparison
   * begins with all there is: what differs may be elsewhere than what was looked at.
   * @param {Partial<State>} change
   */
  go(change) {
    const leaves = change.view !== undefined && change.view !== this.state.view;
    const anew = { ...(leaves ? { sort: "" } : {}), ...(leaves && change.view === "compare" ? { zoom: 0 } : {}) };
    const state = { ...this.state, ...anew, ...change };
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
