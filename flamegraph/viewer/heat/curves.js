// @ts-check
/** Numbers by time on the axis of the heat map: the first as an area, the others as lines. */

import { make, sizedCanvas } from "../controls/dom.js";
import { GUTTER } from "./cell_map.js";
import { stepsOf } from "./time_axis.js";

/** @import { Curves as CurvesInfo } from "../data/page.js" */

const CURVES_HEIGHT = 64;
/** Of the area and the lines, on light and dark ground. */
const CURVE_COLORS = [
  ["#c9d7ea", "#2563a8", "#b3261e", "#8a5a00", "#7a3b9a"],
  ["#2b3f57", "#6aa8ee", "#f2857c", "#e0b050", "#c793e6"],
];

export class Curves {
  constructor() {
    this.canvas = document.createElement("canvas");
    this.canvas.setAttribute("role", "img");
    this.legend = make("p", "lead");
    this.element = make("div", "curves");
    this.element.id = "curves";
    this.element.append(this.canvas, this.legend);
  }

  /**
   * @param {CurvesInfo | null} info
   * @param {number} perSecond pixels
   * @param {number} width in pixels, of all seconds
   * @param {boolean} dark
   */
  show(info, perSecond, width, dark) {
    this.element.hidden = !info || info.curves.length === 0;
    if (!info || this.element.hidden) return;
    const context = sizedCanvas(this.canvas, GUTTER + width + 2, CURVES_HEIGHT);
    if (!context) return;
    const highest = info.curves.reduce((most, { values }) => values.reduce((one, other) => Math.max(one, other), most), 0) || 1;
    const colors = CURVE_COLORS[dark ? 1 : 0];
    const names = info.curves.map(({ name, values }, at) => {
      const color = colors[at % colors.length];
      const y = (/** @type {number} */ value) => CURVES_HEIGHT - 1 - (value / highest) * (CURVES_HEIGHT - 4);
      const path = stepsOf(values, info.width * perSecond, width, y);
      if (at === 0) {
        path.lineTo(GUTTER + Math.min(width, values.length * info.width * perSecond), y(0));
        path.lineTo(GUTTER, y(0));
        context.fillStyle = color;
        context.fill(path);
      } else {
        context.strokeStyle = color;
        context.lineWidth = 1.5;
        context.stroke(path);
      }
      const mark = make("span", "", `${at ? "—" : "■"} ${name}`);
      mark.style.color = at || dark ? color : "var(--soft)";
      return [mark, " "];
    });
    const top = highest >= 10 ? Math.round(highest).toString() : highest.toFixed(1);
    context.fillStyle = dark ? "#9aa2aa" : "#6a7178";
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "right";
    context.fillText(top, GUTTER - 6, 10);
    this.canvas.setAttribute("aria-label", `${info.note} At most ${top}.`);
    this.legend.replaceChildren(...names.flat(), info.note);
  }
}
