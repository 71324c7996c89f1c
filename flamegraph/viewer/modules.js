// @ts-check
/** In which module native functions lie, and those of the kernel: a name may stand for one of each. */

/** @typedef {import("./bytes.js").ByteReader} ByteReader */

/** Kinds of frames that have modules, as in FORMAT.md, in the order in which the data has them. */
const KINDS_WITH_MODULES = [0, 5];

/**
 * By the names of a page, a list that all its graphs share: modules, and for each kind and name the number of its own.
 * @type {WeakMap<string[], {texts: string[], numbers: Int32Array[]}>}
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
  const numbers = KINDS_WITH_MODULES.map(() => readNumbers(reader.piece(), names.length, texts.length));
  MODULES.set(names, { texts, numbers });
}

/**
 * @param {ByteReader} piece
 * @param {number} count
 * @param {number} end all are below it
 */
function readNumbers(piece, count, end) {
  const numbers = new Int32Array(count);
  piece.unpack(numbers, count);
  if (numbers.some((number) => number < 0 || number >= end)) throw new Error("the profile's data is damaged: an unknown module");
  return numbers;
}

/**
 * Empty where it is not known, and of frames that have none.
 * @param {{names: string[], name: Int32Array, kind: Uint8Array}} shape
 * @param {number} node
 */
export function moduleOf({ names, name, kind }, node) {
  const known = MODULES.get(names);
  const numbers = known?.numbers[KINDS_WITH_MODULES.indexOf(kind[node])];
  return known && numbers && name[node] >= 0 ? known.texts[numbers[name[node]]] : "";
}
