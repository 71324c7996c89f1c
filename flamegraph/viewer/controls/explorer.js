// @ts-check
/** Ties the page together: the state says what to show, the views say what the user did. */

import { ALL_PARTS, ALL_TIME, INITIAL, parseHash, UNZOOMED } from "../data/state.js";
import { pictureDrawn } from "../data/method_costs.js";
import { collectMethods } from "../data/methods.js";
import { formatTransforms } from "../data/transforms.js";
import { categoryCode, isWork } from "../data/work.js";
import { startExport } from "../export/export_menu.js";
import { Coloring, showLegend } from "../graph/colors.js";
import { copyName, copyStack, hideTooltip, showFrame, showTooltip } from "../graph/frame_details.js";
import { MethodsView } from "../views/methods_view.js";
import { VIEWS_BY_NAME } from "../views/views.js";
import { Context } from "./context.js";
import { part } from "./dom.js";
import { FrameMenu } from "./frame_menu.js";
import { startKeys } from "./keyboard.js";
import { MatchWalk } from "./match_walk.js";
import { NotesBox } from "./notes_box.js";
import { PartChips } from "./part_chips.js";
import { layOnPaper, takeFromPaper } from "./print.js";
import { ScopeBox } from "./scope_box.js";
import { SearchBox } from "./search_box.js";
import { nameTab, showTab, startTabs } from "./tabs.js";
import { isDark, startTheme } from "./theme.js";

/** @import { PageInfo } from "../data/page.js" */
/** @import { State, ViewName } from "../data/state.js" */
/** @import { Tree } from "../data/tree.js" */
/** @import { Graph } from "../graph/graph.js" */
/** @import { Summaries } from "../views/summary.js" */
/** @import { View } from "./context.js" */
/** @import { Folds } from "./tabs.js" */

/** Views of graphs: colours, and which way the root is, mean nothing in other views. */
const GRAPHS = ["graph", "time", "reversed", "sandwich", "compare"];
/** Views of a scope's methods; the others are tables that the page was written with. */
const SEARCHED = [...GRAPHS, "methods"];

export class Explorer {
  /**
   * @param {PageInfo} page
   * @param {Tree} tree
   * @param {Folds} folds
   * @param {Summaries} summaries
   */
  constructor(page, tree, folds, summaries) {
    const context = (this.context = new Context(page, tree, folds));
    const store = (this.store = context.store);
    /** Views that were looked at, each with the graphs in it. @type {Map<ViewName, {view: View, graphs: Graph[]}>} */
    this.views = new Map();
    /** The one that is shown. @type {ViewName | null} */
    this.view = null;
    this.coloring = new Coloring(isDark(), "kind");
    /** What the legend shows: of which profile, in which colours. @type {unknown[]} */
    this.legend = [];
    /** Between the events beforeprint and afterprint. */
    this.onPaper = false;
    /** @type {MethodsView | null} */
    this.hottest = null;
    this.walk = new MatchWalk(context);
    this.search = new SearchBox((change) => store.set(change), (step) => this.walk.go(step));
    this.scopes = new ScopeBox(context);
    this.chips = new PartChips(context);
    this.notes = new NotesBox(context);
    this.menu = new FrameMenu(context, (node) => this.notes.ask(node));
    this.summaries = summaries;
    startExport(context, (error) => this.fail("The file cannot be saved", error));
    context.pointed = (graph, node, x, y) => {
      if (node < 0) return hideTooltip();
      showTooltip(graph, node, x, y);
      if (graph.selected === node) showFrame(graph, node);
    };
    context.moved = (graph) => this.moved(graph);
    context.menuOf = (graph, node, x, y) => {
      hideTooltip();
      this.menu.open(graph, node, x, y);
    };
    context.failed = (error) => this.fail("A part of this view cannot be shown", error);
    store.changed = () => this.show();
    if (page.job?.name) nameTab("spark", page.job.name);
    startTabs((view) => context.has(view), (view) => store.go({ view }));
    startTheme(() => {
      if (!this.onPaper) this.recolor();
    });
    startKeys(this);
    /** Buttons without a key of the same meaning. @type {Record<string, () => void>} */
    const buttons = {
      reset: () => this.reset(),
      "copy-name": () => void copyName(context.active, this.shown()),
      "copy-stack": () => void copyStack(context.active, this.shown()),
      "open-sandwich": () => this.openMethod(this.shown()),
      "change-stacks": () => this.openMenu(this.shown(), part("change-stacks", HTMLButtonElement).getBoundingClientRect()),
    };
    for (const [id, action] of Object.entries(buttons)) part(id, HTMLButtonElement).addEventListener("click", action);
    document.addEventListener("click", (event) => this.follow(event));
    window.addEventListener("beforeprint", () => {
      this.onPaper = true;
      layOnPaper(this, !GRAPHS.includes(this.view ?? ""));
    });
    window.addEventListener("afterprint", () => {
      this.onPaper = false;
      takeFromPaper(context, !GRAPHS.includes(this.view ?? ""));
      this.legend = [];
      this.recolor();
    });
    this.show();
  }

  /**
   * The page's links lead to a method's callers and callees, or to a scope, perhaps with a search.
   * @param {MouseEvent} event
   */
  follow(event) {
    if (!(event.target instanceof Element) || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const link = event.target.closest('a[href^="#"]');
    if (!(link instanceof HTMLAnchorElement)) return;
    event.preventDefault();
    const { scope, q, view, method } = parseHash(link.hash);
    if (view === "sandwich") this.context.openMethod(method);
    else if (link.dataset.method) this.openHeadline(link.dataset.method, q);
    else this.context.go({ scope, q, view, regexp: false, zoom: 0, thread: "" });
    part("explorer", HTMLElement).scrollIntoView({ block: "start" });
  }

  /**
   * Shows the whole recording, zoomed to the widest frame of a method: one step for Back.
   * @param {string} method
   * @param {string} q what is searched for
   */
  openHeadline(method, q) {
    const { store } = this;
    const before = store.steps;
    store.go({ ...ALL_PARTS, scope: "", q, view: "graph", regexp: false, order: false, zoom: 0, thread: "" });
    const { profile } = this.context;
    const name = profile.names.indexOf(method);
    const { origin } = collectMethods(profile).find((one) => one.name === name) ?? { origin: 0 };
    const zoom = this.context.originOf(origin);
    if (store.steps > before) store.set({ zoom });
    else store.go({ zoom });
  }

  /** Zooms along the widest frames, as long as one has at least half of what it stands on. */
  followHottest() {
    const { active } = this.context;
    const { profile, zoomed } = active ?? {};
    if (!active?.seen || !profile || zoomed === undefined) return;
    const { total, end } = profile;
    let at = zoomed;
    for (let widest = at; ; at = widest) {
      for (let child = at + 1; child < end[at]; child = end[child]) {
        if (widest === at || total[child] > total[widest]) widest = child;
      }
      if (widest === at || total[widest] * 2 < total[at]) break;
    }
    if (at > zoomed) active.events.zoom(at);
  }

  /** Brings everything on the page into the state. */
  show() {
    part("failure", HTMLParagraphElement).hidden = true;
    try {
      this.update(this.store.state);
    } catch (error) {
      this.fail("This view cannot be shown", error);
    }
    this.moved(this.context.active);
  }

  /**
   * Another frame fills the width of a graph, or another graph is active.
   * @param {Graph | null} graph
   */
  moved(graph) {
    if (graph !== this.context.active) return;
    const { state } = this.store;
    const unzoomed = Object.entries({ ...UNZOOMED, ...ALL_PARTS }).every(([key, value]) => state[/** @type {keyof State} */ (key)] === value);
    showFrame(graph, this.shown());
    part("back", HTMLButtonElement).disabled = this.store.steps === 0;
    part("reset", HTMLButtonElement).disabled = unzoomed && !graph?.zoomed && state.q === "";
  }

  /**
   * @param {string} what
   * @param {unknown} error
   */
  fail(what, error) {
    const failure = part("failure", HTMLParagraphElement);
    failure.textContent = `${what}: ${error instanceof Error ? error.message : error}`;
    failure.hidden = false;
  }

  /** @param {State} state */
  update(state) {
    const { context } = this;
    const { profile, event, scope, scopes, thread } = context;
    const name = context.has(state.view) ? state.view : "graph";
    const within = document.activeElement?.closest('[role="tabpanel"]');
    this.showTools({ ...state, view: name });
    showTab(name);
    context.folds.show(state.folds);
    this.scopes.update();
    this.chips.update();
    context.matches = this.search.run(profile, state, name === "graph" || name === "time" ? profile.present(context.shownAt(state.zoom)) : 0);
    const { view, graphs } = this.viewOf(name);
    const arrives = name !== this.view;
    if (arrives && this.view) {
      // The view before frees its memory first.
      const left = this.views.get(this.view);
      for (const graph of left?.graphs ?? []) graph.leave();
      left?.view.leave?.();
    }
    this.view = name;
    for (const graph of context.graphs) {
      graph.turn(state.flame);
      graph.highlight(context.matches);
    }
    view.update(state);
    if (arrives) for (const graph of graphs) graph.arrive();
    this.walk.update();
    this.notes.update();
    for (const id of ["match-before", "match-next"]) part(id, HTMLButtonElement).hidden = !context.matches || !context.active;
    // What the page says first is of the whole run.
    const scoped = scope.key !== scopes.whole.key || thread >= 0 || (state.view === "compare" && state.with !== "");
    this.summaries.show(event, scoped || context.part !== "");
    void this.showHottest(name === "graph" && scopes.hasEvent(event));
    const ordered = name === "graph" && this.isOrdered;
    part("wider", HTMLSpanElement).textContent = ordered ? "time on the clock" : context.page.events[event].wider;
    this.recolor();
    if (within instanceof HTMLElement && within.hidden) this.enter();
  }

  /**
   * The hottest methods of what is shown, below the flame graph; they come after the picture.
   * @param {boolean} wanted
   */
  async showHottest(wanted) {
    const section = part("hottest", HTMLElement);
    if (!wanted) section.hidden = true;
    await pictureDrawn();
    if (!wanted || this.view !== "graph") return;
    try {
      this.hottest ??= new MethodsView(this.context, part("hottest-tables", HTMLDivElement), "hottest-methods");
      this.hottest.update(this.store.state);
      section.hidden = false;
    } catch (error) {
      this.fail("The hottest methods cannot be shown", error);
    }
  }

  /**
   * A view, made when it is first shown, and its graphs.
   * @param {ViewName} name
   */
  viewOf(name) {
    const { context } = this;
    let shown = this.views.get(name);
    if (!shown) {
      const before = context.graphs.length;
      const view = new VIEWS_BY_NAME[name](context, part(`${name}-panel`, HTMLDivElement));
      shown = { view, graphs: context.graphs.slice(before) };
      this.views.set(name, shown);
    }
    if (!context.active || !shown.graphs.includes(context.active)) context.active = shown.graphs[0] ?? null;
    return shown;
  }

  /** Moves the focus into the view: to its graph, or before its tables. */
  enter() {
    const { active } = this.context;
    const panel = part(`${this.view}-panel`, HTMLDivElement);
    panel.tabIndex = -1;
    // With keys one chooses a range first.
    if (this.view === "time" && active?.seen) return part("heat", HTMLDivElement).focus();
    const graph = active?.seen && GRAPHS.includes(this.view ?? "");
    (graph ? active.sheet.scroller : panel).focus();
  }

  /** @param {State} state */
  showTools({ view, flame, color, full }) {
    const untimed = view === "time" && this.context.page.time === null;
    const graphs = GRAPHS.includes(view) && !untimed;
    const searched = SEARCHED.includes(view) && !untimed;
    const nothing = !this.context.scopes.hasEvent(this.context.event);
    const shown = {
      tools: searched, "scope-note": searched || nothing, status: graphs,
      turn: graphs && view !== "sandwich", color: graphs && view !== "compare",
      "by-category": graphs && view !== "compare", legend: graphs && view !== "compare",
      "in-order": view === "graph" && this.context.hasTimes, "hottest-path": graphs,
      "by-ipc": graphs && view !== "compare" && this.context.ipc !== null,
    };
    for (const [id, wanted] of Object.entries(shown)) part(id, HTMLElement).hidden = !wanted;
    const pressed = {
      "in-order": this.isOrdered, turn: flame, color: color === "package", "by-category": color === "category", "by-ipc": color === "ipc", expand: full,
    };
    for (const [id, on] of Object.entries(pressed)) part(id, HTMLElement).setAttribute("aria-pressed", String(on));
    part("explorer", HTMLElement).classList.toggle("nothing", nothing);
    part("explorer", HTMLElement).classList.toggle("working", view !== INITIAL.view);
    part("explorer", HTMLElement).classList.toggle("expanded", full);
  }

  /** The frame that the status line describes. */
  shown() {
    const graph = this.context.active;
    return graph ? (graph.selected >= 0 ? graph.selected : graph.zoomed) : -1;
  }

  /** The frame that a key acts on. */
  meant() {
    return this.context.active?.meant() ?? -1;
  }

  /** @param {number} node */
  openMethod(node) {
    const method = this.context.active?.methodOf(node) || this.store.state.method;
    this.store.go({ view: "sandwich", method });
  }

  /** @param {"package" | "category" | "ipc"} by; again: by kind */
  turnColor(by) {
    this.store.set({ color: this.store.state.color === by ? "kind" : by });
  }

  /** In the colours chosen, light or dark. */
  recolor() {
    const { context } = this;
    const dark = isDark();
    const coloring = context.coloring(dark);
    if (!coloring.isLike(this.coloring)) this.coloring = coloring;
    for (const graph of context.graphs) graph.recolor(this.coloring);
    if (this.view) this.views.get(this.view)?.view.recolor?.(dark);
    const shown = this.legend[0] === context.profile && this.legend[1] === this.coloring;
    if (shown || part("legend", HTMLUListElement).hidden) return;
    this.legend = [context.profile, this.coloring];
    showLegend(context.profile, this.coloring, (category) => this.turnCategory(categoryCode(category)));
  }

  /** @param {string} code of the only category that is shown; again: all */
  turnCategory(code) {
    this.store.go({ category: this.store.state.category === code ? "" : code });
  }

  /** Shows the category of the frame that a key acts on alone, or all categories again. */
  turnMeant() {
    const { active, category, event, page, tree } = this.context;
    if (category >= 0) return this.store.go({ category: "" });
    const node = this.meant();
    if (active?.profile?.shape !== tree || node < 1 || !isWork(page.events[event].name)) return;
    this.turnCategory(categoryCode(active.profile.categories[node]));
  }

  /**
   * Opens the menu of a frame below a box, or below the frame.
   * @param {number} node
   * @param {{left: number, bottom: number}} [box]
   */
  openMenu(node, box) {
    const { active } = this.context;
    if (!active?.seen) return;
    const { left, bottom } = box ?? active.placeOf(node);
    this.context.menuOf(active, node, left, bottom);
  }

  /** Whether the flame graph has its frames in the order of time: several threads have none. */
  get isOrdered() {
    return this.store.state.order && this.context.ofOneThread !== null;
  }

  /** Shows frames in the order of time, of the process and the threads with most of what is shown if several are chosen. */
  turnOrder() {
    const { context } = this;
    if (this.view !== "graph" || !context.hasTimes) return;
    context.go(this.isOrdered ? { order: false } : { order: true, ...context.oneThread() });
  }

  turnIdle() {
    if (this.context.idleShare > 0) this.store.go({ idle: !this.store.state.idle });
  }

  expand() {
    this.store.set({ full: !this.store.state.full });
  }

  help() {
    const help = part("keys", HTMLDialogElement);
    if (help.open) return help.close();
    help.showModal();
    help.scrollTop = 0; // the button that has the focus now is at its end
  }

  reset() {
    this.store.go({ ...UNZOOMED, ...ALL_PARTS, q: "" });
    this.zoomOut();
  }

  /** Each graph knows where its zoom is kept. */
  zoomOut() {
    const { active } = this.context;
    if (active && active.zoomed > 0) active.events.zoom(0);
  }

  /** Ends the search, else the zoom, else the category, else the last change of stacks, else the range, else the full window. In a field Esc only leaves the field. */
  escape() {
    hideTooltip();
    const { state } = this.store;
    if (state.q) this.store.set({ q: "" });
    else if (this.context.active?.zoomed) this.zoomOut();
    else if (state.zoom) this.store.go({ zoom: 0 });
    else if (this.context.category >= 0) this.store.go({ category: "" });
    else if (this.context.transforms.length) this.store.go({ changes: formatTransforms(this.context.transforms.slice(0, -1)) });
    else if (this.context.part) this.store.go(ALL_TIME);
    else if (state.full) this.expand();
  }
}
