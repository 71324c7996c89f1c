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

/**
 * @param {() => void} changed is called when colours have to be drawn again
 */
export function startTheme(changed) {
  const button = part("theme", HTMLButtonElement);
  const chosen = remembered();
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
  button.addEventListener("click", () => {
    const theme = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = theme;
    remember(theme);
    changed();
  });
  system.addEventListener("change", changed);
}

/** A page opened from disk may be refused storage: then the choice lasts as long as the page. */
function remembered() {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

/** @param {string} theme */
function remember(theme) {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    return;
  }
}
