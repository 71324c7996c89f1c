// @ts-check
/** What the user sees, kept in the URL's hash: a link, a reload and the browser's back button show the same again. */

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
 * @property {string} reversed the path of the frame that fills the width of the graph from the leaves, as in paths.js
 * @property {string} callers the same of the sandwich's upper graph
 * @property {string} callees and of its lower one
 * @property {string} query
 * @property {boolean} regexp whether `query` is a regular expression
 * @property {boolean} flame root at the bottom instead of the top
 * @property {string} sort what a table is sorted by; "" leaves it to the view
 * @property {number} rows how many of a table are shown; 0 leaves it to the table
 * @property {string} folds names of the pieces of the page that fold and are not as they were made
 * @property {boolean} full whether the view fills the window
 * @property {"kind" | "package"} color
 * @property {boolean} normalize whether a comparison is of shares, not of amounts
 */

/** @type {State} */
export const INITIAL = {
  event: "", scope: "", thread: -1, with: "", view: "graph", method: "", zoom: 0, reversed: "", callers: "", callees: "",
  query: "", regexp: false, flame: false, sort: "", rows: 0, folds: "", full: false, color: "kind", normalize: true,
};
/** Nothing is zoomed, whatever the graph. */
export const UNZOOMED = { zoom: 0, reversed: "", callers: "", callees: "" };
/** What is text in the address, and what is a switch. */
const TEXTS = /** @type {const} */ (["event", "scope", "with", "view", "method", "reversed", "callers", "callees", "sort", "folds", "color"]);
const SWITCHES = /** @type {const} */ (["flame", "full"]);
/** With another one of these a table lists something else, and begins anew. */
const LISTED_BY = /** @type {const} */ (["event", "scope", "thread", "with", "view", "query", "regexp", "sort", "normalize"]);
/** A link may ask for more than a browser can bear. */
export const MOST_ROWS = 5000;
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
    reversed: given.get("reversed") ?? "",
    callers: given.get("callers") ?? "",
    callees: given.get("callees") ?? "",
    query: given.get("q") ?? "",
    regexp: given.get("regexp") === "1",
    flame: given.get("flame") === "1",
    sort: given.get("sort") ?? "",
    rows: Math.min(wholeNumber(given.get("rows"), 0), MOST_ROWS),
    folds: given.get("folds") ?? "",
    full: given.get("full") === "1",
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
  for (const key of TEXTS) if (state[key] !== INITIAL[key]) out.set(key, state[key]);
  if (state.thread >= 0) out.set("thread", String(state.thread));
  if (state.zoom) out.set("zoom", String(state.zoom));
  if (state.query) out.set("q", state.query);
  if (state.query && state.regexp) out.set("regexp", "1");
  for (const key of SWITCHES) if (state[key]) out.set(key, "1");
  if (state.rows) out.set("rows", String(state.rows));
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
   * begins with all there is: what differs may be elsewhere than what was looked at. So does another method's sandwich.
   * @param {Partial<State>} change
   */
  go(change) {
    const leaves = change.view !== undefined && change.view !== this.state.view;
    const other = change.method !== undefined && change.method !== this.state.method;
    const anew = {
      ...(leaves ? { sort: "" } : {}),
      ...(leaves && change.view === "compare" ? { zoom: 0 } : {}),
      ...(other ? { callers: "", callees: "" } : {}),
    };
    const state = this.changed({ ...anew, ...change });
    if (formatHash(state) === formatHash(this.state)) return;
    history.pushState({ steps: this.steps + 1 }, "", formatHash(state));
    this.apply(state);
  }

  /**
   * A change that is no step of its own, such as one more letter of a search.
   * @param {Partial<State>} change
   */
  set(change) {
    const state = this.changed(change);
    history.replaceState({ steps: this.steps }, "", formatHash(state));
    this.apply(state);
  }

  /** @param {Partial<State>} change */
  changed(change) {
    const state = { ...this.state, ...change };
    const listsOthers = LISTED_BY.some((key) => state[key] !== this.state[key]);
    return listsOthers && change.rows === undefined ? { ...state, rows: 0 } : state;
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

const BASE = 36;
const SMALLER = "-";
const STEP = /^(?:-|[\da-z]{1,6})$/;
/** A deeper frame is zoomed into all the same, but not kept. */
export const DEEPEST_KEPT = 2000;

/** @param {number[]} names indexes, -1 for smaller frames */
export function formatPath(names) {
  return names.map((name) => (name < 0 ? SMALLER : name.toString(BASE))).join(".");
}

/**
 * The names as far as the text makes sense.
 * @param {string} text
 */
export function parsePath(text) {
  const steps = text ? text.split(".", DEEPEST_KEPT) : [];
  const spoilt = steps.findIndex((step) => !STEP.test(step));
  const good = spoilt < 0 ? steps : steps.slice(0, spoilt);
  return good.map((step) => (step === SMALLER ? -1 : Number.parseInt(step, BASE)));
}
