// @ts-check
/** The page's description and its block of data. Nothing is fetched. */

import { readTree } from "./tree.js";


/** `counts` is what is counted, where the type does not say. @typedef {{type: string, unit: string, counts?: string}} ValueType */

/**
 * What was measured: `second` is another value that goes with the first, `per` of it for each.
 * @typedef {object} EventInfo
 * @property {string} name
 * @property {string} title
 * @property {string} type
 * @property {string} unit
 * @property {string} [counts] what is counted, where the type does not say
 * @property {string} wider what a wider frame has more of
 * @property {(ValueType & {per: number}) | null} second
 * @property {number} seconds how long the recording took
 */

/** @typedef {{name: string, run: number}} HostInfo */
/** @typedef {{host: number, name: string, pid: number, labels: Record<string, string>}} ProcessInfo */
/** @typedef {{event: number, process: number, thread: number | null}} ColumnInfo */
/**
 * An event's coverage in words: of each run, of hosts by their number; `short` is how long a process was recorded, if
 * not for all of the time.
 * @typedef {{runs: string[], hosts: Record<number, string>, short: Record<number, string>}} Coverage
 */

/**
 * A sentence; `at` is the place of the method's name, without its package, in it.
 * @typedef {{text: string, method: string | null, at: number | null}} Finding
 */
/** Why an event has no samples. @typedef {{answer: string, why: string, reasons: Reason[], remedy: string}} Empty */
/** `more` hosts are not named. @typedef {{hosts: string[], more: number, text: string, remedy: string}} Reason */

/** Name, self, total. @typedef {[string, number, number]} MethodNumbers */
/**
 * The hottest methods as parts of `total`. With several hosts: `shares` by method and host, `stands_out` if the largest
 * is far above the cluster's. A host without a share may still have up to `forgot` of the method.
 * @typedef {object} Hottest
 * @property {string} lead
 * @property {number} total
 * @property {MethodNumbers[]} by_self
 * @property {MethodNumbers[]} by_total
 * @property {{host: number, forgot: number}[]} hosts
 * @property {number[][]} [shares]
 * @property {boolean[]} [stands_out]
 */

/** How far a host is from the others; methods with their share here, and usually. */
/** @typedef {{divergence: number, noise: number, cosine: number, moved: number, outlier: boolean, methods: [string, number, number][]}} Distance */
/**
 * A host of an event: `counts` are a text and a number for each of `heads`, `hottest` is a method and its share.
 * @typedef {object} HostRow
 * @property {number | null} host its number; null for one without samples of any event
 * @property {string} name
 * @property {number} recorded of its `processes`
 * @property {number} processes
 * @property {number} taken
 * @property {[string, number][]} counts
 * @property {number | null} total
 * @property {[string, number] | null} hottest
 * @property {string} why_empty
 * @property {Distance | null} unlike
 */
/** `odd` are processes unlike the others. */
/** @typedef {{heads: string[], compared: boolean, rows: HostRow[], odd: {who: string, what: string}[], more_odd: number, idle: string[]}} Hosts */

/**
 * What the page says about an event. `hosts` is null for a file.
 * @typedef {object} Summary
 * @property {Finding[]} findings the answer first
 * @property {string} second the line below the answer
 * @property {{text: string, partial: boolean}[]} chips
 * @property {Empty | null} empty
 * @property {Hottest | null} hottest
 * @property {Hosts | null} hosts
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
/** @typedef {{samples: boolean, all_well: string, fine: string, lines: LedgerLine[]}} Ledger */
/** The ledger; facts by label, as text or code. @typedef {{ledger: Ledger, facts: [string, string, string[]][]}} Run */

/**
 * The page's description. Any name in it may be hostile.
 * @typedef {object} PageInfo
 * @property {number} format
 * @property {string} title
 * @property {boolean} [trimmed] frames outside the job's code were cut off: values are lower than the samples taken
 * @property {string} [data] id of the block; none when nothing was recorded
 * @property {EventInfo[]} events
 * @property {string[]} runs
 * @property {HostInfo[]} hosts
 * @property {ProcessInfo[]} processes
 * @property {string[]} threads
 * @property {ColumnInfo[]} columns
 * @property {Coverage[]} coverage by event
 * @property {Summary[]} summaries by event
 * @property {Run | null} run null where the page is not of one run
 */

const FORMAT = 3;

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
