// @ts-check
/** A button with a menu: Enter or a click opens it, arrows walk, Enter chooses, Esc leaves. */

import { make } from "./dom.js";

/** `offered` is asked whenever the menu opens. @typedef {{id: string, label: string, note: string, act: () => void, offered?: () => boolean}} MenuItem */

/**
 * @param {HTMLElement} element is filled with it; has an id
 * @param {string} label
 * @param {string} title
 * @param {MenuItem[]} items
 */
export function makeMenu(element, label, title, items) {
  const button = document.createElement("button");
  const list = make("ul");
  button.id = `${element.id}-button`;
  button.textContent = label;
  button.title = title;
  button.setAttribute("aria-haspopup", "menu");
  list.id = `${element.id}-list`;
  list.hidden = true;
  list.setAttribute("role", "menu");
  list.setAttribute("aria-label", title);
  const elements = items.map(menuItem);
  const open = (/** @type {boolean} */ shown) => {
    list.hidden = !shown;
    if (shown) list.replaceChildren(...elements.filter((_, at) => items[at].offered?.() ?? true));
    button.setAttribute("aria-expanded", String(shown));
    if (shown) focusItem(list, 0);
  };
  const leave = () => {
    open(false);
    button.focus();
  };
  const act = (/** @type {EventTarget | null} */ target) => {
    const chosen = items.find(({ id }) => target instanceof Element && target.closest("li")?.id === id);
    if (!chosen) return;
    leave();
    chosen.act();
  };
  open(false);
  button.addEventListener("click", () => open(Boolean(list.hidden)));
  list.addEventListener("click", (event) => act(event.target));
  list.addEventListener("keydown", (event) => {
    const at = [...list.children].findIndex((item) => item === document.activeElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: list.children.length - 1 }[event.key];
    if (to !== undefined) focusItem(list, to);
    else if (event.key === "Enter" || event.key === " ") act(event.target);
    else if (event.key === "Escape") leave();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  element.addEventListener("focusout", (event) => {
    if (!(event.relatedTarget instanceof Node && element.contains(event.relatedTarget))) open(false);
  });
  element.replaceChildren(button, list);
}

/** @param {MenuItem} item */
function menuItem({ id, label, note }) {
  const element = make("li", "", label);
  element.id = id;
  element.tabIndex = -1;
  element.setAttribute("role", "menuitem");
  element.append(make("span", "", note));
  return element;
}

/**
 * @param {HTMLElement} list
 * @param {number} index counts round and round
 */
function focusItem(list, index) {
  const item = list.children[(index + list.children.length) % list.children.length];
  if (item instanceof HTMLElement) item.focus();
}
