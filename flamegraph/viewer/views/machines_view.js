// @ts-check
/** What machines were doing: charts of metrics by time, a thin line for each host; a table of all hosts. */

import { filled, linkButton, make, sizedCanvas, staticTable } from "../controls/dom.js";
import { isDark } from "../controls/theme.js";
import { grouped } from "../data/format.js";
import { formatRange, rangeText, SECOND } from "../data/range.js";
import { GUTTER } from "../heat/cell_map.js";
import { stepsOf, timeAxis } from "../heat/time_axis.js";

/** @import { Context, View } from "../controls/context.js" */
/** @import { Chart, Machines } from "../data/page.js" */
/** @import { Range } from "../data/range.js" */
/** In pixels: of a bucket, of the recording, of a column of ticks. @typedef {{step: number, width: number, columnWidth: number, ticks: [column: number, text: string][]}} Axis */

const [CHART_HEIGHT, TICKS_BELOW] = [72, 16];
const [SPARK_WIDTH, SPARK_HEIGHT] = [72, 16];
/** Rows of the table that have small pictures. */
const MOST_SPARKS = 50;
/** It takes the same room as a line with text, so that nothing below moves. */
const EMPTY_LINE = "\u00a0";
/** How far keys go, in buckets. @type {Record<string, number>} */
const BUCKETS_OF_KEYS = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity };
const SIZES = ["B", "KiB", "MiB", "GiB", "TiB"];

/** @implements {View} */
export class MachinesView {
  /**
   * @param {Context} context
   * @param {HTMLElement} panel
   */
  constructor(context, panel) {
    this.context = context;
    const { machines } = context.page;
    /** @type {{chart: Chart, canvas: HTMLCanvasElement}[]} */
    this.charts = [];
    /** As wide as charts can be. */
    this.body = make("div");
    this.perSecond = 1;
    /** The buckets that the pointer or keys are at, the first one fixed. @type {{from: number, to: number} | null} */
    this.cursor = null;
    if (!machines) return;
    this.note = make("p", "lead");
    this.note.setAttribute("aria-live", "polite");
    this.value = make("p", "lead", EMPTY_LINE);
    this.value.setAttribute("aria-live", "polite");
    this.body.append(...machines.findings.map((text) => make("p", "", text)), this.note, this.value);
    for (const chart of machines.charts) {
      const canvas = document.createElement("canvas");
      canvas.setAttribute("role", "img");
      canvas.tabIndex = 0;
      this.charts.push({ chart, canvas });
      this.listen(chart, canvas);
      this.body.append(filled("section", "chart", make("h2", "", chart.unit ? `${chart.title} (${chart.unit})` : chart.title), canvas));
    }
    this.body.append(machinesTable(context, machines));
    this.body.append(...machines.not_counted.map((text) => make("p", "lead", text)));
    if (machines.counters) this.body.append(countersTable(machines.counters));
    panel.append(this.body);
    new ResizeObserver(() => this.draw()).observe(this.body);
  }

  update() {
    this.draw();
  }

  recolor() {
    this.draw();
  }

  /** The host of the scope; -1 for several. */
  get chosen() {
    const { page, scope } = this.context;
    const host = scope.kind === "host" ? scope.index : scope.kind === "process" ? page.processes[scope.index].host : null;
    return page.machines?.hosts.findIndex((one) => host !== null && one.host === host) ?? -1;
  }

  draw() {
    const { context, body, chosen } = this;
    const { machines, time } = context.page;
    if (!machines || !time || body.clientWidth === 0 || !this.note) return;
    const { columnWidth, perSecond, ticks } = timeAxis(time, body.clientWidth);
    this.perSecond = perSecond;
    const axis = { step: machines.width * perSecond, width: time.seconds * perSecond, columnWidth, ticks };
    const { range } = context;
    const lines = machines.width === 1 ? "One line per host." : `One line per host: the highest value of each ${roundedText(machines.width)}\u202fs.`;
    const of = chosen < 0 ? "" : ` The thick line is ${machines.hosts[chosen].name}.`;
    const shown = range
      ? `Shown in all views: ${rangeText(range)}. The tables below are of the whole recording.`
      : "Drag over a chart to see only that time in every view. Keyboard: arrow keys move, Shift extends, Enter selects.";
    this.note.textContent = `${lines}${of} ${shown}`;
    const marks = this.marks(range);
    for (const { chart, canvas } of this.charts) {
      const highest = highestOf(chart.values);
      drawChart(canvas, chart.values, axis, highest, chosen, marks, shownValue(highest, chart.unit));
      canvas.setAttribute("aria-label", `${chart.title} by time: at most ${shownValue(highest, chart.unit)}; arrow keys move, Shift extends, Enter selects, Escape clears`);
    }
  }

  /**
   * What is marked in every chart, in pixels: the range that all views show, and the cursor.
   * @param {Range | null} range
   */
  marks(range) {
    const { cursor, perSecond } = this;
    const marks = range ? [{ from: (range.from / SECOND) * perSecond, to: (range.to / SECOND) * perSecond }] : [];
    if (cursor) {
      const step = (this.context.page.machines?.width ?? 1) * perSecond;
      marks.push({ from: Math.min(cursor.from, cursor.to) * step, to: (Math.max(cursor.from, cursor.to) + 1) * step });
    }
    return marks;
  }

  /**
   * The mouse drags over buckets; keys walk over them.
   * @param {Chart} chart
   * @param {HTMLCanvasElement} canvas
   */
  listen(chart, canvas) {
    const buckets = chart.values[0]?.length ?? 0;
    let drags = false;
    const bucket = (/** @type {MouseEvent} */ event) => {
      const second = (event.clientX - canvas.getBoundingClientRect().left - GUTTER) / this.perSecond;
      return Math.max(0, Math.min(buckets - 1, Math.floor(second / (this.context.page.machines?.width ?? 1))));
    };
    canvas.addEventListener("mousedown", (event) => {
      drags = true;
      this.move(chart, { from: bucket(event), to: bucket(event) });
    });
    canvas.addEventListener("mousemove", (event) => {
      const to = bucket(event);
      this.move(chart, { from: drags && this.cursor ? this.cursor.from : to, to });
    });
    canvas.addEventListener("mouseup", () => {
      if (drags) this.select();
      drags = false;
    });
    const leave = () => {
      drags = false;
      this.move(chart, null);
    };
    canvas.addEventListener("mouseleave", leave);
    canvas.addEventListener("blur", leave);
    canvas.addEventListener("keydown", (event) => {
      if (event.altKey || event.ctrlKey || event.metaKey || !this.key(chart, buckets, event)) return;
      event.preventDefault();
      event.stopPropagation();
    });
  }

  /**
   * Whether the key means something here.
   * @param {Chart} chart
   * @param {number} buckets
   * @param {KeyboardEvent} event
   */
  key(chart, buckets, { key, shiftKey }) {
    const { cursor } = this;
    if (key === "Escape") {
      this.move(chart, null);
      this.context.go({ time: "", time2: "" });
      return true;
    }
    if (key === "Enter" && cursor) {
      this.select();
      return true;
    }
    const step = BUCKETS_OF_KEYS[key];
    if (!step) return false;
    const to = Math.max(0, Math.min(buckets - 1, cursor ? cursor.to + step : step > 0 ? 0 : buckets - 1));
    this.move(chart, { from: shiftKey && cursor ? cursor.from : to, to });
    return true;
  }

  /**
   * @param {Chart} chart
   * @param {{from: number, to: number} | null} cursor
   */
  move(chart, cursor) {
    this.cursor = cursor;
    const { machines } = this.context.page;
    if (this.value && machines) this.value.textContent = cursor ? bucketValues(machines, chart, cursor.to) : EMPTY_LINE;
    this.draw();
  }

  /** Shows the cursor's time alone in every view. */
  select() {
    const { cursor, context } = this;
    const { machines, time } = context.page;
    if (!cursor || !machines || !time) return;
    const ends = [Math.min(cursor.from, cursor.to), Math.max(cursor.from, cursor.to) + 1];
    const [from, to] = ends.map((bucket) => Math.round(Math.min(bucket * machines.width, time.seconds) * SECOND));
    context.go({ time: formatRange({ from, to }), time2: "" });
  }
}

/**
 * The highest and the lowest host at a time.
 * @param {Machines} machines
 * @param {Chart} chart
 * @param {number} bucket
 */
function bucketValues({ hosts, width }, { title, unit, values }, bucket) {
  const known = values.flatMap((host, at) => {
    const value = host[bucket];
    return value === null || value === undefined ? [] : [{ name: hosts[at].name, value }];
  });
  known.sort((one, other) => other.value - one.value);
  const ends = known.length > 1 ? [known[0], known[known.length - 1]] : known;
  const said = ends.map(({ name, value }) => `${name} ${shownValue(value, unit)}`).join(", least ");
  return `${title} at ${roundedText(bucket * width)}\u202fs: ${known.length > 1 ? "most " : ""}${said || "nothing was read"}.`;
}

/**
 * Hosts and metrics: the mean, the highest value, a small picture. The worst host is first.
 * @param {Context} context
 * @param {Machines} machines
 */
function machinesTable(context, { hosts, charts: all, more_hosts: more }) {
  const charts = all.filter(({ figures }) => figures.some((one) => one !== null));
  /** @type {[string, string][]} */
  const heads = [["host", ""], ...charts.map(({ title }) => /** @type {[string, string]} */ ([title, "number"]))];
  const highest = charts.map(({ values }) => highestOf(values));
  const rows = hosts.map(({ name, host }, row) => {
    const show = () => context.go({ view: "graph", scope: `host:${host}`, zoom: 0 });
    const link = host === null ? make("bdi", "", name) : linkButton(`Flame graph of ${name}`, show, make("bdi", "", name));
    const cells = charts.map(({ unit, values, figures }, at) => {
      const figure = figures[row];
      if (!figure) return make("td", "number");
      const [mean, most] = figure.map((value) => shownValue(value, unit));
      const cell = filled("td", "number", mean, document.createElement("br"), make("span", "soft", `max ${most}`));
      if (row < MOST_SPARKS) cell.append(document.createElement("br"), sparkline(values[row], highest[at]));
      return cell;
    });
    return [filled("td", "name", link), ...cells];
  });
  const rest = more ? [make("p", "lead", `… and ${grouped(more)} more hosts.`)] : [];
  const title = make("h2", "", "Hosts: mean and maximum of the whole recording");
  return filled("section", "", title, staticTable("machines", heads, rows), ...rest);
}

/**
 * What processors counted in the recorded processes: per cycle, per 1,000 instructions or cycles, a second.
 * @param {NonNullable<Machines["counters"]>} counters
 */
function countersTable({ heads, note, rows, more_rows: more }) {
  const names = heads.map((head, at) => /** @type {[string, string]} */ ([head, at < 2 ? "" : "number"]));
  const cells = rows.map((row) => row.map((text, at) => make("td", at < 2 ? "name" : "number", text)));
  const units = note ? [make("p", "lead", note)] : [];
  const rest = more ? [make("p", "lead", `… and ${grouped(more)} more processes.`)] : [];
  const title = make("h2", "", "Counters of the recorded processes, of the whole recording");
  return filled("section", "", title, staticTable("counters", names, cells), ...units, ...rest);
}

/** @param {(number | null)[][]} values */
function highestOf(values) {
  return values.reduce((most, host) => host.reduce((/** @type {number} */ one, other) => Math.max(one, other ?? 0), most), 0) || 1;
}

/**
 * @param {HTMLCanvasElement} canvas
 * @param {(number | null)[][]} hosts
 * @param {Axis} axis
 * @param {number} highest
 * @param {number} chosen the host with a thick line
 * @param {{from: number, to: number}[]} marks
 * @param {string} top
 */
function drawChart(canvas, hosts, axis, highest, chosen, marks, top) {
  const { width, columnWidth } = axis;
  const context = sizedCanvas(canvas, GUTTER + width + 2, CHART_HEIGHT + TICKS_BELOW);
  if (!context) return;
  const dark = isDark();
  context.fillStyle = dark ? "#2a3340" : "#e8eef6";
  for (const { from, to } of marks) context.fillRect(GUTTER + from, 0, Math.max(1, Math.min(to, width) - from), CHART_HEIGHT);
  context.fillStyle = dark ? "#9aa2aa" : "#6a7178";
  context.font = "11px system-ui, sans-serif";
  context.textAlign = "right";
  context.fillText(top, GUTTER - 6, 10);
  context.fillText("0", GUTTER - 6, CHART_HEIGHT - 2);
  context.textAlign = "left";
  for (const [column, text] of axis.ticks) {
    context.fillRect(GUTTER + column * columnWidth, CHART_HEIGHT, 1, 4);
    context.fillText(text, GUTTER + column * columnWidth + 3, CHART_HEIGHT + 12);
  }
  const line = (/** @type {(number | null)[]} */ values, /** @type {string} */ color, /** @type {number} */ thick) => {
    context.strokeStyle = color;
    context.lineWidth = thick;
    context.stroke(stepsOf(values, axis.step, width, (value) => CHART_HEIGHT - 2 - (value / highest) * (CHART_HEIGHT - 6)));
  };
  hosts.forEach((values, at) => {
    if (at !== chosen) line(values, dark ? "#6aa8ee80" : "#2563a880", 1);
  });
  if (chosen >= 0) line(hosts[chosen], dark ? "#ffb37a" : "#b3450f", 2.5);
}

/**
 * @param {(number | null)[]} values
 * @param {number} highest
 */
function sparkline(values, highest) {
  const canvas = document.createElement("canvas");
  canvas.setAttribute("aria-hidden", "true");
  const context = sizedCanvas(canvas, SPARK_WIDTH, SPARK_HEIGHT);
  if (!context) return canvas;
  context.fillStyle = "#7f94ad";
  const step = SPARK_WIDTH / values.length;
  values.forEach((value, at) => {
    const height = ((value ?? 0) / highest) * SPARK_HEIGHT;
    context.fillRect(at * step, SPARK_HEIGHT - height, Math.max(1, step), height);
  });
  return canvas;
}

/**
 * @param {number} value
 * @param {string} unit
 */
function shownValue(value, unit) {
  if (unit === "B/s") {
    const step = Math.min(SIZES.length - 1, value < 1 ? 0 : Math.floor(Math.log2(value) / 10));
    return `${roundedText(value / 2 ** (10 * step))} ${SIZES[step]}/s`;
  }
  return `${roundedText(value)}${unit && `\u202f${unit}`}`;
}

/** @param {number} value */
function roundedText(value) {
  return value >= 9.95 ? grouped(Math.round(value)) : value.toFixed(1);
}
