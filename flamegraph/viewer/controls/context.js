// @ts-check
/** What every view is given: the page, its tree, what is chosen, and graphs that behave like all the others. */

import { ratiosOf } from "../data/methods.js";
import { Numbers } from "../data/numbers.js";
import { BufferPool } from "../data/profile.js";
import { bandsText, parseBands, parseRange, rangeText } from "../data/range.js";
import { Scopes } from "../data/scopes.js";
import { ALL_TIME, Store } from "../data/state.js";
import { Times } from "../data/times.js";
import { ChangedTree, parseTransforms, transformText } from "../data/transforms.js";
import { countsWaits, idleNodes } from "../data/waits.js";
import { categoryCount, categoryLabel, categoryNumber, isCategory, isWork } from "../data/work.js";
import { assignHues, Coloring } from "../graph/colors.js";
import { Graph } from "../graph/graph.js";

/** @import { PageInfo } from "../data/page.js" */
/** @import { Scope } from "../data/scopes.js" */
/** @import { Profile } from "../data/profile.js" */
/** @import { Matches } from "../data/search.js" */
/** @import { State, ViewName } from "../data/state.js" */
/** @import { Tree } from "../data/tree.js" */
/** @import { Folds } from "./tabs.js" */

/**
 * A view shows itself in its panel. `update` is called when the state has changed and its tab is chosen,
 * `leave` when another tab is chosen, `recolor` when colours have to be drawn again.
 * @typedef {object} View
 * @property {(state: State) => void} update
 * @property {() => void} [leave] frees memory that `update` can fill again
 * @property {(dark: boolean) => void} [recolor]
 */

/** How many profiles have their numbers at once. With 1,000,000 nodes each takes 16 MB. */
const KEPT = 3;
/** Parts of the recording whose sums are kept. */
const KEPT_PARTS = 4;

/** Null for stacks as they were recorded. @typedef {{key: string, tree: ChangedTree | null, pool: BufferPool, recorded: Numbers}} Changes */

export class Context {
  /**
   * @param {PageInfo} page
   * @param {Tree} tree
   * @param {Folds} folds
   */
  constructor(page, tree, folds) {
    this.page = page;
    /** The tree in the page. */
    this.source = tree;
    this.folds = folds;
    folds.changed = (folds) => this.set({ folds });
    this.scopes = new Scopes(page);
    this.times = new Times(tree);
    this.pool = new BufferPool(KEPT);
    /** Of the whole recording, with stacks as they were recorded. */
    this.unchanged = new Numbers(this.scopes, this.times, this.pool, null);
    /** The changes of stacks, and of the whole recording the numbers with them. @type {Changes} */
    this.changes = { key: "", tree: null, pool: this.pool, recorded: this.unchanged };
    /** How much is idle of what. */
    this.idleOf = { key: "", share: 0 };
    /** Of parts of it, the last one asked for at the end. @type {Map<string, Numbers>} */
    this.parts = new Map();
    this.store = new Store();
    /** What the search field asks for, by name; null when it asks for nothing. @type {Matches | null} */
    this.matches = null;
    /** The instructions per cycle of a profile's methods. @type {{of: Profile | null, found: Map<number, number> | null}} */
    this.ratios = { of: null, found: null };
    /** Numbers of the colours of categories, by category. @type {Map<number, number> | undefined} */
    this.hues = undefined;
    /** @type {Graph[]} */
    this.graphs = [];
    /** The graph that keys and the status line are about. @type {Graph | null} */
    this.active = null;
    /** @type {(graph: Graph, node: number, x: number, y: number) => void} */
    this.pointed = () => {};
    /** @type {(graph: Graph) => void} */
    this.moved = () => {};
    /** @type {(graph: Graph, node: number, x: number, y: number) => void} */
    this.menuOf = () => {};
    /** Reports that background work failed. @type {(error: unknown) => void} */
    this.failed = () => {};
  }

  /**
   * Whether the page has anything for a view.
   * @param {ViewName} view
   */
  has(view) {
    if (view === "machines") return this.page.machines !== null;
    if (view === "work") return this.page.summaries.some(({ work }) => work?.length);
    if (view === "spark") return this.page.job !== null;
    if (view === "run") return this.page.run !== null;
    return view !== "hosts" || this.page.summaries.some(({ hosts }) => hosts);
  }

  get state() {
    return this.store.state;
  }

  /** The event shown, as an index into the page's events. */
  get event() {
    return Math.max(0, this.page.events.findIndex((event) => event.name === this.state.event));
  }

  /** The group of threads shown, -1 for all. */
  get thread() {
    const thread = this.scopes.called.thread.find(this.state.thread, 0);
    return this.scopes.threadsOf(this.event).includes(thread) ? thread : -1;
  }

  /** The scope shown; the whole if the address names no scope of this page. */
  get scope() {
    const { scope } = this.state;
    return (scope ? this.scopes.parse(scope) : null) ?? this.scopes.whole;
  }

  /**
   * A scope's key in the address, which leaves out that of the whole.
   * @param {string} key
   */
  addressOf(key) {
    return key === this.scopes.whole.key ? "" : key;
  }

  /** The range of time shown; null for the whole recording. */
  get range() {
    return this.page.time ? parseRange(this.state.time) : null;
  }

  /** The range that it is compared with. */
  get otherRange() {
    return this.page.time ? parseRange(this.state.time2) : null;
  }

  /** The durations shown; null for all. */
  get bands() {
    return this.page.time ? parseBands(this.state.band) : null;
  }

  /** The category of work shown; -1 for all. */
  get category() {
    const { category } = this.state;
    const known = category && isWork(this.page.events[this.event].name) && isCategory(category);
    return known ? categoryNumber(category) : -1;
  }

  /** Whether only a part of the time is shown, or only some durations. */
  get inTime() {
    return this.range !== null || this.bands !== null;
  }

  /** The changes of all stacks, but for idle threads. */
  get transforms() {
    return parseTransforms(this.state.changes);
  }

  /** Whether the page knows which threads are idle: in events of waits. */
  get knowsIdle() {
    return this.source.waits !== null && !isWork(this.page.events[this.event].name);
  }

  /** Which changes of stacks are shown. Views ask for `tree`, `recorded` and `numbers`, and need not know them. */
  get changed() {
    const { state, source, scopes, times } = this;
    const withoutIdle = this.knowsIdle && !state.idle;
    const key = withoutIdle || state.changes ? `${withoutIdle} ${state.changes}` : "";
    if (key === this.changes.key) return this.changes;
    this.parts.clear();
    const tree = key ? new ChangedTree(source, this.transforms, withoutIdle) : null;
    const other = tree !== null && tree.tree !== source;
    if (other) this.pool.clear();
    const pool = other ? new BufferPool(KEPT) : this.pool;
    const recorded = tree ? new Numbers(scopes, times, pool, null, -1, null, tree) : this.unchanged;
    return (this.changes = { key, tree, pool, recorded });
  }

  /** The tree that is shown. */
  get tree() {
    return this.changed.tree?.tree ?? this.source;
  }

  /** The numbers of the whole recording. */
  get recorded() {
    return this.changed.recorded;
  }

  /**
   * Where a node of the page's tree, as the address has it, is in the tree that is shown.
   * @param {number} node
   */
  shownAt(node) {
    return this.changed.tree?.shownAt(node) ?? node;
  }

  /**
   * The node of the page's tree for a node of the tree that is shown.
   * @param {number} node
   */
  originOf(node) {
    return this.changed.tree?.originOf(node) ?? node;
  }

  /** How much of what is shown is of threads that wait for work, or would be if these were not hidden. */
  get idleShare() {
    const { scope, event, thread, state, source } = this;
    if (!this.knowsIdle) return 0;
    const key = `${scope.key} ${event} ${thread} ${state.time} ${state.band}`;
    if (key === this.idleOf.key) return this.idleOf.share;
    const { range, bands } = this;
    const selection = range || bands ? { range, bands } : null;
    const numbers = selection ? new Numbers(this.scopes, this.times, this.pool, selection) : this.unchanged;
    const idleNode = idleNodes(source);
    let [idle, all] = [0, 0];
    for (const { column, weight } of numbers.columns(scope, event, thread)) {
      numbers.eachValue(column, (node, value) => {
        all += value * weight;
        if (idleNode[node] === 1) idle += value * weight;
      });
    }
    this.idleOf = { key, share: all > 0 ? idle / all : 0 };
    return this.idleOf.share;
  }

  /** "without idle threads" if these are hidden and there are any; else "". */
  get idleHidden() {
    return !this.state.idle && this.idleShare > 0 ? "without idle threads" : "";
  }

  /** What part of the recording is shown: "12.40–13.10 s, 1.02 to 2.05 ms each, JSON"; "" for all of it. */
  get span() {
    const { range, bands, category } = this;
    const parts = [range && rangeText(range), bands && `${bandsText(bands)} each`, category >= 0 && categoryLabel(category)];
    return parts.filter(Boolean).join(", ");
  }

  /** The same and the changes of stacks. */
  get part() {
    const changes = this.transforms.map((transform) => transformText(transform, this.source));
    return [this.span, ...changes].filter(Boolean).join(", ");
  }

  /**
   * Shows the whole recording again.
   * @returns {boolean} whether only a part of the time, or some durations, were shown
   */
  clearTime() {
    if (!this.inTime && !this.otherRange) return false;
    this.go(ALL_TIME);
    return true;
  }

  /** The numbers of what part of the recording is shown. */
  get numbers() {
    return this.numbersOf(this.state.time);
  }

  /**
   * The numbers of a range, of the durations and the category shown.
   * @param {string} time as in the state
   * @param {number} [category]
   * @returns {Numbers}
   */
  numbersOf(time, category = this.category) {
    const { bands, page } = this;
    const { tree, pool, recorded } = this.changed;
    const range = page.time ? parseRange(time) : null;
    if (!range && !bands && category < 0) return recorded;
    const key = `${range?.from} ${range?.to} ${bands?.least} ${bands?.most} ${category}`;
    const selection = range || bands ? { range, bands } : null;
    const whole = category < 0 ? null : this.numbersOf(time, -1);
    const numbers = this.parts.get(key) ?? new Numbers(this.scopes, this.times, pool, selection, category, whole, tree);
    this.parts.delete(key);
    this.parts.set(key, numbers);
    for (const old of [...this.parts.keys()].slice(0, -KEPT_PARTS)) this.parts.delete(old);
    return numbers;
  }

  /** The profile shown. */
  get profile() {
    return this.profileOf(this.scope);
  }

  /**
   * A scope's profile of the event and threads shown.
   * @param {Scope} scope
   */
  profileOf(scope) {
    return this.numbers.profileOf(scope, this.event, this.thread);
  }

  /**
   * Columns of a scope, of the event and threads shown, with their weights.
   * @param {Scope} scope
   */
  columns(scope) {
    return this.numbers.columns(scope, this.event, this.thread);
  }

  /**
   * The instructions per cycle of the methods shown, by name; null unless both are recorded and one of them is shown.
   */
  get ipc() {
    const { profile, ratios } = this;
    if (profile !== ratios.of) this.ratios = { of: profile, found: this.readIpc() };
    return this.ratios.found;
  }

  readIpc() {
    const { event, page, numbers, scope, thread } = this;
    // Of a perf.data file, whose other values count samples; else of a run.
    const amount = (/** @type {string[]} */ names) =>
      [...names.map((name) => `${name}_period`), ...names]
        .map((name) => page.events.findIndex((one) => one.name === name)).find((found) => found >= 0) ?? -1;
    const cycles = amount(["cycles", "cpu-cycles"]);
    const instructions = amount(["instructions"]);
    if (cycles < 0 || instructions < 0 || (event !== cycles && event !== instructions)) return null;
    return ratiosOf(numbers.profileOf(scope, instructions, thread), numbers.profileOf(scope, cycles, thread));
  }

  /**
   * The colours that were chosen, for what is shown.
   * @param {boolean} dark
   */
  coloring(dark) {
    const { color } = this.state;
    if (color === "category") return this.categoryColoring(dark);
    if (color === "kind" && countsWaits(this.page.events[this.event].type)) return new Coloring(dark, "wait");
    if (color !== "ipc") return new Coloring(dark, color);
    return this.ipc ? new Coloring(dark, color, this.ipc) : new Coloring(dark, "kind");
  }

  /**
   * A category has one colour in all views of the page.
   * @param {boolean} dark
   */
  categoryColoring(dark) {
    this.hues ??= assignHues(this.categoryCosts());
    return new Coloring(dark, "category", undefined, this.hues);
  }

  /** Of the whole recording, as shares of each event and run, by category. */
  categoryCosts() {
    const costs = new Float64Array(categoryCount());
    const runs = this.page.runs.map((_, run) => this.scopes.sumOfRun(run));
    this.page.events.forEach(({ name }, event) => {
      if (!isWork(name)) return;
      for (const run of runs) {
        const sums = this.unchanged.workOf(this.unchanged.columns(run, event, -1));
        const whole = sums.reduce((sum, one) => sum + one, 0);
        for (const [category, sum] of sums.entries()) if (sum > 0) costs[category] += sum / whole;
      }
    });
    return costs;
  }

  /** Columns of what is shown whose samples' times are not known. */
  get untimed() {
    return this.columns(this.scope).filter(({ column }) => !this.source.times.has(column));
  }

  /** Whether it is known when samples of what is shown were taken. */
  get hasTimes() {
    return this.page.time !== null && this.untimed.length < this.columns(this.scope).length;
  }

  /** Columns of the one process and group of threads that is chosen; null if that is not one. */
  get ofOneThread() {
    const columns = this.columns(this.scope);
    const processes = new Set(columns.map(({ column }) => this.page.columns[column].process));
    const several = this.scopes.threadsOf(this.event).length > 1;
    return this.hasTimes && processes.size === 1 && (this.thread >= 0 || !several) ? columns : null;
  }

  /**
   * The process and the threads with most of what is shown.
   * @returns {Partial<State>}
   */
  oneThread() {
    const { page, scopes, numbers, event } = this;
    if (this.ofOneThread) return {};
    const heaviest = (/** @type {{scope: Scope, thread: number}[]} */ choices) => {
      const amounts = choices.map(({ scope, thread }) => numbers.amounts(scope, event, thread).amount);
      return choices[amounts.indexOf(Math.max(...amounts))];
    };
    const inScope = [...page.processes.keys()].filter((process) => scopes.holds(this.scope, process));
    const processes = inScope.flatMap((process) => scopes.parse(`process:${process}`) ?? []);
    const { scope } = heaviest(processes.map((scope) => ({ scope, thread: this.thread })));
    const threads = this.thread >= 0 ? [this.thread] : scopes.threadsOf(event);
    if (threads.length === 0) return { scope: scope.key };
    const { thread } = heaviest(threads.map((thread) => ({ scope, thread })));
    return { scope: scope.key, thread: scopes.called.thread.texts[thread] };
  }

  /**
   * A graph with tooltips, keys, search colours and themes.
   * @param {string} id
   * @param {string} label for screen readers
   * @param {(node: number) => void} zoomed what a click on a frame does
   */
  makeGraph(id, label, zoomed) {
    /** @type {Graph} */
    const graph = new Graph(id, label, {
      zoom: zoomed,
      point: (node, x, y) => this.pointed(graph, node, x, y),
      moved: () => this.moved(graph),
      enter: () => (this.active = graph),
      open: (method) => this.openMethod(method),
      menu: (node, x, y) => this.menuOf(graph, node, x, y),
    });
    this.graphs.push(graph);
    return graph;
  }

  /**
   * Callers and callees of a method.
   * @param {string} method
   */
  openMethod(method) {
    if (method) this.go({ view: "sandwich", method });
  }

  /** @param {Partial<State>} change one can go back from */
  go(change) {
    this.store.go(this.named(change));
  }

  /** @param {Partial<State>} change that is no step of its own */
  set(change) {
    this.store.set(this.named(change));
  }

  /**
   * The same change, with scopes as the address calls them.
   * @param {Partial<State>} change
   */
  named(change) {
    const named = { ...change };
    for (const key of /** @type {const} */ (["scope", "with"])) {
      if (change[key]) named[key] = this.scopes.parse(change[key])?.key ?? change[key];
    }
    return named;
  }
}
