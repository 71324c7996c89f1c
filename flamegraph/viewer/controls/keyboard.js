// @ts-check
/** The keys of the page, the buttons that mean the same, and the dialog that lists the keys. */

import { copyName, copyStack } from "../graph/frame_details.js";
import { make, part } from "./dom.js";

/** @import { ViewName } from "../data/state.js" */
/** @import { Explorer } from "./explorer.js" */

/**
 * `keys` as KeyboardEvent.key names them; `shown` where they are written otherwise. Without `act` the key belongs to
 * the graph or to the browser, and is only listed. `button` is the id of a button that does the same.
 * @typedef {{keys: string[], shown?: string[], what: string, act?: () => void, button?: string}} Shortcut
 */

/**
 * Lists the keys, and obeys single ones wherever nothing is typed.
 * @param {Explorer} explorer
 */
export function startKeys(explorer) {
  const shortcuts = shortcutsOf(explorer);
  const items = shortcuts.flatMap(({ keys, shown, what }) => {
    const term = make("dt");
    for (const key of shown ?? keys) term.append(make("kbd", "", key), " ");
    return [term, make("dd", "", what)];
  });
  part("keys-list", HTMLDListElement).replaceChildren(...items);
  for (const { button, act } of shortcuts) if (button && act) part(button, HTMLButtonElement).addEventListener("click", act);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const target = event.target instanceof HTMLElement ? event.target : document.body;
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName);
    if (typing && event.key === "Escape") target.blur();
    if (typing) return;
    const shortcut = shortcuts.find(({ keys, act }) => act && keys.includes(event.key));
    if (!shortcut?.act) return;
    event.preventDefault();
    shortcut.act();
  });
}

/**
 * @param {Explorer} explorer
 * @returns {Shortcut[]}
 */
function shortcutsOf(explorer) {
  const { store } = explorer;
  const view = (/** @type {ViewName} */ name) => () => explorer.context.has(name) && store.go({ view: name });
  const within = (/** @type {() => unknown} */ shown) => () => {
    if (shown() !== false) explorer.enter();
  };
  return [
    { keys: ["/"], what: "search", act: () => explorer.search.focus() },
    { keys: ["n"], what: "next match, the widest first", act: () => explorer.walk.go(1), button: "match-next" },
    { keys: ["N"], shown: ["Shift", "n"], what: "previous match", act: () => explorer.walk.go(-1), button: "match-before" },
    { keys: ["Escape"], shown: ["Esc"], what: "end the search, then the zoom, the category, the changes of stacks, the range", act: () => explorer.escape() },
    { keys: [], shown: ["←", "→", "↑", "↓"], what: "move between frames of a graph" },
    { keys: [], shown: ["Enter"], what: "zoom to the selected frame" },
    { keys: ["Backspace"], what: "one step back", act: () => store.back(), button: "back" },
    { keys: ["f"], what: "hottest path: zoom along the widest frames", act: () => explorer.followHottest(), button: "hottest-path" },
    { keys: ["0"], what: "zoom all the way out", act: () => explorer.zoomOut() },
    { keys: ["g"], what: "flame graph", act: within(view("graph")) },
    { keys: ["l"], what: "time: heat map and timeline", act: within(view("time")) },
    { keys: ["r"], what: "reversed: from the leaves to their callers", act: within(view("reversed")) },
    { keys: ["s"], what: "callers and callees of the frame", act: within(() => explorer.openMethod(explorer.meant())) },
    { keys: ["m"], what: "methods", act: within(view("methods")) },
    { keys: ["h"], what: "hosts", act: within(view("hosts")) },
    { keys: ["d"], what: "compare two scopes", act: within(view("compare")) },
    { keys: ["o"], what: "work by category: hosts, stages, processes", act: within(view("work")) },
    { keys: ["v"], what: "machines: metrics of hosts", act: within(view("machines")) },
    { keys: ["j"], what: "Spark: stages, blocked time, executors", act: within(view("spark")) },
    { keys: ["w"], what: "choose a scope: cluster, host, process", act: () => explorer.scopes.focus() },
    { keys: ["x"], what: "skip, drop, collapse, or show the frame's stacks alone", act: () => explorer.openMenu(explorer.meant()) },
    { keys: ["a"], what: "pin a note to the frame, or to the range", act: () => explorer.notes.ask(explorer.meant()) },
    { keys: ["z"], what: "show or hide threads that wait for work", act: () => explorer.turnIdle() },
    { keys: ["c"], what: "copy the name of the frame", act: () => void copyName(explorer.context.active, explorer.meant()) },
    { keys: ["C"], shown: ["Shift", "c"], what: "copy the whole stack", act: () => void copyStack(explorer.context.active, explorer.meant()) },
    { keys: ["i"], what: "root at the top or the bottom", act: () => store.set({ flame: !store.state.flame }), button: "turn" },
    { keys: ["u"], what: "frames in the order of time, of one group of threads", act: () => explorer.turnOrder(), button: "in-order" },
    { keys: ["p"], what: "colours by kind or by package", act: () => explorer.turnColor("package"), button: "color" },
    { keys: ["k"], what: "colours by category of work", act: () => explorer.turnColor("category"), button: "by-category" },
    { keys: ["K"], shown: ["Shift", "k"], what: "only the frame's category of work, or all again", act: () => explorer.turnMeant() },
    { keys: ["y"], what: "colours by instructions per cycle, where both are recorded", act: () => explorer.turnColor("ipc"), button: "by-ipc" },
    { keys: ["e"], what: "fill the window", act: () => explorer.expand(), button: "expand" },
    { keys: ["t"], what: "dark or light", act: () => part("theme", HTMLButtonElement).click() },
    { keys: ["?"], what: "this list", act: () => explorer.help(), button: "help" },
  ];
}
