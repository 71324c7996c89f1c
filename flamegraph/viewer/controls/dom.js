// @ts-check
/** The few things the views do with the document. Names reach it as text, never as markup. */

/**
 * @template {HTMLElement} T
 * @param {string} id
 * @param {new () => T} type
 * @returns {T}
 */
export function part(id, type) {
  const found = document.getElementById(id);
  if (!(found instanceof type)) throw new Error(`the page has no ${id}`);
  return found;
}

/**
 * @param {string} tag
 * @param {string} [className]
 * @param {string} [text]
 */
export function make(tag, className = "", text = "") {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text) element.textContent = text;
  return element;
}

/**
 * @param {string} tag
 * @param {string} className
 * @param {...(string | Node)} content
 */
export function filled(tag, className, ...content) {
  const element = make(tag, className);
  element.append(...content);
  return element;
}

/**
 * A button that looks like a link.
 * @param {string} title
 * @param {() => void} act
 * @param {...(string | Node)} content
 */
export function linkButton(title, act, ...content) {
  const button = filled("button", "link", ...content);
  button.title = title;
  button.addEventListener("click", act);
  return button;
}

/**
 * A table that does not sort, in a box that scrolls where it is too wide.
 * @param {string} className
 * @param {[string, string][]} heads text and class of each
 * @param {HTMLElement[][]} rows the cells of each
 */
export function staticTable(className, heads, rows) {
  const head = filled("tr", "", ...heads.map(([text, kind]) => {
    const cell = make("th", kind, text);
    cell.setAttribute("scope", "col");
    return cell;
  }));
  const body = filled("tbody", "", ...rows.map((cells) => filled("tr", "", ...cells)));
  return filled("div", "scroll", filled("table", className, filled("thead", "", head), body));
}

/**
 * Makes a canvas so large, and empties it.
 * @param {HTMLCanvasElement} canvas
 * @param {number} width in CSS pixels, as the height is
 * @param {number} height
 * @returns {CanvasRenderingContext2D | null} which draws in CSS pixels
 */
export function sizedCanvas(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext("2d");
  context?.scale(ratio, ratio);
  return context;
}

/**
 * Puts text on the clipboard, also in pages opened from disk where the clipboard's own interface may be refused.
 * @param {string} text
 */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}
