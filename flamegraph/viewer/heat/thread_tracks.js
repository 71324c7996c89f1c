// @ts-check
/** The threads of one process over time: a row for each group of threads, coloured by what they do. */

import { filled, make } from "../controls/dom.js";
import { percent } from "../data/format.js";
import { formatRange, rangeText } from "../data/range.js";
import { countCategories } from "../data/time_grid.js";
import { countsWaits, kindsOfNodes, waitKindLabel, waitKinds } from "../data/waits.js";
import { hideTooltip, showTip } from "../graph/frame_details.js";
import { waitShades } from "../graph/wait_colors.js";
import { CellMap } from "./cell_map.js";
import { fineAxis } from "./time_axis.js";

/** @import { Context } from "../controls/context.js" */
/** @import { Columns } from "../data/method_costs.js" */
/** @import { TooltipRow } from "../graph/frame_details.js" */
/** @import { Cell } from "./cell_map.js" */
/** @import { Steps } from "./time_axis.js" */

/**
 * A group of threads: its number, what it has by column of the map and kind, what of that is not idle, and what a full
 * bar stands for.
 * @typedef {{thread: number, sums: Float64Array, busy: number, full: number}} Track
 */

const TRACK_TALL = 40;
/** Values from which the number of threads is known: of time on the clock. */
const OF_CLOCK = new Set(["wall", "offcpu"]);
/** As the report calls them. */
const OTHER_THREADS = "other threads";
/** Samples of the group that has most of them, in each column of the map. */
const SAMPLES_EACH = 4;
/** So many of a group's columns have at most a full bar: how many samples fall into a column varies. */
const USUAL = 0.75;

export class ThreadTracks {
  /** @param {Context} context */
  constructor(context) {
    this.context = context;
    this.head = make("h2");
    this.lead = make("p", "lead", "A row is a group of threads with names that are alike, a bar what they do at that time. Drag over bars to see that range, and of one row that group, in every view.");
    this.note = make("p", "time-note");
    this.note.setAttribute("aria-live", "polite");
    this.map = new CellMap("tracks", "Threads by time", {
      select: (from, to) => this.select(from, to),
      point: (cell, x, y) => this.tip(cell, x, y),
      walk: (from, to) => this.describe(from, to),
      clear: () => context.clearTime(),
    });
    this.element = filled("section", "work", this.head, this.lead, this.map.element, this.note);
    /** The process whose threads are shown, -1 for none. */
    this.process = -1;
    /** From the top. @type {Track[]} */
    this.tracks = [];
    /** @type {Steps} */
    this.steps = { columns: 1, span: 1 };
    /** What was counted. @type {unknown[]} */
    this.counted = [];
  }

  /**
   * @param {number} width in pixels
   * @param {boolean} dark
   */
  show(width, dark) {
    const { context } = this;
    const { page, event, scope, range, thread } = context;
    this.process = page.time && countsWaits(page.events[event].type) ? this.processOf() : -1;
    this.element.hidden = this.process < 0;
    if (!page.time || this.process < 0) return;
    const counted = [this.process, event, width, context.recorded];
    const columns = this.columnsByThread();
    const samples = Math.max(...[...columns.values()].map((some) => some.reduce((sum, { column }) => sum + (context.times.of(column)?.node.length ?? 0), 0)));
    const { steps, columnWidth, ticks } = fineAxis(page.time, width, samples / SAMPLES_EACH);
    this.steps = steps;
    if (counted.some((one, at) => one !== this.counted[at])) this.count(columns);
    this.counted = counted;
    const kinds = waitKinds();
    const colors = kinds.map((kind) => waitShades(kind, dark, 1)[0]);
    const { tracks } = this;
    const at = (/** @type {number} */ row) => tracks[tracks.length - 1 - row];
    const color = dark ? "#ffffff" : "#16191d";
    const shown = thread >= 0 ? tracks.length - 1 - tracks.findIndex((one) => one.thread === thread) : -1;
    /** @type {[number, number]} */
    const rows = shown >= 0 && shown < tracks.length ? [shown, shown] : [0, tracks.length - 1];
    this.map.show({
      columns: steps.columns, rows: tracks.length, rowHeight: TRACK_TALL, columnWidth, ticks, inTime: false, dark, labels: [],
      color: () => "",
      title: (row) => {
        const { thread, full } = at(row);
        const threads = OF_CLOCK.has(page.events[event].type) ? Math.round(full / steps.span / 1000) : 0;
        return `${page.threads[thread]}${threads > 1 ? ` · ${threads} threads at a time` : ""}`;
      },
      pieces: (column, row) => {
        const { sums, full } = at(row);
        const here = sums.subarray(column * kinds.length, (column + 1) * kinds.length);
        const whole = Math.max(full, here.reduce((sum, one) => sum + one, 0));
        return colors.map((fill, kind) => [here[kind] / whole, fill]);
      },
    }, range ? [{ columns: [Math.floor(range.from / steps.span), Math.ceil(range.to / steps.span) - 1], rows, color }] : []);
    const label = context.scopes.labelOf({ ...scope, kind: "process", index: this.process });
    this.head.textContent = `Threads of ${label}`;
    const others = scope.kind !== "process" && page.processes.length > 1;
    this.note.textContent = range ? `Shown in all views: ${rangeText(range)}.` : others ? "The process that has most; choose another above." : "";
  }

  /** The process that is shown, or the one of the scope that has most; -1 where none has threads with times. */
  processOf() {
    const { page, event, scope, scopes, recorded, source } = this.context;
    /** @type {Map<number, number>} */
    const sums = new Map();
    for (const [column, one] of page.columns.entries()) {
      if (one.event !== event || one.thread === null || !source.times.has(column) || !scopes.holds(scope, one.process)) continue;
      sums.set(one.process, (sums.get(one.process) ?? 0) + recorded.sumOf(column));
    }
    return [...sums.entries()].sort((a, b) => b[1] - a[1])[0]?.[0] ?? -1;
  }

  /** @returns {Map<number, Columns>} */
  columnsByThread() {
    const { page: { columns }, event } = this.context;
    /** @type {Map<number, Columns>} */
    const found = new Map();
    for (const [column, { event: of, process, thread }] of columns.entries()) {
      if (of !== event || process !== this.process || thread === null) continue;
      found.set(thread, [...(found.get(thread) ?? []), { column, weight: 1 }]);
    }
    return found;
  }

  /** @param {Map<number, Columns>} columns */
  count(columns) {
    const { page, event, source, times, recorded } = this.context;
    const kinds = kindsOfNodes(source, page.events[event].type);
    const [count, idle] = [waitKinds().length, waitKinds().indexOf("idle")];
    const tracks = [...columns].map(([thread, columns]) => {
      const sums = countCategories(times, columns, this.steps, () => kinds, count, (column) => recorded.chosenIn(column));
      const bars = Array.from({ length: this.steps.columns }, (_, at) => sums.subarray(at * count, (at + 1) * count).reduce((sum, one) => sum + one, 0));
      const some = bars.filter((bar) => bar > 0).sort((a, b) => a - b);
      const busy = sums.reduce((sum, one, at) => (at % count === idle ? sum : sum + one), 0);
      return { thread, sums, busy, full: some[Math.floor((some.length - 1) * USUAL)] ?? 0 };
    });
    // The last name is that of all threads without a row of their own.
    const rest = (/** @type {Track} */ { thread }) => Number(page.threads[thread] === OTHER_THREADS);
    this.tracks = tracks.filter(({ full }) => full > 0).sort((a, b) => rest(a) - rest(b) || b.busy - a.busy || a.thread - b.thread);
  }

  /**
   * @param {Cell} from
   * @param {Cell} to
   */
  rangeOf(from, to) {
    const { span } = this.steps;
    const [first, last] = [from.column, to.column].sort((a, b) => a - b);
    return { from: first * span, to: (last + 1) * span };
  }

  /** @param {Cell} cell */
  trackOf({ row }) {
    return this.tracks[this.tracks.length - 1 - row];
  }

  /**
   * @param {Cell} from
   * @param {Cell} to
   */
  select(from, to) {
    hideTooltip();
    const { scope, scopes, state } = this.context;
    const key = scopes.keyOf({ ...scope, kind: "process", run: scopes.runOf(this.process), index: this.process });
    const thread = from.row === to.row ? scopes.called.thread.texts[this.trackOf(from).thread] : state.thread;
    this.context.go({ scope: key, thread, time: formatRange(this.rangeOf(from, to)), time2: "" });
  }

  /**
   * What a group does between two cells, the longest first.
   * @param {Cell} from
   * @param {Cell} to
   * @returns {TooltipRow[]}
   */
  done(from, to) {
    const count = waitKinds().length;
    const sums = new Float64Array(count);
    const [first, last] = [from.column, to.column].sort((a, b) => a - b);
    for (let at = first * count; at < (last + 1) * count; at++) sums[at % count] += this.trackOf(from).sums[at];
    const whole = sums.reduce((sum, one) => sum + one, 0);
    const found = [...sums.keys()].filter((kind) => sums[kind] > 0).sort((a, b) => sums[b] - sums[a]);
    return found.map((kind) => [waitKindLabel(kind), percent(sums[kind], whole)]);
  }

  /**
   * @param {Cell | null} cell
   * @param {number} x client pixels
   * @param {number} y client pixels
   */
  tip(cell, x, y) {
    if (!cell) return hideTooltip();
    /** @type {TooltipRow[]} */
    const rows = [["Time", rangeText(this.rangeOf(cell, cell))], ...this.done(cell, cell)];
    showTip(this.context.page.threads[this.trackOf(cell).thread], rows, x, y);
  }

  /**
   * Says what the keys' cursor is on.
   * @param {Cell} from
   * @param {Cell} to
   */
  describe(from, to) {
    const does = this.done(to, from).map(([kind, share]) => `${kind} ${share}`).join(", ");
    const name = this.context.page.threads[this.trackOf(to).thread];
    this.note.textContent = `${name}, ${rangeText(this.rangeOf(from, to))}: ${does || "no samples"}. Enter selects.`;
  }
}
