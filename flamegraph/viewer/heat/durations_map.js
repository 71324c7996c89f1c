// @ts-check
/** A map of durations: time across, powers of two upwards; how many events of each, or how much time. */

import { filled, make } from "../controls/dom.js";
import { countOf } from "../data/format.js";
import { bandsText, microsecondsText, rangeText, SECOND } from "../data/range.js";
import { hideTooltip, showTip } from "../graph/frame_details.js";
import { CellMap } from "./cell_map.js";
import { Ramp, showRamp } from "./ramp.js";

/** @import { Context } from "../controls/context.js" */
/** @import { Bands, Range } from "../data/range.js" */
/** @import { Durations, TimeGrid } from "../data/time_grid.js" */
/** @import { TooltipRow } from "../graph/frame_details.js" */
/** @import { Cell, CellPicture, Mark } from "./cell_map.js" */

/** What all maps of a page have in common. @typedef {Pick<CellPicture, "columns" | "columnWidth" | "ticks" | "dark">} MapPicture */

/** In pixels. */
const [BAND_HEIGHT, LEAST_LABEL] = [13, 26];

export class DurationsMap {
  /**
   * @param {Context} context
   * @param {string} id
   * @param {string} title
   * @param {(from: Cell, to: Cell) => void} select
   * @param {() => boolean} clear
   */
  constructor(context, id, title, select, clear) {
    this.context = context;
    this.frequency = make("button", "", "Frequency");
    this.intensity = make("button", "", "Intensity");
    this.frequency.title = "How many, each second";
    this.intensity.title = "How much time in all, each second";
    this.frequency.addEventListener("click", () => context.set({ intensity: false }));
    this.intensity.addEventListener("click", () => context.set({ intensity: true }));
    const choice = filled("div", "switch", this.frequency, this.intensity);
    choice.setAttribute("role", "group");
    choice.setAttribute("aria-label", "What colours show");
    this.ramp = make("p", "ramp");
    this.note = make("p", "time-note");
    this.note.setAttribute("aria-live", "polite");
    this.map = new CellMap(id, "Durations by time", {
      select,
      point: (cell, x, y) => {
        if (!cell) return hideTooltip();
        showTip(this.bandText(cell), this.rowsOf(cell), x, y);
      },
      walk: (_, to) => {
        const texts = [this.bandText(to), ...this.rowsOf(to).map((row) => row.join(": "))];
        this.note.textContent = `${texts.join(", ")}. Enter selects.`;
      },
      clear,
    });
    const foot = filled("div", "time-foot", this.ramp, this.note);
    const head = filled("div", "controls", make("h2", "", title), choice);
    this.element = filled("section", "durations", head, this.map.element, foot);
    this.element.hidden = true;
    /** @type {Durations | null} */
    this.durations = null;
    /** @type {TimeGrid | null} */
    this.grid = null;
  }

  /**
   * @param {Durations | null} durations nothing is shown without
   * @param {MapPicture} picture
   * @param {TimeGrid} grid
   * @param {Range | null} across the columns of the range shown, both ends included
   * @param {Bands | null} bands shown
   * @param {boolean} intensity
   */
  show(durations, picture, grid, across, bands, intensity) {
    this.element.hidden = durations === null;
    this.durations = durations;
    this.grid = grid;
    if (!durations) return;
    const { least, bands: rows, events, time } = durations;
    this.frequency.setAttribute("aria-pressed", String(!intensity));
    this.intensity.setAttribute("aria-pressed", String(intensity));
    const shown = intensity ? time : events;
    const top = shown.reduce((one, other) => Math.max(one, other), 0);
    const ramp = new Ramp(picture.dark, false);
    /** @type {[number, string][]} */
    const labels = [];
    const step = Math.ceil(LEAST_LABEL / BAND_HEIGHT);
    for (let row = 0; row < rows; row += step) labels.push([row, least + row ? microsecondsText(2 ** (least + row - 1)) : "0"]);
    /** @type {Mark[]} */
    const marks = [];
    if (across || bands) {
      const { from: first, to: last } = across ?? { from: 0, to: grid.columns - 1 };
      const from = bands ? bands.least - least : 0;
      const to = bands ? bands.most - least : rows - 1;
      marks.push({ columns: [first, last], rows: [from, to], color: picture.dark ? "#ffffff" : "#16191d" });
    }
    this.map.show({
      ...picture, rows, rowHeight: BAND_HEIGHT, labels, inTime: false,
      // A rare slow event is to be seen beside many fast ones.
      color: (column, row) => {
        const amount = shown[column * rows + row];
        return amount > 0 ? ramp.of(Math.sqrt(amount / top)) : "";
      },
    }, marks);
    const perSecond = (top * SECOND) / grid.span;
    showRamp(this.ramp, ramp, "0", intensity ? `${microsecondsText(perSecond)} a second` : `${countOf(perSecond)} a second`);
    this.note.textContent = "";
  }

  /**
   * The bands of two cells and between them.
   * @param {Cell} from
   * @param {Cell} to
   * @returns {Bands | null} null where that is all
   */
  bandsOf(from, to) {
    const { least, bands } = this.durations ?? { least: 0, bands: 1 };
    const [low, high] = [from.row, to.row].sort((a, b) => a - b);
    return low === 0 && high === bands - 1 ? null : { least: least + low, most: least + high };
  }

  /** @param {Cell} cell */
  bandText({ row }) {
    const band = (this.durations?.least ?? 0) + row;
    return bandsText({ least: band, most: band });
  }

  /**
   * What a cell has.
   * @param {Cell} cell
   * @returns {TooltipRow[]}
   */
  rowsOf({ column, row }) {
    const { durations, grid } = this;
    if (!durations || !grid) return [];
    const at = column * durations.bands + row;
    return [
      ["Time", rangeText(grid.rangeOfColumns(column, column))],
      ["Events", countOf(durations.events[at])],
      ["In all", microsecondsText(durations.time[at])],
    ];
  }
}
