// @ts-check
/** Numbers and names as people read them; a cache by object. */

/** @import { EventInfo, ValueType } from "./page.js" */

const NARROW_SPACE = "\u202f";
/** Made when something is sorted: the first that a page asks for takes as long as drawing a picture. @type {Intl.Collator | null} */
let collator = null;

/**
 * A share in percent with a sensible number of digits: "52.3 %", "0.04 %".
 * @param {number} part
 * @param {number} whole
 */
export function percent(part, whole) {
  const share = whole > 0 ? (100 * part) / whole : 0;
  if (share > 0 && share < 0.01) return `<0.01${NARROW_SPACE}%`;
  const digits = share === 0 || share >= 99.95 ? 0 : share < 1 ? 2 : 1;
  return `${share.toFixed(digits)}${NARROW_SPACE}%`;
}

/**
 * A value with its unit: "1,234 samples", "4.1 s", "12.5 MiB".
 * @param {number} value
 * @param {ValueType} type
 */
export function quantity(value, type) {
  if (type.unit === "nanoseconds") return duration(value / 1e9);
  if (type.unit === "bytes") return bytes(value);
  const name = type.unit === "count" ? type.type : type.unit;
  const what = type.counts || (/^[a-z_]+$/.test(name) ? name : "samples"); // page-faults, a.b.C.m: the name of an event
  const one = value === 1 ? what.replace(/s$/, "") : what;
  return `${value < 10 ? value.toFixed(1).replace(/\.0$/, "") : grouped(value)} ${one}`;
}

/**
 * An event's amount in every unit: "1,234 samples", "4.1 s", "0.07 cores".
 * @param {number} value
 * @param {EventInfo} event
 * @returns {string[]}
 */
export function amounts(value, event) {
  const texts = [quantity(value, event)];
  if (value === 0) return texts;
  if (event.second) texts.push(quantity(value * event.second.per, event.second));
  const { seconds } = event;
  if (!(seconds > 0)) return texts;
  if (event.type === "cpu") texts.push(plain(value / 1e9 / seconds, "cores"));
  else if (event.second?.type === "cpu") texts.push(plain((value * event.second.per) / 1e9 / seconds, "cores"));
  else if (event.unit === "nanoseconds") texts.push(plain(value / 1e9 / seconds, "threads"));
  else if (event.unit === "bytes" && !event.type.includes("inuse_")) texts.push(`${bytes(value / seconds)}/s`);
  return texts;
}

/**
 * @param {number} value
 * @param {string} what in the plural
 */
function plain(value, what) {
  const digits = value >= 100 ? 0 : value >= 10 ? 1 : value >= 0.01 ? 2 : 4;
  const text = value.toFixed(digits);
  return `${text} ${Number(text) === 1 ? what.replace(/s$/, "") : what}`;
}

/** @param {number} seconds */
function duration(seconds) {
  if (seconds >= 7200) return `${(seconds / 3600).toFixed(1)} h`;
  if (seconds >= 120) return `${(seconds / 60).toFixed(1)} min`;
  if (seconds >= 0.9995) return `${seconds.toFixed(1)} s`;
  return `${(seconds * 1000).toFixed(seconds >= 0.01 ? 0 : 2)} ms`;
}

/**
 * 1 KiB is 1024 bytes.
 * @param {number} count
 */
function bytes(count) {
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  let size = count;
  let unit = 0;
  while (Math.round(size * 10) / 10 >= 1024 && unit < units.length - 1) {
    size /= 1024;
    unit++;
  }
  return `${Number.isInteger(size) ? grouped(size) : size.toFixed(1)} ${units[unit]}`;
}

/**
 * A whole number: "1,234,567".
 * @param {number} value
 */
export function grouped(value) {
  return value.toFixed(0).replace(/\B(?=(?:\d{3})+$)/g, ",");
}

/**
 * A count that may be an average: "1,234", "4.3".
 * @param {number} count
 */
export function countOf(count) {
  return count < 10 && !Number.isInteger(count) ? count.toFixed(1) : grouped(count);
}

/**
 * Numbers within names count as numbers: host2 comes before host10.
 * @param {string} a
 * @param {string} b
 */
export function inOrder(a, b) {
  collator ??= new Intl.Collator("en", { numeric: true });
  return collator.compare(a, b);
}

/**
 * Where the package ends and class and method begin: "org.apache.Foo.bar" → 11. 0 when there is no package. Packages
 * are the leading lower-case segments, as long as a class or a method still follows.
 * @param {string} name
 */
export function packageLength(name) {
  const plain = /[\s<>():[\]]/.test(name.slice(0, 200)) ? name.split(/[(<[\s]/, 1)[0] : name;
  const found = /^(?:[a-z_][\w$]*[./])+(?=[A-Za-z_$][^./]*[./][A-Za-z_$<][^./]*$|[A-Z])/.exec(plain);
  return found ? found[0].length : 0;
}

/**
 * A name as people of Java write it, with dots in its package; engines write slashes.
 * @param {string} name
 */
export function shownName(name) {
  const cut = packageLength(name);
  return cut ? name.slice(0, cut).replaceAll("/", ".") + name.slice(cut) : name;
}

/**
 * Caches a function's values by object.
 * @template {object} Key
 * @template Value
 * @param {(key: Key) => Value} make
 * @returns {(key: Key) => Value}
 */
export function once(make) {
  /** @type {WeakMap<Key, Value>} */
  const known = new WeakMap();
  return (key) => {
    const value = known.get(key) ?? make(key);
    known.set(key, value);
    return value;
  };
}

/**
 * The name without its package.
 * @param {string} name
 */
export function shortName(name) {
  return name.slice(packageLength(name));
}
