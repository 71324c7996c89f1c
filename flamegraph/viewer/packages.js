// @ts-check
/** Which package, namespace or part of the machine a method belongs to; told once for each name. */

import { packageLength } from "./format.js";

/** Java packages are told apart by this many segments. */
const SEGMENTS = 3;
const NATIVE = "native code";
const KERNEL = 5;

/** @type {WeakMap<string[], {of: Int32Array, labels: string[], index: Map<string, number>}>} */
const asked = new WeakMap();

/** @param {string[]} names */
export function packagesOf(names) {
  let packages = asked.get(names);
  if (!packages) asked.set(names, (packages = { of: new Int32Array(names.length).fill(-1), labels: [], index: new Map() }));
  return packages;
}

/**
 * The number of a frame's package among the labels of `packagesOf(names)`.
 * @param {string[]} names
 * @param {number} name index into names, not -1
 * @param {number} kind
 */
export function packageNumber(names, name, kind) {
  const packages = packagesOf(names);
  if (kind !== KERNEL && packages.of[name] >= 0) return packages.of[name];
  const label = kind === KERNEL ? "kernel" : packageLabel(names[name]);
  const number = packages.index.get(label) ?? packages.labels.push(label) - 1;
  packages.index.set(label, number);
  if (kind !== KERNEL) packages.of[name] = number;
  return number;
}

/** @param {string} name */
function packageLabel(name) {
  if (/^[[(]|^\w+(?:\[\])+$/.test(name)) return "";
  const length = packageLength(name);
  if (length > 0) return name.slice(0, length - 1).split(/[./]/, SEGMENTS).join(".");
  const namespace = /^[\w~]+(?=::)/.exec(name);
  return namespace ? namespace[0] : NATIVE;
}
