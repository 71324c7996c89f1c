// @ts-check
/** What charts share: elements of SVG, round ticks, and a line of text for what is pointed at. */

import { filled, make } from "../controls/dom.js";

/** Steps between ticks, in seconds. */
const TIME_STEPS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400];
const [MINUTE, HOUR, DAY] = [60, 3600, 86_400];
/** Of machines: of all lines, of the one that is chosen or pointed at, of the area below that of the only host, of what is marked; on light and dark ground. */
export const LINE_COLORS = [
  { line: "#5b86bd", chosen: "#b3450f", area: "#e3ebf5", mark: "#d5dfeb", text: "#5c6570" },
  { line: "#5f93cf", chosen: "#ffb37a", area: "#1e2c3d", mark: "#2f3b4a", text: "#9aa3ad" },
];
/** What is read where nothing is pointed at: it takes the same room, so that nothing below moves. */
export const NO_TEXT = "Point at the chart to read its values.";

/**
 * @param {string} tag
 * @param {Record<string, string | number>} attributes
 * @param {...(string | Node)} content
 */
export function drawn(tag, attributes, ...content) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) {
    element.setAttribute(name, typeof value === "number" ? String(Math.round(value * 100) / 100) : value);
  }
  element.append(...content);
  return element;
}

/**
 * Text of at most so many pixels.
 * @param {string} text
 * @param {number} width
 */
export function fitting(text, width) {
  const letters = Math.floor(width / 6.2);
  return text.length <= letters ? text : letters > 3 ? `${text.slice(0, letters - 1)}…` : "";
}

/**
 * Ticks of a length of time at round seconds.
 * @param {number} seconds
 * @param {number} most how many there is room for
 * @returns {[second: number, text: string][]}
 */
export function secondTicks(seconds, most) {
  const step = TIME_STEPS.find((one) => seconds / one <= most && (one >= MINUTE || seconds <= 3 * MINUTE)) ?? Math.ceil(seconds / most / DAY) * DAY;
  /** @type {[number, string][]} */
  const ticks = [];
  for (let count = 0; count * step <= seconds; count++) ticks.push([count * step, secondText(count * step, step)]);
  return ticks;
}

/**
 * @param {number} second
 * @param {number} step of the ticks, which are in its unit
 */
function secondText(second, step) {
  if (step < 1) return `${Number(second.toFixed(3))}\u202fs`;
  const [size, unit] = step < MINUTE ? [1, "s"] : step < HOUR ? [MINUTE, "min"] : [HOUR, "h"];
  return `${Number((second / size).toFixed(1))}\u202f${unit}`;
}

/**
 * Ticks of moments at round times of day or days, all different.
 * @param {number} first milliseconds since 1970, as `last` is
 * @param {number} last
 * @param {number} most how many there is room for
 * @returns {[moment: number, text: string][]}
 */
export function momentTicks(first, last, most) {
  const seconds = (last - first) / 1000;
  const shown = Math.max(1, most);
  const step = TIME_STEPS.find((one) => one >= MINUTE && seconds / one <= shown) ?? Math.ceil(seconds / shown / DAY) * DAY;
  /** @type {[number, string][]} */
  const ticks = [];
  let day = "";
  for (let at = Math.ceil(first / step / 1000) * step * 1000; at <= last; at += step * 1000) {
    const text = momentText(at);
    ticks.push([at, step >= DAY ? text.slice(0, 10) : text.slice(0, 10) === day ? text.slice(11) : text.slice(5)]);
    day = text.slice(0, 10);
  }
  return ticks.length ? ticks : [[first, momentText(first)]];
}

/**
 * "2026-11-28 17:10" in UTC.
 * @param {number} milliseconds since 1970
 */
export function momentText(milliseconds) {
  return new Date(milliseconds).toISOString().slice(0, 16).replace("T", " ");
}

/**
 * Ticks of counts: at most about four, at 1, 2 or 5 times a power of ten.
 * @param {number} highest
 */
export function countTicks(highest) {
  const power = 10 ** Math.floor(Math.log10(highest / 3));
  const step = [1, 2, 5, 10].map((one) => one * power).find((one) => highest / one <= 4) ?? 10 * power;
  return Array.from({ length: Math.ceil(highest / step) + 1 }, (_, at) => Number((at * step).toPrecision(6)));
}

/**
 * A chart's frame: its legend, the line of text for what is pointed at, and the place of the picture.
 * @param {string} label
 * @param {[name: string, kind: string][]} names with the classes of their colours
 */
export function chartFrame(label, names) {
  const items = names.map(([name, kind]) => {
    const mark = drawn("svg", { viewBox: "0 0 16 10", class: `sample ${kind.startsWith("bar") ? "" : kind}`, "aria-hidden": "true" });
    if (kind.startsWith("bar")) mark.append(...barSample(kind));
    else mark.append(kind.includes("area") || kind.includes("stack") ? drawn("rect", { class: "fill", width: 16, height: 10 }) : drawn("path", { class: "line", d: "M0,5H16" }));
    return filled("li", "", mark, make("bdi", "", name));
  });
  const readout = make("p", "readout", NO_TEXT);
  readout.setAttribute("aria-live", "polite");
  const picture = make("div", "picture");
  picture.tabIndex = 0;
  picture.setAttribute("role", "group");
  picture.setAttribute("aria-label", `${label}: arrow keys move, Enter selects`);
  return { element: filled("div", "chart-frame", filled("ul", "chart-names", ...items), picture, readout), picture, readout };
}

/**
 * A span of a state.
 * @param {string} kind its class
 */
function barSample(kind) {
  const before = kind.endsWith(" before") ? [drawn("rect", { class: "before", width: 16, height: 10 })] : [drawn("rect", { width: 16, height: 10 })];
  const cap = /ended|cut/.test(kind) ? [drawn("rect", { class: "cap", x: 13, width: 3, height: 10 })] : [];
  return [drawn("g", { class: kind }, ...before, ...cap)];
}
