// @ts-check
/** All keys in one list: what the page obeys and what its help tells are the same. */

import { make, part } from "./dom.js";

/**
 * `keys` as KeyboardEvent.key names them; `shown` where they are written otherwise. Without `act` the key belongs to
 * the graph or to the browser, and is only told.
 * @typedef {{keys: string[], shown?: string[], what: string, act?: () => void}} Shortcut
 */

/** @param {Shortcut[]} shortcuts */
export function listKeys(shortcuts) {
  const items = shortcuts.flatMap(({ keys, shown, what }) => {
    const term = make("dt");
    for (const key of shown ?? keys) term.append(make("kbd", "", key), " ");
    return [term, make("dd", "", what)];
  });
  part("keys-list", HTMLDListElement).replaceChildren(...items);
}

/**
 * Obeys single keys wherever nothing is typed.
 * @param {Shortcut[]} shortcuts
 */
export function obeyKeys(shortcuts) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || part("keys", HTMLDialogElement).open) return;
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
