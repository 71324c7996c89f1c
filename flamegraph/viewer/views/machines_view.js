// @ts-check
/** What machines were doing: charts of metrics by time, a thin line for each host; a table of all hosts. */

import { filled, linkButton, make, staticTable } from "../controls/dom.js";
import { isDark } from "../controls/theme.js";
import { grouped } from "../data/format.js";
import { formatRange, rangeText, SECOND } from "../data/range.js";
import { GUTTER } from "../heat/cell_map.js";

/** @import { Context, View } from "../controls/context.js" */
/** @import { Chart, Machines } from "../data/page.js" */

const CHART_HEIGHT = 72;
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
    this.panel = panel;
    /** The buckets that the pointer or keys are at, the first one fixed. @type {{from: number, to: number} | null} */
    this.cursor = null;
    if (!machines) return;
    this.note = make("p", "lead");
    this.note.setAttribute("aria-live", "polite");
    this.value = make("p", "lead", EMPTY_LINE);
    this.value.setAttribute("aria-live", "polite");
    panel.append(...machines.findings.map((text) => make("p", "", text)), this.note, this.value);
    for (const chart of machines.charts) {
      const canvas = document.createElement("canvas");
      canvas.setAttribute("role", "img");
      canvas.tabIndex = 0;
      this.charts.push({ chart, canvas });
      this.listen(chart, canvas);
      panel.append(filled("section", "chart", make("h2", "", chart.unit ? `${chart.title} (${chart.unit})` : chart.title), canvas));
    }
    panel.append(machinesTable(context, machines));
    if (machines.counters) panel.append(countersTable(machines.counters));
    new ResizeObserver(() => this.draw()).observe(panel);
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
    const { context, panel, chosen } = this;
    const { machines, time } = context.page;
    if (!machines || !time || panel.hidden || panel.clientWidth === 0 || !this.note) return;
    const width = Math.max(100, panel.clientWidth - GUTTER - 8);
    const { range } = context;
    const of = chosen < 0 ? "" : ` The thick line is ${machines.hosts[chosen].name}.`;
    const shown = range ? ` Shown in all views: ${rangeText(range)}.` : " Drag, or move with arrow keys and Shift and press Enter, to see a range alone in every view.";
    this.note.textContent = `A line for each host, the highest value of ${bucketText(machines.width)}.${of}${shown}`;
    for (const { chart, canvas } of this.charts) {
      const highest = highestOf(chart.values);
      const marks = this.marks(machines.width / time.seconds, range && {
        from: range.from / SECOND / time.seconds, to: range.to / SECOND / time.seconds,
      });
      drawChart(canvas, chart.values, machines.width / time.seconds, width, highest, chosen, marks, shownValue(highest, chart.unit));
      canvas.setAttribute("aria-label", `${chart.title} by time: at most ${shownValue(highest, chart.unit)}; arrow keys move, Shift extends, Enter selects, Escape clears`);
    }
  }

  /**
   * What is marked in every chart: the range that all views show, and the cursor.
   * @param {number} step a bucket's part of the width
   * @param {{from: number, to: number} | null} range as parts of the width
   */
  marks(step, range) {
    const { cursor } = this;
    const [from, to] = cursor ? [Math.min(cursor.from, cursor.to), Math.max(cursor.from, cursor.to) + 1] : [0, 0];
    return [range, cursor && { from: from * step, to: to * step }].filter((one) => one !== null);
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
      const { left, width } = canvas.getBoundingClientRect();
      const { time, machines } = this.context.page;
      const second = ((event.clientX - left - GUTTER) / (width - GUTTER)) * (time?.seconds ?? 0);
      return Math.max(0, Math.min(buckets - 1, Math.floor(second / (machines?.width ?? 1))));
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
function machinesTable(context, { hosts, charts, more_hosts: more }) {
  /** @type {[string, string][]} */
  const heads = [["host", ""], ...charts.map(({ title }) => /** @type {[string, string]} */ ([title, "number"]))];
  const highest = charts.map(({ values }) => highestOf(values));
  const rows = hosts.map(({ name, host }, row) => {
    const show = () => context.go({ view: "graph", scope: `host:${host}`, zoom: 0 });
    const link = host === null ? make("bdi", "", name) : linkButton(`Flame graph of ${name}`, show, make("bdi", "", name));
    const cells = charts.map(({ unit, values }, at) => {
      const known = values[row].filter((value) => value !== null);
      if (known.length === 0) return make("td", "number");
      const mean = known.reduce((sum, value) => sum + value, 0) / known.length;
      const most = known.reduce((one, other) => Math.max(one, other), 0);
      const words = `${shownValue(mean, unit)} `;
      const cell = filled("td", "number", words, make("span", "soft", `≤ ${shownValue(most, unit)}`));
      if (row < MOST_SPARKS) cell.append(document.createElement("br"), sparkline(values[row], highest[at]));
      return cell;
    });
    return [filled("td", "name", link), ...cells];
  });
  const rest = more ? [make("p", "lead", `… and ${grouped(more)} more hosts.`)] : [];
  const table = filled("div", "scroll", staticTable("machines", heads, rows));
  return filled("section", "", make("h2", "", "Hosts: mean, and at most"), table, ...rest);
}

/**
 * What processors counted in the recorded processes: per cycle, per 1,000 instructions or cycles, a second.
 * @param {NonNullable<Machines["counters"]>} counters
 */
function countersTable({ heads, rows, more_rows: more }) {
  const names = heads.map((head, at) => /** @type {[string, string]} */ ([head, at < 2 ? "" : "number"]));
  const cells = rows.map((row) => row.map((text, at) => make("td", at < 2 ? "name" : "number", text)));
  const rest = more ? [make("p", "lead", `… and ${grouped(more)} more processes.`)] : [];
  const table = filled("div", "scroll", staticTable("counters", names, cells));
  return filled("section", "", make("h2", "", "Counters of the recorded processes"), table, ...rest);
}

/** @param {(number | null)[][]} values */
function highestOf(values) {
  return values.reduce((most, host) => host.reduce((/** @type {number} */ one, other) => Math.max(one, other ?? 0), most), 0) || 1;
}

/**
 * @param {HTMLCanvasElement} canvas
 * @param {(number | null)[][]} hosts
 * @param {number} step a bucket's part of the width
 * @param {number} width in pixels
 * @param {number} highest
 * @param {number} chosen the host with a thick line
 * @param {{from: number, to: number}[]} marks as parts of the width
 * @param {string} top
 */
function drawChart(canvas, hosts, step, width, highest, chosen, marks, top) {
  const context = sizedCanvas(canvas, GUTTER + width, CHART_HEIGHT);
  if (!context) return;
  const dark = isDark();
  context.fillStyle = dark ? "#2a3340" : "#e8eef6";
  for (const { from, to } of marks) context.fillRect(GUTTER + from * width, 0, Math.max(1, (to - from) * width), CHART_HEIGHT);
  context.fillStyle = dark ? "#9aa2aa" : "#6a7178";
  context.font = "11px system-ui, sans-serif";
  context.textAlign = "right";
  context.fillText(top, GUTTER - 6, 10);
  context.fillText("0", GUTTER - 6, CHART_HEIGHT - 2);
  hosts.forEach((values, at) => {
    if (at !== chosen) drawLine(context, values, step, width, highest, dark ? "#6aa8ee80" : "#2563a880", 1);
  });
  if (chosen >= 0) drawLine(context, hosts[chosen], step, width, highest, dark ? "#ffb37a" : "#b3450f", 2.5);
}

/**
 * A line with gaps where nothing was read.
 * @param {CanvasRenderingContext2D} context
 * @param {(number | null)[]} values
 * @param {number} part of the width that a bucket takes
 * @param {number} width in pixels
 * @param {number} highest
 * @param {string} color
 * @param {number} thick
 */
function drawLine(context, values, part, width, highest, color, thick) {
  const step = part * width;
  context.strokeStyle = color;
  context.lineWidth = thick;
  context.beginPath();
  let open = false;
  const end = GUTTER + width;
  values.forEach((value, at) => {
    if (value === null) {
      open = false;
      return;
    }
    const [x, y] = [GUTTER + (at + 0.5) * step, CHART_HEIGHT - 2 - (value / highest) * (CHART_HEIGHT - 6)];
    if (open) context.lineTo(x, y);
    else context.moveTo(x - step / 2, y);
    context.lineTo(Math.min(x + step / 2, end), y);
    open = true;
  });
  context.stroke();
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
 * @param {HTMLCanvasElement} canvas
 * @param {number} width
 * @param {number} height
 */
function sizedCanvas(canvas, width, height) {
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

/** @param {number} seconds */
function bucketText(seconds) {
  return seconds === 1 ? "each second" : `each ${roundedText(seconds)} s`;
}
