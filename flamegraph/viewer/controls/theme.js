// @ts-check
/** Dark or light: the system's wish, unless the reader chose. */

import { part } from "./dom.js";

const KEY = "hprofiler-theme";
const system = window.matchMedia("(prefers-color-scheme: dark)");

/** @returns {boolean} */
export function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : system.matches;
}

/** @param {() => void} changed is called when colours have to be drawn again */
export function startTheme(changed) {
  const chosen = storage()?.getItem(KEY);
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
  part("theme", HTMLButtonElement).addEventListener("click", () => {
    const theme = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = theme;
    storage()?.setItem(KEY, theme);
    changed();
  });
  system.addEventListener("change", changed);
}

/** A page opened from disk may be refused storage: then the choice lasts as long as the page. */
function storage() {
  try {
    return localStorage;
  } catch {
    return null;
  }
}
