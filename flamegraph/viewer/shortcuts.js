// @ts-check
/** The keys of the page. Those without an action belong to graphs, and are listed only. */

import { part } from "./dom.js";
import { copyName, copyStack } from "./frame_line.js";
import { hasSections } from "./sections.js";

/** @typedef {import("./explorer.js").Explorer} Explorer */
/** @typedef {import("./key_list.js").Shortcut} Shortcut */
/** @typedef {import("./state.js").ViewName} ViewName */

/**
 * @param {Explorer} explorer
 * @returns {Shortcut[]}
 */
export function shortcutsOf(explorer) {
  const { store } = explorer;
  const view = (/** @type {ViewName} */ name) => () => hasSections(name) && store.go({ view: name });
  const within = (/** @type {() => unknown} */ shown) => () => {
    if (shown() !== false) explorer.enter();
  };
  return [
    { keys: ["/"], what: "search", act: () => explorer.search.focus() },
    { keys: ["Escape"], shown: ["Esc"], what: "end the search, then the zoom", act: () => explorer.escape() },
    { keys: [], shown: ["←", "→", "↑", "↓"], what: "walk over frames, in a graph" },
    { keys: [], shown: ["Enter"], what: "zoom to the chosen frame" },
    { keys: ["Backspace"], what: "one step back", act: () => store.back() },
    { keys: ["0"], what: "zoom all the way out", act: () => explorer.zoomOut() },
    { keys: ["g"], what: "flame graph", act: within(view("graph")) },
    { keys: ["r"], what: "reversed: from the leaves to their callers", act: within(view("reversed")) },
    { keys: ["s"], what: "callers and callees of the frame", act: within(() => explorer.openMethod(explorer.meant())) },
    { keys: ["m"], what: "methods", act: within(view("methods")) },
    { keys: ["h"], what: "hosts", act: within(view("hosts")) },
    { keys: ["d"], what: "compare two scopes", act: within(view("compare")) },
    { keys: ["w"], what: "choose what is shown: cluster, host, process", act: () => explorer.scopes.focus() },
    { keys: ["c"], what: "copy the frame's name", act: () => void copyName(explorer.context.active, explorer.meant()) },
    { keys: ["C"], shown: ["Shift", "c"], what: "copy the whole stack", act: () => void copyStack(explorer.context.active, explorer.meant()) },
    { keys: ["i"], what: "root at the top or the bottom", act: () => store.set({ flame: !store.state.flame }) },
    { keys: ["p"], what: "colours by kind or by package", act: () => explorer.turnColor() },
    { keys: ["e"], what: "fill the window", act: () => explorer.expand() },
    { keys: ["t"], what: "dark or light", act: () => part("theme", HTMLButtonElement).click() },
    { keys: ["?"], what: "this list", act: () => explorer.help() },
  ];
}
