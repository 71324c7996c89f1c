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
    if (!machines) return;
    this.note = make("p", "lead");
    this.note.setAttribute("aria-live", "polite");
    panel.append(...machines.findings.map((text) => make("p", "", text)), this.note);
    for (const chart of machines.charts) {
      const canvas = document.createElement("canvas");
      canvas.setAttribute("role", "img");
      this.charts.push({ chart, canvas });
      this.selectByMouse(canvas);
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
    const shown = range ? ` Shown in all views: ${rangeText(range)}.` : " Drag to see a range alone in every view.";
    this.note.textContent = `A line for each host, the highest value of ${bucketText(machines.width)}.${of}${shown}`;
    for (const { chart, canvas } of this.charts) {
      const highest = highestOf(chart.values);
      drawChart(canvas, chart.values, machines.width / time.seconds, width, highest, chosen, range && {
        from: range.from / SECOND / time.seconds, to: range.to / SECOND / time.seconds,
      }, shownValue(highest, chart.unit));
      canvas.setAttribute("aria-label", `${chart.title} by time: at most ${shownValue(highest, chart.unit)}`);
    }
  }

  /** @param {HTMLCanvasElement} canvas */
  selectByMouse(canvas) {
    /** @type {number | null} */
    let begin = null;
    const second = (/** @type {MouseEvent} */ event) => {
      const { time } = this.context.page;
      const { left, width } = canvas.getBoundingClientRect();
      return Math.max(0, Math.min(1, (event.clientX - left - GUTTER) / (width - GUTTER))) * (time?.seconds ?? 0);
    };
    canvas.addEventListener("mousedown", (event) => {
      begin = second(event);
    });
    canvas.addEventListener("mouseup", (event) => {
      const step = this.context.page.machines?.width ?? 1;
      const ends = begin === null ? [] : [begin, second(event)].sort((a, b) => a - b);
      begin = null;
      if (ends.length === 0) return;
      const range = { from: Math.floor(ends[0] / step) * step * SECOND, to: Math.ceil(ends[1] / step) * step * SECOND };
      if (range.to > range.from) this.context.go({ time: formatRange({ from: Math.round(range.from), to: Math.round(range.to) }), time2: "" });
    });
  }
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
 * @param {{from: number, to: number} | null} range as parts of the width
 * @param {string} top
 */
function drawChart(canvas, hosts, step, width, highest, chosen, range, top) {
  const context = sizedCanvas(canvas, GUTTER + width, CHART_HEIGHT);
  if (!context) return;
  const dark = isDark();
  if (range) {
    context.fillStyle = dark ? "#2a3340" : "#e8eef6";
    context.fillRect(GUTTER + range.from * width, 0, (range.to - range.from) * width, CHART_HEIGHT);
  }
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
