// @ts-check
/** A range of time and of durations, as the address and people read them. */

/** In whole microseconds since the recording's start, half-open. @typedef {{from: number, to: number}} Range */
/** Durations, both ends included: band 0 is below 1 µs, band N from 2^(N-1) to 2^N µs. @typedef {{least: number, most: number}} Bands */
/** A part of the recording; null for no limit. @typedef {{range: Range | null, bands: Bands | null}} Selection */

/** Microseconds. */
export const SECOND = 1e6;
const DIGITS = 6;
const RANGE = /^(\d{1,9})(?:\.(\d{1,6}))?-(\d{1,9})(?:\.(\d{1,6}))?$/;
const BANDS_TEXT = /^(\d{1,2})(?:-(\d{1,2}))?$/;

/**
 * "12.4-13.1"; null for anything else. Decimals are read as digits: 0.29 seconds are 290,000 µs exactly.
 * @param {string} text
 * @returns {Range | null}
 */
export function parseRange(text) {
  const parts = RANGE.exec(text);
  if (!parts) return null;
  const time = (/** @type {number} */ at) => Number(parts[at]) * SECOND + Number((parts[at + 1] ?? "").padEnd(DIGITS, "0"));
  const range = { from: time(1), to: time(3) };
  return range.from < range.to ? range : null;
}

/** @param {Range} range */
export function formatRange({ from, to }) {
  return [from, to].map((time) => decimal(time, 0)).join("-");
}

/**
 * For people: "12.40–13.10 s".
 * @param {Range} range
 */
export function rangeText({ from, to }) {
  const digits = Math.max(digitsOf(from), digitsOf(to));
  return `${decimal(from, digits)}–${decimal(to, digits)}\u202fs`;
}

/**
 * Seconds, with at least so many digits behind the point.
 * @param {number} time
 * @param {number} least
 */
function decimal(time, least) {
  const fraction = String(time % SECOND).padStart(DIGITS, "0").replace(/0+$/, "").padEnd(least, "0");
  return Math.floor(time / SECOND) + (fraction && `.${fraction}`);
}

/**
 * Digits behind the point: 2, or 3, or all.
 * @param {number} time
 */
function digitsOf(time) {
  return time % 10_000 === 0 ? 2 : time % 1000 === 0 ? 3 : DIGITS;
}

/**
 * "21", or "18-21"; null for anything else.
 * @param {string} text
 * @returns {Bands | null}
 */
export function parseBands(text) {
  const parts = BANDS_TEXT.exec(text);
  if (!parts) return null;
  const bands = { least: Number(parts[1]), most: Number(parts[2] ?? parts[1]) };
  return bands.least <= bands.most ? bands : null;
}

/** @param {Bands} bands */
export function formatBands({ least, most }) {
  return least === most ? String(least) : `${least}-${most}`;
}

/**
 * For people: "1.02 to 2.05 ms".
 * @param {Bands} bands
 */
export function bandsText({ least, most }) {
  if (most === 0) return "below 1 µs";
  const [from, to] = [least === 0 ? 0 : 2 ** (least - 1), 2 ** most].map(microsecondsText);
  const unit = to.slice(to.indexOf("\u202f"));
  return `${from.endsWith(unit) ? from.slice(0, -unit.length) : from} to ${to}`;
}

/**
 * With at most three digits: "16 µs", "1.02 ms", "20 ms", "1.05 s".
 * @param {number} time
 */
export function microsecondsText(time) {
  const [scale, unit] = time < 1000 ? [1, "µs"] : time < SECOND ? [1000, "ms"] : [SECOND, "s"];
  return `${Number((time / scale).toPrecision(3))}\u202f${unit}`;
}

/**
 * The band of a duration.
 * @param {number} microseconds
 */
export function bandOf(microseconds) {
  return microseconds < 1 ? 0 : Math.floor(Math.log2(microseconds)) + 1;
}
