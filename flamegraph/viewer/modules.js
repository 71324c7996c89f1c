// @ts-check
/** In which module native functions lie. What is known of names is unpacked when the first is asked for. */

/** @typedef {import("./bytes.js").ByteReader} ByteReader */

/**
 * By the names of a page, a list that all its graphs share: modules, and for each name the number of its own.
 * @type {WeakMap<string[], {texts: string[], packed: ByteReader, numbers: Int32Array | null}>}
 */
const MODULES = new WeakMap();

/**
 * @param {ByteReader} reader where what is known of modules begins, if anything is
 * @param {string[]} names
 */
export function readModules(reader, names) {
  if (reader.done) return;
  const texts = [""];
  for (let left = reader.count(); left > 0; left--) {
    const { bytes, at, to } = reader.piece();
    texts.push(new TextDecoder().decode(bytes.subarray(at, to)));
  }
  MODULES.set(names, { texts, packed: reader.piece(), numbers: null });
}

/**
 * Empty where it is not known.
 * @param {{names: string[], name: Int32Array}} shape
 * @param {number} node
 */
export function moduleOf({ names, name }, node) {
  const known = MODULES.get(names);
  if (!known || name[node] < 0) return "";
  if (!known.numbers) {
    known.numbers = new Int32Array(names.length);
    known.packed.unpack(known.numbers, names.length);
  }
  return known.texts[known.numbers[name[node]]] ?? "";
}
