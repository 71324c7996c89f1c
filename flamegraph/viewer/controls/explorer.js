// @ts-check
/** Ties the page together: the state says what to show, the views say what the user did. */

import { INITIAL, MOST_ROWS, parseHash, UNZOOMED } from "../data/state.js";
import { startExport } from "../export/export_menu.js";
import { Coloring, showLegend } from "../graph/colors.js";
import { copyName, copyStack, hideTooltip, showFrame, showTooltip } from "../graph/frame_details.js";
import { followRow } from "../views/table.js";
import { VIEWS_BY_NAME } from "../views/views.js";
import { Context } from "./context.js";
import { part } from "./dom.js";
import { listKeys, obeyKeys, shortcutsOf } from "./keyboard.js";
import { layOnPaper, takeFromPaper } from "./print.js";
import { ScopeBox } from "./scope_box.js";
import { SearchBox } from "./search_box.js";
import { hideTabs, showTab, startTabs } from "./tabs.js";
import { isDark, startTheme } from "./theme.js";

/** @import { PageInfo } from "../data/page.js" */
/** @import { State, ViewName } from "../data/state.js" */
/** @import { Tree } from "../data/tree.js" */
/** @import { Graph } from "../graph/graph.js" */
/** @import { Summaries } from "../views/summary.js" */
/** @import { View } from "./context.js" */
/** @import { Folds } from "./tabs.js" */

/** Views of graphs: colours, and which way the root is, mean nothing elsewhere. */
const GRAPHS = ["graph", "reversed", "sandwich", "compare"];
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
    this.context = new Context(page, tree, folds);
    this.store = this.context.store;
    /** Views that were looked at, each with the graphs in it. @type {Map<ViewName, {view: View, graphs: Graph[]}>} */
    this.views = new Map();
    /** The one that is shown. @type {ViewName | null} */
    this.view = null;
    this.coloring = new Coloring(isDark(), "kind");
    /** What the legend shows: of which profile, in which colours. @type {unknown[]} */
    this.legend = [];
    this.search = new SearchBox((change) => this.store.set(change));
    this.scopes = new ScopeBox(this.context);
    startExport(this.context, (error) => this.fail("That cannot be saved", error));
    this.context.pointed = (graph, node, x, y) => this.pointAt(graph, node, x, y);
    this.context.moved = (graph) => this.moved(graph);
    this.context.failed = (error) => this.fail("This picture cannot be shown whole", error);
    this.summaries = summaries;
    hideTabs((view) => this.context.has(view));
    startTabs((view) => this.store.go({ view }));
    startTheme(() => this.recolor(this.store.state));
    this.store.listen((state, before) => this.show(state, before));
    this.listen();
  }

  start() {
    this.show(this.store.state, null);
  }

  listen() {
    const { store } = this;
    /** @type {Record<string, () => void>} */
    const buttons = {
      back: () => store.back(),
      reset: () => this.reset(),
      turn: () => store.set({ flame: !store.state.flame }),
      color: () => this.turnColor(),
      expand: () => this.expand(),
      "copy-name": () => void copyName(this.context.active, this.shown()),
      "copy-stack": () => void copyStack(this.context.active, this.shown()),
      "open-sandwich": () => this.openMethod(this.shown()),
      help: () => this.help(),
    };
    for (const [id, action] of Object.entries(buttons)) {
      part(id, HTMLButtonElement).addEventListener("click", action);
    }
    const shortcuts = shortcutsOf(this);
    listKeys(shortcuts);
    obeyKeys(shortcuts);
    document.addEventListener("click", (event) => this.follow(event));
    window.addEventListener("beforeprint", () => this.print(true));
    window.addEventListener("afterprint", () => this.print(false));
  }

  /**
   * The page's links lead into the viewer: a method's callers and callees in what is shown, or a scope, and perhaps a
   * method searched in it.
   * @param {MouseEvent} event
   */
  follow(event) {
    if (!(event.target instanceof Element) || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (event.target.closest("section.hottest tbody")) followRow(event.target);
    const link = event.target.closest('a[href^="#"]');
    if (!(link instanceof HTMLAnchorElement)) return;
    event.preventDefault();
    const { scope, query, view, method } = parseHash(link.hash);
    if (view === "sandwich") this.context.openMethod(method);
    else this.store.go({ scope, query, view, regexp: false, zoom: 0, thread: -1 });
    part("explorer", HTMLElement).scrollIntoView({ block: "start" });
  }

  /**
   * Brings everything on the page into the given state.
   * @param {State} state
   * @param {State | null} before null at the start
   */
  show(state, before) {
    part("failure", HTMLParagraphElement).hidden = true;
    try {
      this.update(state, before);
    } catch (error) {
      this.fail("This picture cannot be shown", error);
    }
    this.moved(this.context.active);
  }

  /**
   * Another frame fills the width of a graph, or another graph is spoken of.
   * @param {Graph | null} graph
   */
  moved(graph) {
    if (graph !== this.context.active) return;
    const { state } = this.store;
    const zoomed = graph?.zoomed ?? 0;
    showFrame(graph, this.shown());
    part("back", HTMLButtonElement).disabled = this.store.steps === 0;
    part("reset", HTMLButtonElement).disabled = isUnzoomed(state) && zoomed === 0 && state.query === "";
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

  /**
   * @param {State} state
   * @param {State | null} before
   */
  update(state, before) {
    const { context } = this;
    const profile = context.profile;
    const name = this.nameOfView(state);
    const within = document.activeElement?.closest('[role="tabpanel"]');
    this.showTools({ ...state, view: name });
    showTab(name);
    this.context.folds.show(state.folds);
    this.scopes.update();
    context.matches = this.search.run(profile, state, name === "graph" ? profile.present(state.zoom) : 0);
    const view = this.viewOf(name);
    const arrived = this.leave(name);
    for (const graph of context.graphs) {
      graph.turn(state.flame);
      graph.highlight(context.matches);
    }
    view.update(state, before);
    for (const graph of arrived) graph.arrive();
    this.showEvent(context.event);
    this.recolor(state);
    if (within instanceof HTMLElement && within.hidden) this.enter();
  }

  /** The keyboard goes on in what is shown: in its graph, where arrows walk, or before its tables. */
  enter() {
    const { active } = this.context;
    const name = this.nameOfView(this.store.state);
    const panel = part(`${name}-panel`, HTMLDivElement);
    panel.tabIndex = -1;
    const graph = GRAPHS.includes(name) && active?.seen;
    (graph ? active.sheet.scroller : panel).focus();
  }

  /**
   * Before another view is shown the one before lets go of what it takes memory for.
   * @param {ViewName} name
   * @returns {Graph[]} those that are to be seen again
   */
  leave(name) {
    if (name === this.view) return [];
    const left = this.view && this.views.get(this.view);
    for (const graph of left?.graphs ?? []) graph.leave();
    left?.view.leave?.();
    this.view = name;
    return this.views.get(name)?.graphs ?? [];
  }

  /** @param {ViewName} name */
  viewOf(name) {
    const { context } = this;
    let shown = this.views.get(name);
    if (!shown) {
      const before = context.graphs.length;
      const view = new VIEWS_BY_NAME[name](context, part(`${name}-panel`, HTMLDivElement));
      shown = { view, graphs: context.graphs.slice(before) };
      this.views.set(name, shown);
    }
    const { view, graphs } = shown;
    if (!context.active || !graphs.includes(context.active)) context.active = graphs[0] ?? null;
    return view;
  }

  /** @param {State} state */
  showTools(state) {
    const graphs = GRAPHS.includes(state.view);
    const nothing = !this.context.scopes.hasEvent(this.context.event);
    part("explorer", HTMLElement).classList.toggle("nothing", nothing);
    part("tools", HTMLDivElement).hidden = !SEARCHED.includes(state.view);
    part("scope-note", HTMLParagraphElement).hidden = !nothing && !SEARCHED.includes(state.view);
    part("turn", HTMLButtonElement).hidden = !graphs || state.view === "sandwich";
    part("color", HTMLButtonElement).hidden = !graphs || state.view === "compare";
    part("status", HTMLDivElement).hidden = !graphs;
    part("legend", HTMLUListElement).hidden = !graphs || state.view === "compare";
    part("turn", HTMLButtonElement).setAttribute("aria-pressed", String(state.flame));
    part("color", HTMLButtonElement).setAttribute("aria-pressed", String(state.color === "package"));
    part("explorer", HTMLElement).classList.toggle("expanded", state.full);
    part("expand", HTMLButtonElement).setAttribute("aria-pressed", String(state.full));
  }

  /** @param {number} event */
  showEvent(event) {
    this.summaries.show(event, this.isWhole());
    const { wider } = this.context.page.events[event];
    part("wider", HTMLSpanElement).textContent = wider;
  }

  /**
   * The view that is shown: the flame graph where the page has nothing for the one asked for.
   * @param {State} state
   */
  nameOfView({ view }) {
    return this.context.has(view) ? view : "graph";
  }

  /** Whether what is shown is what the page began with: all of the cluster, or the comparison of both runs. */
  isWhole() {
    const { scope, scopes, thread, state } = this.context;
    if (state.view !== INITIAL.view || scope.key !== scopes.whole.key || thread >= 0) return false;
    return state.view !== "compare" || state.with === "";
  }

  /**
   * @param {Graph} graph
   * @param {number} node
   * @param {number} x client pixels
   * @param {number} y client pixels
   */
  pointAt(graph, node, x, y) {
    if (node < 0) return hideTooltip();
    showTooltip(graph, node, x, y);
    if (graph.selected === node) showFrame(graph, node);
  }

  /** The frame that the line below speaks of. */
  shown() {
    const graph = this.context.active;
    return graph ? (graph.selected >= 0 ? graph.selected : graph.zoomed) : -1;
  }

  /** The frame meant by a key. */
  meant() {
    return this.context.active?.meant() ?? -1;
  }

  /** @param {number} node */
  openMethod(node) {
    const method = this.context.active?.methodOf(node) || this.store.state.method;
    this.store.go({ view: "sandwich", method });
  }

  turnColor() {
    this.store.set({ color: this.store.state.color === "kind" ? "package" : "kind" });
  }

  /** @param {State} state */
  recolor(state) {
    const { context } = this;
    const dark = isDark();
    if (dark !== this.coloring.dark || state.color !== this.coloring.by) this.coloring = new Coloring(dark, state.color);
    for (const graph of context.graphs) graph.recolor(this.coloring);
    const shown = this.legend[0] === context.profile && this.legend[1] === this.coloring;
    if (shown || part("legend", HTMLUListElement).hidden) return;
    this.legend = [context.profile, this.coloring];
    showLegend(context.profile, this.coloring);
  }

  /** @param {boolean} begins whether the page is about to be printed, or has been */
  print(begins) {
    const { state } = this.store;
    const shown = this.nameOfView(state);
    const beside = !GRAPHS.includes(shown);
    if (begins) this.updateTables(shown);
    if (beside) this.setBeside(begins);
    if (begins) {
      layOnPaper(this.context, beside);
    } else {
      takeFromPaper(this.context);
      this.legend = [];
      this.recolor(state);
    }
  }

  /**
   * Hosts and run are printed with every view: as of what that shows, but in their own order.
   * @param {ViewName} shown
   */
  updateTables(shown) {
    const { active } = this.context;
    for (const view of /** @type {ViewName[]} */ (["hosts", "run"])) {
      if (view === shown || !this.context.has(view)) continue;
      this.viewOf(view).update({ ...this.store.state, sort: "", rows: MOST_ROWS }, null);
    }
    this.context.active = active;
  }

  /**
   * The flame graph stands below a view of tables on paper.
   * @param {boolean} shown
   */
  setBeside(shown) {
    part("graph-panel", HTMLDivElement).hidden = !shown;
    part("legend", HTMLUListElement).hidden = !shown;
    const { active } = this.context;
    if (shown) this.viewOf("graph").update(this.store.state, null);
    this.context.active = active;
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
    this.store.go({ ...UNZOOMED, query: "" });
    this.zoomOut();
  }

  /** Each graph knows where its zoom is kept. */
  zoomOut() {
    const { active } = this.context;
    if (active && active.zoomed > 0) active.events.zoom(0);
  }

  /** Out of whatever is innermost: search, then zoom, then the full window. From a field Esc leads out of that alone. */
  escape() {
    hideTooltip();
    const { state } = this.store;
    const { active } = this.context;
    if (state.query) this.store.set({ query: "" });
    else if (active && active.zoomed > 0) this.zoomOut();
    else if (state.zoom) this.store.go({ zoom: 0 });
    else if (state.full) this.expand();
  }
}

/**
 * Whether every graph has its whole width.
 * @param {State} state
 */
function isUnzoomed(state) {
  const kept = /** @type {(keyof typeof UNZOOMED)[]} */ (Object.keys(UNZOOMED));
  return kept.every((key) => state[key] === UNZOOMED[key]);
}
