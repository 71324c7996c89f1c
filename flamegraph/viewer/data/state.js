// @ts-check
/** What the user sees, kept in the URL's hash: a link, a reload and the browser's back button show the same again. */

/** @typedef {"graph" | "time" | "reversed" | "sandwich" | "methods" | "hosts" | "compare" | "work" | "machines" | "spark" | "run"} ViewName */

/**
 * @typedef {object} State
 * @property {string} event name of the event shown; "" is the page's first
 * @property {string} scope key of the scope, as in scopes.js; "" is the cluster's sum, of two runs the later one's
 * @property {string} thread name of the only group of threads that is shown; "" is all
 * @property {string} time the range shown, in seconds since the start: "12.4-13.1"; "" is the whole recording
 * @property {string} time2 the range that it is compared with; "" for none
 * @property {string} band only samples of these durations, as in range.js; "" is all
 * @property {string} category of work, the only one that is shown; "" is all
 * @property {boolean} idle whether threads that wait for work are shown, too
 * @property {string} changes of all stacks, as in transforms.js
 * @property {string} notes of the reader, as in notes.js
 * @property {string} with key of the other scope in a comparison; "" leaves it to the view
 * @property {ViewName} view
 * @property {string} method whose callers and callees are shown; "" for none
 * @property {number} zoom the node of the page's tree that fills the width; 0 is everything
 * @property {string} reversed the path of the frame that fills the width of the graph from the leaves
 * @property {string} callers the same of the sandwich's upper graph
 * @property {string} callees and of its lower one
 * @property {string} q what is searched for
 * @property {boolean} regexp whether that is a regular expression
 * @property {boolean} order whether the flame graph has frames in the order of time, of one group of threads
 * @property {boolean} flame root at the bottom instead of the top
 * @property {string} sort what a table is sorted by; "" leaves it to the view
 * @property {number} rows how many of a table are shown; 0 leaves it to the table
 * @property {string} folds names of the folding pieces that the reader opened or closed
 * @property {boolean} full whether the view fills the window
 * @property {"kind" | "package" | "category" | "ipc"} color
 * @property {boolean} intensity whether the map of durations shows time, not events
 * @property {boolean} normalize whether a comparison is of shares, not of amounts
 */

/** What the address leaves out. @type {State} */
export const INITIAL = {
  event: "", scope: "", thread: "", time: "", time2: "", band: "", category: "", idle: false, changes: "", notes: "", with: "", view: "graph", method: "", zoom: 0,
  reversed: "", callers: "", callees: "", q: "", regexp: false, order: false, flame: false, sort: "", rows: 0, folds: "", full: false, color: "kind", intensity: false,
  normalize: true,
};
/** Nothing is zoomed, whatever the graph. */
export const UNZOOMED = { zoom: 0, reversed: "", callers: "", callees: "" };
/** The whole recording is shown. */
export const ALL_TIME = { time: "", time2: "", band: "" };
/** With work of all categories, and stacks as they were recorded. */
export const ALL_PARTS = { ...ALL_TIME, category: "", changes: "" };
/** A change of these shows other rows in a table. */
const LISTED_BY = /** @type {const} */ ([
  "event", "scope", "thread", "time", "time2", "band", "category", "idle", "changes", "with", "view", "q", "regexp", "sort", "normalize",
]);
/** A link may ask for more than a browser can bear. */
export const MOST_ROWS = 5000;
const VIEWS = ["graph", "time", "reversed", "sandwich", "methods", "hosts", "compare", "work", "machines", "spark", "run"];

const COLORS_BY = ["kind", "package", "category", "ipc"];

/** @param {string} hash */
export function parseHash(hash) {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const state = /** @type {State & Record<string, unknown>} */ ({ ...INITIAL });
  for (const [key, initial] of Object.entries(INITIAL)) {
    const text = given.get(key);
    if (!text) continue;
    if (typeof initial === "string") state[key] = text;
    else if (typeof initial === "boolean") state[key] = initial ? text !== "0" : text === "1";
    else if (Number.isInteger(Number(text)) && Number(text) >= 0) state[key] = Number(text);
  }
  if (!VIEWS.includes(state.view)) state.view = INITIAL.view;
  if (!COLORS_BY.includes(state.color)) state.color = "kind";
  state.rows = Math.min(state.rows, MOST_ROWS);
  return state;
}

/** @param {State} state */
export function formatHash(state) {
  const out = new URLSearchParams();
  for (const key of /** @type {(keyof State)[]} */ (Object.keys(INITIAL))) {
    if (state[key] === INITIAL[key] || (key === "regexp" && !state.q)) continue;
    out.set(key, typeof state[key] === "boolean" ? String(Number(state[key])) : String(state[key]));
  }
  return `#${out.toString()}`;
}

/** The one place where the state changes; the explorer shows it. */
export class Store {
  constructor() {
    this.changed = () => {};
    this.state = parseHash(location.hash);
    window.addEventListener("popstate", () => this.apply(parseHash(history.state?.hash ?? location.hash)));
  }

  /** How many steps of this page one can go back. */
  get steps() {
    return Number(history.state?.steps ?? 0);
  }

  /**
   * A change one can go back from. Another view is not sorted yet, as its table has other columns. A comparison and
   * another method's sandwich begin without a zoom.
   * @param {Partial<State>} change
   */
  go(change) {
    const leaves = change.view !== undefined && change.view !== this.state.view;
    const other = change.method !== undefined && change.method !== this.state.method;
    const state = this.with({
      ...(leaves ? { sort: "" } : {}),
      ...(leaves && change.view === "compare" ? { zoom: 0 } : {}),
      ...(other ? { callers: "", callees: "" } : {}),
      ...change,
    });
    if (formatHash(state) === formatHash(this.state)) return;
    this.keep(history.pushState, this.steps + 1, state);
    this.apply(state);
  }

  /**
   * A change that is no step of its own, such as one more letter of a search.
   * @param {Partial<State>} change
   */
  set(change) {
    const state = this.with(change);
    this.keep(history.replaceState, this.steps, state);
    this.apply(state);
  }

  /**
   * Keep a state in the browser's history, and in the address. A page inside another one, as in a notebook, has no
   * address of its own.
   * @param {History["pushState"]} put
   * @param {number} steps
   * @param {State} state
   */
  keep(put, steps, state) {
    const hash = formatHash(state);
    try {
      put.call(history, { steps }, "", hash);
    } catch {
      put.call(history, { steps, hash }, "");
    }
  }

  /** @param {Partial<State>} change */
  with(change) {
    const state = { ...this.state, ...change };
    const listsOthers = LISTED_BY.some((key) => state[key] !== this.state[key]);
    return listsOthers && change.rows === undefined ? { ...state, rows: 0 } : state;
  }

  /** @param {State} state */
  apply(state) {
    this.state = state;
    this.changed();
  }

  back() {
    if (this.steps > 0) history.back();
  }
}

const BASE = 36;
const SMALLER = "-";
const STEP = /^(?:-|[\da-z]{1,6})$/;
/** The zoom to a deeper frame is not kept in the address. */
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
