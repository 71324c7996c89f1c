// @ts-check
/** What machines were doing: charts of metrics by time, a line for each host; tables of hosts and processes. */

import { filled, linkButton, make, sizedCanvas, staticTable } from "../controls/dom.js";
import { isDark } from "../controls/theme.js";
import { grouped } from "../data/format.js";
import { formatRange, rangeText, SECOND } from "../data/range.js";
import { hideTooltip, showTip } from "../graph/frame_details.js";
import { drawTicks, GUTTER } from "../heat/cell_map.js";
import { stepsOf, timeAxis } from "../heat/time_axis.js";
import { LINE_COLORS } from "./axes.js";
import { SortedTable } from "./table.js";

/** @import { Context, View } from "../controls/context.js" */
/** @import { Chart, MachineProcess, Machines } from "../data/page.js" */
/** @import { Range } from "../data/range.js" */
/** @import { State } from "../data/state.js" */
/** @import { TooltipRow } from "../graph/frame_details.js" */
/** In pixels: of a bucket, of the recording, of a column of ticks. @typedef {{step: number, width: number, columnWidth: number, ticks: [column: number, text: string][]}} Axis */
/** The buckets that the pointer or keys are at, the first one fixed, and the host that is pointed at, -1 for none. @typedef {{from: number, to: number, host: number}} Cursor */

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
    /** @type {Cursor | null} */
    this.cursor = null;
    /** Of hosts and of processes; they sort by columns of other names. @type {{show: (state: State) => void}[]} */
    this.tables = [];
    if (!machines) return;
    this.note = make("p", "lead");
    this.note.setAttribute("aria-live", "polite");
    this.value = make("p", "lead", EMPTY_LINE);
    this.value.setAttribute("aria-live", "polite");
    this.body.append(...machines.findings.map((text) => make("p", "", text)), this.note, this.value);
    const [quiet, drawn] = [true, false].map((one) => machines.charts.filter((chart) => isQuiet(chart) === one));
    this.body.append(...drawn.map((chart) => this.chartSection(machines, chart)), ...this.foldQuiet(machines, quiet));
    if (machines.hosts.length > 1) this.body.append(this.hostsTable(machines));
    if (machines.processes.rows.length) this.body.append(this.processesTable(machines));
    this.body.append(...machines.not_counted.map((text) => make("p", "lead", text)));
    if (machines.counters) this.body.append(countersTable(machines.counters));
    panel.append(this.body);
    new ResizeObserver(() => this.draw()).observe(this.body);
  }

  /** @param {State} state */
  update(state) {
    for (const table of this.tables) table.show(state);
    this.draw();
  }

  recolor() {
    this.draw();
  }

  /**
   * @param {Machines} machines
   * @param {Chart} chart
   */
  chartSection({ hosts }, chart) {
    const canvas = document.createElement("canvas");
    canvas.setAttribute("role", "img");
    canvas.tabIndex = 0;
    this.charts.push({ chart, canvas });
    this.listen(chart, canvas);
    const head = make("h2", "", chart.unit ? `${chart.title} (${chart.unit})` : chart.title);
    const [figure] = chart.figures;
    if (hosts.length === 1 && figure) head.append(make("span", "soft", ` mean ${shownValue(figure[0], chart.unit)}`));
    return filled("section", "chart", head, canvas);
  }

  /**
   * Charts that say no more than that little happened, below one line.
   * @param {Machines} machines
   * @param {Chart[]} quiet
   */
  foldQuiet(machines, quiet) {
    const zero = machines.always_zero.length ? `Always 0: ${machines.always_zero.join("; ")}.` : "";
    if (quiet.length === 0) return zero ? [make("p", "lead", zero)] : [];
    const said = quiet.map(({ title, unit, values }) => `${title} (at most ${shownValue(highestOf(values), unit)})`);
    const fold = document.createElement("details");
    fold.append(make("summary", "", `Little happened: ${said.join("; ")}. ${zero}`), ...quiet.map((chart) => this.chartSection(machines, chart)));
    this.context.folds.add("quiet", fold);
    return [fold];
  }

  /** The host of the scope; -1 for several. */
  get chosen() {
    const { page, scope } = this.context;
    const host = scope.kind === "host" ? scope.index : scope.kind === "process" ? page.processes[scope.index].host : null;
    return page.machines?.hosts.findIndex((one) => host !== null && one.host === host) ?? -1;
  }

  draw() {
    const { context, body, chosen, cursor } = this;
    const { machines, time } = context.page;
    if (!machines || !time || body.clientWidth === 0 || !this.note) return;
    const { columnWidth, perSecond, ticks } = timeAxis(time, body.clientWidth, undefined, Infinity);
    this.perSecond = perSecond;
    const axis = { step: machines.width * perSecond, width: time.seconds * perSecond, columnWidth, ticks };
    const { range } = context;
    const several = machines.hosts.length > 1;
    const highestOnly = machines.width === 1 ? "" : `The highest value of each ${roundedText(machines.width)}\u202fs.`;
    const lines = [several && "One line per host.", highestOnly, several && chosen >= 0 && `The thick line is ${machines.hosts[chosen].name}.`];
    const shown = range
      ? `Shown in all views: ${rangeText(range)}. The tables below are of the whole recording.`
      : "Drag over a chart to see only that time in every view. Keyboard: arrow keys move, Shift extends, Enter selects.";
    this.note.textContent = [...lines.filter(Boolean), shown].join(" ");
    const marks = this.marks(range);
    const thick = several ? (cursor && cursor.host >= 0 ? cursor.host : chosen) : -1;
    for (const { chart, canvas } of this.charts) {
      const highest = highestOf(chart.values);
      drawChart(canvas, chart.values, axis, highest, thick, marks, shownValue(highest, chart.unit));
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
    const point = (/** @type {MouseEvent} */ event) => {
      const box = canvas.getBoundingClientRect();
      const second = (event.clientX - box.left - GUTTER) / this.perSecond;
      const to = Math.max(0, Math.min(buckets - 1, Math.floor(second / (this.context.page.machines?.width ?? 1))));
      const host = nearestHost(chart.values, to, event.clientY - box.top);
      this.move(chart, { from: drags && this.cursor ? this.cursor.from : to, to, host });
      this.tip(chart, to, host, event);
    };
    canvas.addEventListener("mousedown", (event) => {
      drags = false;
      point(event);
      drags = true;
    });
    canvas.addEventListener("mousemove", point);
    canvas.addEventListener("mouseup", () => {
      if (drags) this.select();
      drags = false;
    });
    const leave = () => {
      drags = false;
      hideTooltip();
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
    this.move(chart, { from: shiftKey && cursor ? cursor.from : to, to, host: -1 });
    return true;
  }

  /**
   * @param {Chart} chart
   * @param {Cursor | null} cursor
   */
  move(chart, cursor) {
    const { cursor: before } = this;
    if (before?.from === cursor?.from && before?.to === cursor?.to && before?.host === cursor?.host) return;
    this.cursor = cursor;
    const { machines } = this.context.page;
    if (this.value && machines) this.value.textContent = cursor ? bucketValues(machines, chart, cursor.to) : EMPTY_LINE;
    this.draw();
  }

  /**
   * The tooltip: the host that is pointed at, and of several the highest and the lowest.
   * @param {Chart} chart
   * @param {number} bucket
   * @param {number} host
   * @param {MouseEvent} event
   */
  tip(chart, bucket, host, { clientX, clientY }) {
    const { machines } = this.context.page;
    if (!machines) return;
    const known = valuesAt(machines, chart, bucket);
    const shown = (/** @type {number} */ value) => shownValue(value, chart.unit);
    const value = host < 0 ? null : chart.values[host][bucket];
    /** @type {TooltipRow[]} */
    const rows = value === null || value === undefined ? [["nothing was read", ""]] : [[machines.hosts[host].name, shown(value)]];
    if (known.length > 1) {
      rows.push(["most", shown(known[0].value), known[0].name]);
      rows.push(["least", shown(known[known.length - 1].value), known[known.length - 1].name]);
    }
    showTip(`${chart.title}, ${timeOf(machines, bucket)}`, rows, clientX, clientY);
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

  /**
   * Hosts and metrics: the mean, the highest value, a small picture. The worst host is first.
   * @param {Machines} machines
   */
  hostsTable({ hosts, charts: all, more_hosts: more }) {
    const { context } = this;
    const charts = all.filter(({ figures }) => figures.some((one) => one !== null));
    /** @type {import("./table.js").TableColumn<number>[]} */
    const columns = [
      {
        key: "host", label: "host", title: "Sort by name", className: "name", value: (row) => hosts[row].name,
        cell: (row) => {
          const { name, host } = hosts[row];
          const show = () => context.go({ view: "graph", scope: `host:${host}`, zoom: 0 });
          return [host === null ? make("bdi", "", name) : linkButton(`Flame graph of ${name}`, show, make("bdi", "", name))];
        },
      },
      ...charts.map(({ title, unit, values, figures }, at) => {
        const highest = highestOf(values);
        return {
          key: `host-${at}`, label: title, title: "Sort by the mean", className: "number",
          value: (/** @type {number} */ row) => figures[row]?.[0] ?? -1,
          cell: (/** @type {number} */ row) => {
            const figure = figures[row];
            if (!figure) return [];
            const [mean, most] = figure.map((value) => shownValue(value, unit));
            const shown = [make("span", "", mean), document.createElement("br"), make("span", "soft", `max ${most}`)];
            return row < MOST_SPARKS ? [...shown, document.createElement("br"), sparkline(values[row], highest)] : shown;
          },
        };
      }),
    ];
    const table = this.sorted("machine-hosts", "Hosts", columns, [...hosts.keys()]);
    const rest = more ? [make("p", "lead", `… and ${grouped(more)} more hosts.`)] : [];
    return filled("section", "machines", make("h2", "", "Hosts: mean and maximum of the whole recording"), table, ...rest);
  }

  /**
   * What each process used of its host, over the whole recording.
   * @param {Machines} machines
   */
  processesTable({ hosts, processes: { columns: heads, rows, more_rows: more } }) {
    const { context } = this;
    /** @type {import("./table.js").TableColumn<MachineProcess>[]} */
    const columns = [
      {
        key: "process", label: "process", title: "Sort by name", className: "name", value: ({ name }) => name,
        cell: ({ name, process }) => {
          const show = () => context.go({ view: "graph", scope: `process:${process}`, zoom: 0 });
          return [process === null ? make("bdi", "", name) : linkButton(`Flame graph of ${name}`, show, make("bdi", "", name))];
        },
      },
      ...(hosts.length > 1 ? [{
        key: "process-host", label: "host", title: "Sort by host", className: "",
        value: (/** @type {MachineProcess} */ { host }) => host, cell: (/** @type {MachineProcess} */ { host }) => [make("bdi", "", host)],
      }] : []),
      ...heads.map(({ label, title, unit }, at) => ({
        key: `process-${at}`, label, title, className: "number",
        value: (/** @type {MachineProcess} */ { values }) => values[at] ?? -1,
        cell: (/** @type {MachineProcess} */ { values }) => {
          const value = values[at];
          return [make("span", "", value === null ? "" : shownValue(value, unit))];
        },
      })),
    ];
    const table = this.sorted("machine-processes", "Processes", columns, rows);
    const rest = more ? [make("p", "lead", `… and ${grouped(more)} more processes.`)] : [];
    return filled("section", "machines", make("h2", "", "Processes, over the whole recording"), table, ...rest);
  }

  /**
   * A table that keeps its order until it is sorted by one of its columns.
   * @template Row
   * @param {string} id
   * @param {string} label
   * @param {import("./table.js").TableColumn<Row>[]} columns
   * @param {Row[]} rows
   */
  sorted(id, label, columns, rows) {
    /** @type {SortedTable<Row>} */
    const table = new SortedTable(id, label, (change) => this.context.set(change));
    this.tables.push({
      show: ({ sort, rows: limit }) => {
        const known = columns.some(({ key }) => key === sort.replace(/^-/, ""));
        table.show(columns, rows, known ? sort : null, limit);
      },
    });
    return table.element;
  }
}

/**
 * What is known of hosts at a time, the highest first.
 * @param {Machines} machines
 * @param {Chart} chart
 * @param {number} bucket
 */
function valuesAt({ hosts }, { values }, bucket) {
  const known = values.flatMap((host, at) => {
    const value = host[bucket];
    return value === null || value === undefined ? [] : [{ name: hosts[at].name, value }];
  });
  return known.sort((one, other) => other.value - one.value);
}

/**
 * The highest and the lowest host at a time.
 * @param {Machines} machines
 * @param {Chart} chart
 * @param {number} bucket
 */
function bucketValues(machines, chart, bucket) {
  const known = valuesAt(machines, chart, bucket);
  const ends = known.length > 1 ? [known[0], known[known.length - 1]] : known;
  const said = ends.map(({ name, value }) => `${name} ${shownValue(value, chart.unit)}`).join(", least ");
  return `${chart.title} at ${timeOf(machines, bucket)}: ${known.length > 1 ? "most " : ""}${said || "nothing was read"}.`;
}

/**
 * When a bucket begins.
 * @param {Machines} machines
 * @param {number} bucket
 */
function timeOf({ width }, bucket) {
  return `${roundedText(bucket * width)}\u202fs`;
}

/**
 * The host whose line is nearest to a place of the chart; -1 where nothing was read.
 * @param {(number | null)[][]} values
 * @param {number} bucket
 * @param {number} y in pixels from the chart's top
 */
function nearestHost(values, bucket, y) {
  const highest = highestOf(values);
  let [nearest, least] = [-1, Infinity];
  values.forEach((host, at) => {
    const value = host[bucket];
    if (value === null || value === undefined) return;
    const distance = Math.abs(heightOf(value, highest) - y);
    if (distance < least) [nearest, least] = [at, distance];
  });
  return nearest;
}

/**
 * Whether the page folds it: nothing in it is worth a look.
 * @param {Chart} chart
 */
function isQuiet({ values, least }) {
  return highestOf(values) < least;
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
 * Where a value is in a chart, in pixels from its top.
 * @param {number} value
 * @param {number} highest
 */
function heightOf(value, highest) {
  return CHART_HEIGHT - 2 - (value / highest) * (CHART_HEIGHT - 6);
}

/**
 * @param {HTMLCanvasElement} canvas
 * @param {(number | null)[][]} hosts
 * @param {Axis} axis
 * @param {number} highest
 * @param {number} thick the host with a thick line, -1 for none
 * @param {{from: number, to: number}[]} marks
 * @param {string} top
 */
function drawChart(canvas, hosts, axis, highest, thick, marks, top) {
  const { width, columnWidth } = axis;
  const context = sizedCanvas(canvas, GUTTER + width + 2, CHART_HEIGHT + TICKS_BELOW);
  if (!context) return;
  const colors = LINE_COLORS[isDark() ? 1 : 0];
  // Steps lie between pixels: a thin line fills a row of them.
  const steps = (/** @type {(number | null)[]} */ values) =>
    stepsOf(values, axis.step, width, (value) => Math.round(heightOf(value, highest)) + 0.5);
  if (hosts.length === 1) {
    context.fillStyle = colors.area;
    hosts[0].forEach((value, at) => {
      if (value === null) return;
      const x = Math.min(width, at * axis.step);
      const y = heightOf(value, highest);
      context.fillRect(GUTTER + x, y, Math.min(width, (at + 1) * axis.step) - x, CHART_HEIGHT - y);
    });
  }
  context.fillStyle = colors.mark;
  for (const { from, to } of marks) context.fillRect(GUTTER + from, 0, Math.max(1, Math.min(to, width) - from), CHART_HEIGHT);
  context.fillStyle = colors.text;
  context.font = "11px system-ui, sans-serif";
  context.textAlign = "right";
  context.fillText(top, GUTTER - 6, 10);
  context.fillText("0", GUTTER - 6, CHART_HEIGHT - 2);
  drawTicks(context, axis.ticks, columnWidth, CHART_HEIGHT, GUTTER + width);
  const line = (/** @type {(number | null)[]} */ values, /** @type {string} */ color, /** @type {number} */ wide) => {
    context.strokeStyle = color;
    context.lineWidth = wide;
    context.stroke(steps(values));
  };
  hosts.forEach((values, at) => {
    if (at !== thick) line(values, colors.line, hosts.length === 1 ? 1.5 : 1);
  });
  if (thick >= 0) line(hosts[thick], colors.chosen, 2.5);
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
  if (unit === "B/s" || unit === "B") {
    const step = Math.min(SIZES.length - 1, value < 1 ? 0 : Math.floor(Math.log2(value) / 10));
    return `${roundedText(value / 2 ** (10 * step))} ${SIZES[step]}${unit.slice(1)}`;
  }
  return `${roundedText(value)}${unit && `\u202f${unit}`}`;
}

/** @param {number} value */
function roundedText(value) {
  return value >= 9.95 ? grouped(Math.round(value)) : value.toFixed(1);
}
