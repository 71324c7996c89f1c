// @ts-check
/** The page's description and its block of data. Nothing is fetched. */

import { readTree } from "./tree.js";

/** `counts` is what is counted, such as "calls", if the type does not say it. @typedef {{type: string, unit: string, counts?: string}} ValueType */

/**
 * @typedef {object} EventInfo
 * @property {string} name
 * @property {string} title
 * @property {string} type of its value
 * @property {string} unit "count", "nanoseconds" or "bytes"
 * @property {string} [counts] as in ValueType
 * @property {string} wider "Wider means more …"
 * @property {(ValueType & {per: number}) | null} second another value; `per` of it belongs to 1 of the first
 * @property {number} seconds length of the recording
 * @property {string[]} [ends] regular expressions of what its stacks end in; what that costs is its callers'
 * @property {boolean} [kernel_ends] whether the kernel's frames are of it
 * @property {string[]} [profiler] regular expressions of frames of the profiler's own work, which tables do not name
 * @property {string} [broken] the frame above stacks that tables leave out
 * @property {boolean} [self_only] whether too many stacks are broken for totals
 * @property {Unsure} [unsure] what may be wrong of callers; absent if all are sure
 */

/**
 * Names of `code` that may be below a wrong caller, and of `methods` whose totals are not known for it. If it is `moved`,
 * the page has this code below its nearest sure caller.
 * @typedef {{code: string[], methods: string[], moved: boolean}} Unsure
 */

/** @typedef {{name: string, run: number}} HostInfo */
/** @typedef {{host: number, name: string, pid: number, labels: Record<string, string>}} ProcessInfo */
/**
 * `thread` is null if the event has no threads, `slice` if the samples belong to none.
 * @typedef {{event: number, process: number, thread: number | null, slice: number | null}} ColumnInfo
 */
/** A part of the job, such as a stage. Its certain and its likely samples are two of one name. @typedef {{name: string, label: string, certain: boolean}} SliceInfo */
/** Microseconds since 1970; the recording's seconds; microseconds of the shortest span that is told apart. @typedef {{start: number, seconds: number, width: number}} TimeInfo */
/** Half-open, in seconds since the start. @typedef {[from: number, to: number, label: string]} Span */
/** What else is known by time; `process` is null if it is of none. @typedef {{name: string, kind: "gc" | "job" | "stage", process: number | null, spans: Span[]}} Lane */
/**
 * How much was recorded, as text: of each run ("" if unknown), of hosts by number; `short` is how long a process was
 * recorded, by its number, if not for the whole time.
 * @typedef {{runs: string[], hosts: Record<number, string>, short: Record<number, string>}} Coverage
 */

/**
 * A sentence in parts; the name of its method, without the package, and its share are parts of their own.
 * @typedef {{method: string | null, parts: ["" | "method" | "share", string][]}} Finding
 */
/** Why an event has no samples. @typedef {{answer: string, why: string, reasons: Reason[], remedy: string}} Empty */
/** `more` is the number of hosts that are not named. @typedef {{hosts: string[], more: number, text: string, remedy: string}} Reason */

/** A host's distance from the others (docs/outliers.md); methods with their share here, and usually. */
/** @typedef {{divergence: number, noise: number, cosine: number, moved: number, outlier: boolean, methods: [string, number, number][]}} Distance */
/**
 * A host of an event.
 * @typedef {object} HostRow
 * @property {number | null} host its number; null without samples of any event
 * @property {string} name
 * @property {number} recorded of its `processes`
 * @property {number} processes
 * @property {number} taken samples
 * @property {[string, number][]} counts text and number for each of the table's `heads`
 * @property {number | null} total
 * @property {[string, number] | null} hottest method and its share
 * @property {string} why_empty
 * @property {Distance | null} unlike
 */
/** `odd` are outliers among the processes, `more_odd` the number of others, `idle` names of hosts. */
/** @typedef {{heads: string[], compared: boolean, rows: HostRow[], odd: {who: string, what: string}[], more_odd: number, idle: string[]}} Hosts */

/**
 * What the page says about an event.
 * @typedef {object} Summary
 * @property {Finding[]} findings the most important first
 * @property {string} second the line below the first finding, or ""
 * @property {{text: string, partial: boolean}[]} chips short facts; `partial` if something is missing
 * @property {Empty | null} empty
 * @property {string} lead what the columns of methods mean
 * @property {Hosts | null} hosts null for a file
 * @property {WorkRow[] | null} work the whole first; null for a file
 */

/**
 * Costs by code of category, the largest first. `scope` or the name of a stage (`slice`) lead to its flame graph;
 * phases have none.
 * @typedef {object} WorkRow
 * @property {"whole" | "phase" | "host" | "stage" | "process"} kind
 * @property {boolean} [inlined] of the whole: whether there may be inlined code
 * @property {number} [more] how many of its kind are left out
 * @property {string} label
 * @property {string} scope
 * @property {string} slice
 * @property {number} total
 * @property {Record<string, number>} parts
 */

/**
 * @typedef {object} LedgerLine
 * @property {"failed" | "degraded" | "ok" | "idle"} status
 * @property {string} stage
 * @property {string} host
 * @property {string} process
 * @property {number | null} pid
 * @property {string[]} used
 * @property {[number, number, number] | null} samples expected, taken, lost
 * @property {string} attached
 * @property {string} sent
 * @property {string} reason
 * @property {string} remedy
 * @property {string} took
 */
/** `samples` if they are counted; texts if nothing failed, and for the folded lines. @typedef {{samples: boolean, all_well: string, fine: string, lines: LedgerLine[]}} Ledger */
/** Facts are a label, "text" or "code", and lines; `seen` says what part of the job was recorded. @typedef {{seen: Section[], ledger: Ledger, facts: [string, string, string[]][]}} Run */

/** A text, or a text and the number that it stands for. @typedef {string | [string, number]} Cell */
/** `key` names what a row is of, such as "stage 3.0"; `belongs` are keys of what belongs to that, `members` those of a row of several. @typedef {{cells: Cell[], key?: string, belongs?: string[], members?: string[]}} Row */
/**
 * A table. Columns that are `minor` are hidden where there is no room; `more` rows are left out, `things` is what rows
 * are called.
 * @typedef {{kind: "table", id: string, things: string, columns: {label: string, number: boolean, about?: string, minor?: boolean}[], rows: Row[], more: number}} TableBlock
 */
/** A point: where it is, what it says, how far off it may be, and the key of its row, or "". @typedef {[x: number, y: number, text: string, low: number | null, high: number | null, key: string]} Mark */
/** `level` is what its marks are compared with. @typedef {{name: string, style: "line" | "curve" | "ideal" | "points", level: [number, string] | null, marks: Mark[]}} Series */
/** Over moments in milliseconds since 1970 if `over` is "", else over numbers of that; `levels` are the ticks of the upright axis. @typedef {{kind: "chart", label: string, over: string, stacked: boolean, levels: [number, string][], series: Series[]}} ChartBlock */
/** In seconds; what is before the mark is drawn apart. The readout says `about`, else the label. @typedef {[since: number, until: number, label: string, key: string, state: "" | "failed" | "removed" | "idle" | "ended" | "cut" | "missed", mark?: number, about?: string]} LaneSpan */
/**
 * Curves by buckets of `width` seconds, the first as an area. `states` are states of spans and what they mean; such a
 * timeline shows its first lines, and all on demand.
 * @typedef {{kind: "timeline", label: string, seconds: number, width: number, curves: {name: string, values: number[]}[], lanes: {name: string, spans: LaneSpan[]}[], states?: [state: string, name: string][]}} TimelineBlock
 */
/** Files beside the page: names, and relative paths as in a URL. @typedef {{kind: "links", files: [string, string][], more: number}} LinksBlock */
/** @typedef {{kind: "facts", pairs: [string, string][]} | {kind: "lines", list: boolean, texts: string[]} | LinksBlock | TableBlock | ChartBlock | TimelineBlock} Block */
/** A part of an answer. @typedef {{title: string, about: string, blocks: Block[]}} Section */
/** What Spark knows of the application, or what else an answer has beside the profile: `name` is then the name of its tab, and `methods` are those of keys. @typedef {{name?: string, methods?: Record<string, string>, headline: string[], findings: string[], sections: Section[]}} Job */
/**
 * Of each host its values by bucket, null where nothing was read, and the mean and the highest value of the whole
 * recording, null if unknown. Where no value reaches `least`, there is little to see.
 * @typedef {{title: string, unit: string, least: number, values: (number | null)[][], figures: ([number, number] | null)[]}} Chart
 */
/** A process on a host, its number if it was recorded, and a value for each column. @typedef {{host: string, name: string, process: number | null, values: (number | null)[]}} MachineProcess */
/** @typedef {{columns: {label: string, title: string, unit: string}[], rows: MachineProcess[], more_rows: number}} MachineProcesses */
/** Metrics of hosts, the worst host first; buckets of `width` seconds. @typedef {{width: number, hosts: {name: string, host: number | null}[], more_hosts: number, charts: Chart[], always_zero: string[], processes: MachineProcesses, findings: string[], not_counted: string[], counters?: {heads: string[], note: string, rows: string[][], more_rows: number} | null}} Machines */
/** What is known in numbers by time: values of buckets of `width` seconds since the start, the first as an area. @typedef {{width: number, curves: {name: string, values: number[]}[], note: string}} Curves */

/**
 * The page's description. Any name in it may be hostile.
 * @typedef {object} PageInfo
 * @property {number} format
 * @property {string} title
 * @property {boolean} [trimmed] frames outside the job's code were cut off: values are lower than the samples taken
 * @property {string} [data] id of the element with the data in base64; absent if nothing was recorded
 * @property {EventInfo[]} events
 * @property {string[]} runs names: one, or two that are compared
 * @property {HostInfo[]} hosts
 * @property {ProcessInfo[]} processes
 * @property {string[]} threads names of groups of threads
 * @property {ColumnInfo[]} columns
 * @property {TimeInfo | null} time null if it is not known when samples were taken
 * @property {SliceInfo[]} slices
 * @property {Lane[]} lanes
 * @property {string} clock how well the hosts' clocks agree, or ""
 * @property {Coverage[]} coverage by event
 * @property {Summary[]} summaries by event
 * @property {Run | null} run null if the page is not of one run
 * @property {[string, string[]][]} [rules] categories of work of the user, and their patterns
 * @property {Machines | null} machines null if no metrics were read
 * @property {Job | null} job null if Spark was not asked, or is not used
 * @property {Curves | null} curves
 */

const FORMAT = 4;

/** @returns {PageInfo} */
export function readPage() {
  /** @type {PageInfo} */
  const page = JSON.parse(document.getElementById("hprofiler-page")?.textContent || "null");
  if (page?.format !== FORMAT) throw new Error("the page has no description in a known format");
  return page;
}

/**
 * The hosts of an event with samples of it.
 * @param {PageInfo} page
 * @param {number} event
 */
export function sampledHosts(page, event) {
  return (page.summaries[event].hosts?.rows ?? []).filter(({ host, taken }) => host !== null && taken > 0);
}

/**
 * The call tree in the page's block of data.
 * @param {PageInfo} page
 */
export async function loadTree(page) {
  const text = document.getElementById(page.data ?? "")?.textContent;
  if (!text) throw new Error("the page has no data");
  const tree = readTree(await inflate(fromBase64(text.trim())));
  if (tree.columns.length !== page.columns.length) throw new Error("the data does not belong to this page");
  return tree;
}

/** @param {string} text */
function fromBase64(text) {
  const native = /** @type {{fromBase64?: (text: string) => Uint8Array<ArrayBuffer>}} */ (
    /** @type {unknown} */ (Uint8Array)
  );
  if (native.fromBase64) return native.fromBase64(text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/** @param {Uint8Array<ArrayBuffer>} packed a zlib stream */
async function inflate(packed) {
  const { writable, readable } = new DecompressionStream("deflate");
  const writer = writable.getWriter();
  try {
    const [bytes] = await Promise.all([new Response(readable).arrayBuffer(), writer.write(packed), writer.close()]);
    return new Uint8Array(bytes);
  } catch {
    throw new Error("the profile's data is damaged or cut short");
  }
}
