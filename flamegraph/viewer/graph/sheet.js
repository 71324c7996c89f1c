// @ts-check
/** The canvas of a graph: as large as its place on the page, tiny while hidden, as long as the graph on paper. */

import { make } from "../controls/dom.js";

export class Sheet {
  /**
   * @param {string} id of the graph
   * @param {string} label for screen readers
   */
  constructor(id, label) {
    this.scroller = make("div", "graph-scroller");
    this.canvas = document.createElement("canvas");
    this.spacer = make("div");
    /** In CSS pixels, as the height is. */
    this.width = 0;
    this.height = 0;
    /** On paper nothing scrolls: it is as long as the graph. */
    this.unrolled = false;
    /** Not on the page. */
    this.away = true;
    this.scroller.id = `${id}-scroller`;
    this.scroller.tabIndex = 0;
    this.scroller.setAttribute("role", "group");
    this.scroller.setAttribute("aria-label", label);
    this.scroller.append(this.canvas, this.spacer);
    this.canvas.id = `${id}-canvas`;
    this.leave();
  }

  /** @returns {boolean} whether the canvas has another size now, and nothing on it, or is on the page again */
  measure() {
    if (this.unrolled) return false;
    const ratio = window.devicePixelRatio || 1;
    const width = this.scroller.clientWidth;
    const height = this.scroller.clientHeight;
    const same = width === this.width && height === this.height && this.canvas.width === Math.round(width * ratio);
    const shown = width > 0 && this.away;
    this.away = width === 0;
    if (this.away) this.leave();
    if (this.away || (same && !shown)) return false;
    this.resize(width, height);
    return true;
  }

  /** It is not on the page any more. The canvas is made tiny, because it takes several megabytes. */
  leave() {
    this.away = true;
    this.canvas.width = this.canvas.height = 1;
  }

  /**
   * @param {number} width in CSS pixels, as the height is
   * @param {number} height
   */
  resize(width, height) {
    const ratio = window.devicePixelRatio || 1;
    this.width = width;
    this.height = height;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
  }

  /**
   * How far down one can scroll.
   * @param {number} content the height of all rows
   */
  reserve(content) {
    this.spacer.style.height = `${Math.max(0, content - this.height)}px`;
  }
}
