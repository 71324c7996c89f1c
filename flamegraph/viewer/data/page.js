// @ts-check
/** What the page carries: its description and one block of data. Nothing is ever fetched. */

import { readTree } from "./tree.js";

/** @typedef {import("./tree.js").Tree} Tree */

/** `counts` is what is counted, where the type does not tell. @typedef {{type: string, unit: string, counts?: string}} ValueType */

/**
 * What was measured: `second` is another value that goes with the first, `per` of it for each.
 * @typedef {object} EventInfo
 * @property {string} name
 * @property {string} title
 * @property {string} type
 * @property {string} unit
 * @property {string} [counts] what is counted, where the type does not tell
 * @property {string} wider what a wider frame has more of
 * @property {(ValueType & {per: number}) | null} second
 * @property {number} seconds how long the recording took
 */

/** @typedef {{name: string, run: number}} HostInfo */
/** @typedef {{host: number, name: string, pid: number, labels: Record<string, string>}} ProcessInfo */
/** @typedef {{event: number, process: number, thread: number | null}} ColumnInfo */
/** @typedef {{method: string, share: number, usual: number}} Difference */
/** @typedef {{host: number, expected: number, taken: number, distance: number, noise: number, outlier: boolean, differs: Difference[]}} HostNumbers */
/**
 * How much of what there was an event is of, in words: each run, hosts by their number; `short` for how much of the
 * time processes were recorded that were not for all of it.
 * @typedef {{runs: string[], hosts: Record<number, string>, short: Record<number, string>}} Coverage
 */
/** @typedef {{text: string, method: string | null, host: number | null}} Finding */

/**
 * What the page says about itself. Every name in it may be anything at all.
 * @typedef {object} PageInfo
 * @property {number} format
 * @property {string} title
 * @property {boolean} [trimmed] frames of others were cut off: there is less than the samples that were taken
 * @property {string} [data] id of the block; none when nothing was recorded
 * @property {EventInfo[]} events
 * @property {string[]} runs
 * @property {HostInfo[]} hosts
 * @property {ProcessInfo[]} processes
 * @property {string[]} threads
 * @property {ColumnInfo[]} columns
 * @property {HostNumbers[][]} hosts_by_event
 * @property {Coverage[]} coverage by event
 * @property {Finding[][]} findings
 */

const FORMAT = 2;

/** @returns {PageInfo | null} null for a page without data */
export function readPage() {
  const text = document.getElementById("hprofiler-page")?.textContent;
  if (!text) return null;
  /** @type {PageInfo} */
  const page = JSON.parse(text);
  return page.format === FORMAT && page.data && page.events.length > 0 ? page : null;
}

/**
 * The call tree in the page's block of data.
 * @param {PageInfo} page
 */
export async function loadTree(page) {
  const text = document.getElementById(page.data ?? "")?.textContent;
  if (!text) throw new Error("the page carries no data");
  const tree = readTree(await inflate(fromBase64(text.trim())));
  if (tree.columns.length !== page.columns.length) throw new Error("the profile's data is not this page's");
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
