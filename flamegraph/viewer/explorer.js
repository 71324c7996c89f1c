// @ts-check
/** Ties the views together: the state says what to show, the views say what the user did. */

import { loadProfile } from "./data.js";
import { copyText, part } from "./dom.js";
import { percent, quantity } from "./format.js";
import { Graph } from "./graph.js";
import { walk } from "./keys.js";
import { showLegend } from "./legend.js";
import { MethodsView } from "./methods_view.js";
import { showScope, startScopes } from "./scope_box.js";
import { SearchBox } from "./search_box.js";
import { parseHash, Store } from "./state.js";
import { isDark, startTheme } from "./theme.js";
import { hideTooltip, nameElement, showTooltip } from "./tooltip.js";

/** @typedef {import("./profile.js").Profile} Profile */
/** @typedef {import("./data.js").Scope} Scope */
/** @typedef {import("./state.js").State} State */

export class Explorer {
  /** @param {Scope[]} scopes at least one */
  constructor(scopes) {
    this.scopes = scopes;
    /** @type {Profile | null} */
    this.profile = null;
    /** @type {Scope | null} */
    this.scope = null;
    this.store = new Store();
    this.graph = new Graph({
      zoom: (node) => this.store.go({ zoom: node }),
      point: (node, x, y) => this.pointAt(node, x, y),
    });
    this.methods = new MethodsView({
      find: (name) => this.store.go({ query: `"${name}"`, regexp: false, view: "graph", zoom: 0 }),
      sort: (sort) => this.store.set({ sort }),
    });
    this.search = new SearchBox((change) => this.store.set(change));
    startScopes(scopes, (scope) => void this.change(scope));
    startTheme(part("theme", HTMLButtonElement), () => this.recolor());
    this.store.listen((state, before) => void this.show(state, before));
    this.listen();
  }

  async start() {
    await this.show(this.store.state, null);
    document.documentElement.dataset.ready = "true";
  }

  listen() {
    const { store } = this;
    /** @type {Record<string, () => void>} */
    const buttons = {
      back: () => store.back(),
      reset: () => store.go({ zoom: 0, query: "" }),
      turn: () => store.set({ flame: !store.state.flame }),
      expand: () => this.expand(),
      "view-graph": () => store.go({ view: "graph" }),
      "view-methods": () => store.go({ view: "methods" }),
      "copy-name": () => void this.copyName(),
      help: () => this.help(),
    };
    for (const [id, action] of Object.entries(buttons)) {
      part(id, HTMLButtonElement).addEventListener("click", action);
    }
    document.addEventListener("keydown", (event) => this.key(event));
    document.addEventListener("click", (event) => this.follow(event));
  }

  /**
   * The tables' links lead into the viewer: a scope, and perhaps a method searched in it.
   * @param {MouseEvent} event
   */
  follow(event) {
    const link = event.target instanceof Element ? event.target.closest('a[href^="#"]') : null;
    if (!(link instanceof HTMLAnchorElement) || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const { scope, query } = parseHash(link.hash);
    this.store.go({ scope, query, regexp: false, zoom: 0, view: "graph" });
    part("explorer", HTMLElement).scrollIntoView({ block: "start" });
  }

  /**
   * Brings everything on the page into the given state.
   * @param {State} state
   * @param {State | null} before null at the start
   */
  async show(state, before) {
    const scope = this.scopes.find((one) => one.id === state.scope) ?? this.scopes[0];
    if (scope !== this.scope && !(await this.enter(scope))) return;
    const profile = this.profile;
    if (!profile) return;
    if (state.zoom >= profile.count) return this.store.set({ zoom: 0 });
    const matches = this.search.run(profile, state);
    this.graph.turn(state.flame);
    if (before && before.scope === state.scope) this.graph.zoom(state.zoom);
    else this.graph.jump(state.zoom);
    this.graph.highlight(matches);
    this.showView(state);
    if (state.view === "methods") this.methods.update(state.sort, matches);
    this.showFrame(state.zoom);
    part("back", HTMLButtonElement).disabled = this.store.steps === 0;
    part("reset", HTMLButtonElement).disabled = state.zoom === 0 && state.query === "";
  }

  /**
   * Another scope, zoomed to the same path where it has one.
   * @param {string} id
   */
  async change(id) {
    const path = this.profile ? this.profile.pathOf(this.graph.zoomed) : [];
    const scope = this.scopes.find((one) => one.id === id) ?? this.scopes[0];
    const profile = await loadProfile(scope.data).catch(() => null);
    this.store.go({ scope: id, zoom: profile ? profile.find(path) : 0 });
  }

  /**
   * @param {Scope} scope
   * @returns {Promise<boolean>} false when its profile cannot be read, or another scope was asked for meanwhile
   */
  async enter(scope) {
    const failure = part("failure", HTMLParagraphElement);
    failure.hidden = true;
    /** @type {Profile} */
    let profile;
    try {
      profile = await loadProfile(scope.data);
    } catch (error) {
      failure.textContent = `This picture cannot be shown: ${error instanceof Error ? error.message : error}`;
      failure.hidden = false;
      return false;
    }
    const wanted = this.scopes.find((one) => one.id === this.store.state.scope) ?? this.scopes[0];
    if (wanted !== scope) return false;
    this.scope = scope;
    this.profile = profile;
    showScope(scope);
    this.recolor();
    this.graph.show(profile, `${scope.label} · ${quantity(profile.sum(), profile.values[0])}`);
    this.methods.show(profile);
    return true;
  }

  /** @param {State} state */
  showView(state) {
    for (const view of ["graph", "methods"]) {
      part(`view-${view}`, HTMLButtonElement).setAttribute("aria-pressed", String(view === state.view));
      part(`${view}-panel`, HTMLDivElement).hidden = view !== state.view;
    }
    part("turn", HTMLButtonElement).setAttribute("aria-pressed", String(state.flame));
  }

  /**
   * The line below the graph: the frame in view or chosen.
   * @param {number} node
   */
  showFrame(node) {
    const profile = this.profile;
    if (!profile) return;
    const chosen = node > 0;
    part("frame-hint", HTMLParagraphElement).hidden = chosen;
    part("frame-chosen", HTMLParagraphElement).hidden = !chosen;
    if (!chosen) return;
    part("frame-name", HTMLSpanElement).replaceChildren(nameElement(profile.nameOf(node)));
    const total = percent(profile.total[0][node], profile.sum());
    const self = percent(profile.self[0][node], profile.sum());
    part("frame-cost", HTMLSpanElement).textContent = `${total} total, ${self} self`;
  }

  /**
   * @param {number} node
   * @param {number} x
   * @param {number} y
   */
  pointAt(node, x, y) {
    if (!this.profile || node < 0) return hideTooltip();
    showTooltip(this.profile, node, this.graph.zoomed, x, y);
    if (this.graph.selected === node) this.showFrame(node);
  }

  /** The frame meant by a key: under the pointer, chosen by arrows, or in view. */
  meant() {
    const { hovered, selected, zoomed } = this.graph;
    return hovered >= 0 ? hovered : selected >= 0 ? selected : zoomed;
  }

  /** @param {number} [node] */
  async copyName(node = this.graph.selected >= 0 ? this.graph.selected : this.graph.zoomed) {
    if (!this.profile || node <= 0) return;
    await copyText(this.profile.nameOf(node));
    const button = part("copy-name", HTMLButtonElement);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy name"), 1200);
  }

  recolor() {
    this.graph.recolor(isDark());
    if (this.profile) showLegend(this.profile, isDark());
  }

  expand() {
    const expanded = part("explorer", HTMLElement).classList.toggle("expanded");
    part("expand", HTMLButtonElement).setAttribute("aria-pressed", String(expanded));
  }

  help() {
    const help = part("keys", HTMLDialogElement);
    if (help.open) help.close();
    else help.showModal();
  }

  /** Out of whatever is innermost: search, then zoom, then the full window. */
  escape() {
    const { state } = this.store;
    if (state.query) this.store.set({ query: "" });
    else if (state.zoom) this.store.go({ zoom: 0 });
    else if (part("explorer", HTMLElement).classList.contains("expanded")) this.expand();
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const target = event.target instanceof HTMLElement ? event.target : document.body;
    if (event.ctrlKey || event.metaKey || event.altKey || part("keys", HTMLDialogElement).open) return;
    if (event.key === "Escape") {
      this.escape();
      this.search.input.blur();
      return;
    }
    if (/^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName)) return;
    if (target === this.graph.scroller && this.graphKey(event.key)) return event.preventDefault();
    const { store } = this;
    /** @type {Record<string, () => void>} */
    const keys = {
      "/": () => this.search.focus(),
      "?": () => this.help(),
      "0": () => store.go({ zoom: 0 }),
      Backspace: () => store.back(),
      c: () => void this.copyName(this.meant()),
      e: () => this.expand(),
      g: () => store.go({ view: "graph" }),
      i: () => store.set({ flame: !store.state.flame }),
      m: () => store.go({ view: "methods" }),
      t: () => part("theme", HTMLButtonElement).click(),
    };
    const action = keys[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  /**
   * @param {string} key
   * @returns {boolean} whether it meant something to the graph
   */
  graphKey(key) {
    if (key === "Enter" && this.graph.selected >= 0) {
      this.store.go({ zoom: this.graph.selected });
      return true;
    }
    return walk(this.graph, key);
  }
}
