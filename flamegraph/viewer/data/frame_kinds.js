// @ts-check
/** What a frame's name and kind say: its family, its package, its library. */

import { once, packageLength } from "./format.js";

/** @import { ByteReader } from "./tree.js" */

/** @type {Record<string, {label: string, hue: number, saturation: number}>} */
export const FAMILIES = {
  jit: { label: "Java, JIT-compiled", hue: 138, saturation: 38 },
  inlined: { label: "Java, inlined", hue: 178, saturation: 36 },
  c1: { label: "Java, C1-compiled", hue: 92, saturation: 38 },
  interpreted: { label: "Java, interpreted", hue: 68, saturation: 42 },
  java: { label: "Java", hue: 138, saturation: 38 },
  python: { label: "Python", hue: 236, saturation: 40 },
  cpp: { label: "C++", hue: 44, saturation: 62 },
  class: { label: "Class", hue: 198, saturation: 40 },
  native: { label: "Native", hue: 8, saturation: 58 },
  kernel: { label: "Kernel", hue: 26, saturation: 72 },
  thread: { label: "Thread", hue: 220, saturation: 10 },
  unknown: { label: "Unknown", hue: 0, saturation: 0 },
  waker: { label: "Waker", hue: 215, saturation: 45 },
  wait: { label: "Waiting", hue: 262, saturation: 34 },
  idle: { label: "Idle threads", hue: 0, saturation: 0 },
  rest: { label: "Smaller frames", hue: 0, saturation: 0 },
};

export const FAMILY_KEYS = Object.keys(FAMILIES);
/** As in FORMAT.md; the last two are of classes. */
const KINDS = ["", "interpreted", "c1", "jit", "inlined", "kernel", "waker", "class", "class"];
export const [INLINED, KERNEL] = [4, 5];
const C1 = 2;
/** The kinds that mark classes, and the first of their own. */
const [MARK, MARK_OUTSIDE, CLASS, CLASS_OUTSIDE] = [4, 5, 7, 8];
/** Values whose stacks end in a class: what was allocated, or locked. */
const OF_CLASSES = new Set(["alloc_objects", "alloc_space", "inuse_objects", "inuse_space", "contentions", "delay"]);
/** A name in square brackets: its depth says what it is. */
const BRACKETED = 254;
const NOT_ASKED = 255;
/** Only their stacks have waits and idle threads, at the root or below the thread. Threads may have the same names. */
const OFF_CPU = new Set(["offcpu", "offcpu_samples", "threads"]);
/** What a thread waits for. */
const WAITS = /^\[(?:lock|park|sleep|network|disk|wait|other)\]$/;
/** Threads that wait for work. */
const IDLE = "[idle pool thread]";
const DEEPEST_WAIT = 2;
/** The frame for everything that pruning left out below one frame. */
const REST = /^\(\d+ smaller frames?\)$/;
/** `function (module's path)`, or what is named so of the interpreter's own modules. */
const PYTHON = / \((?:([^()]*)\.py|<frozen [^()]*>)\)$/;
const JAVA = /^(?:[a-z_][\w$]*[./])+[A-Z]\w*|^[A-Z][\w$]*\.[\w$<]/;

/**
 * Whether frames marked as of the kernel are classes.
 * @param {string} type of the value
 */
export function ofMemory(type) {
  return OF_CLASSES.has(type) && type !== "contentions" && type !== "delay";
}

/**
 * Engines mark the class at the end of a stack as inlined, or as of the kernel for an allocation outside of the
 * thread's buffer. Such frames get kinds of their own: CLASS, CLASS_OUTSIDE.
 * @param {Uint8Array} kind of each node, is changed
 * @param {Float64Array} self of each node
 * @param {string} type of the value
 */
export function markClasses(kind, self, type) {
  if (!OF_CLASSES.has(type)) return;
  for (let node = 1; node < self.length; node++) {
    if (self[node] === 0) continue;
    if (kind[node] === MARK) kind[node] = CLASS;
    else if (kind[node] === MARK_OUTSIDE) kind[node] = CLASS_OUTSIDE;
  }
}

/**
 * Whether `markClasses` made it one.
 * @param {number} kind
 */
export function isClass(kind) {
  return kind >= CLASS;
}

/**
 * Whether frames of a kind are compiled Java methods.
 * @param {number} kind
 */
export function isCompiled(kind) {
  return kind >= C1 && kind <= INLINED;
}

/** By name and kind. @type {(names: string[]) => Uint8Array} */
const familiesOf = once((names) => new Uint8Array(names.length * KINDS.length).fill(NOT_ASKED));
/** The last of them: a legend asks a million times for the same names. @type {{names: string[], table: Uint8Array}} */
let latest = { names: [], table: new Uint8Array(0) };

/**
 * The family a frame belongs to, as an index into FAMILY_KEYS.
 * @param {string[]} names
 * @param {number} name index into names, -1 for none
 * @param {number} kind as in FORMAT.md, or of a class
 * @param {number} depth the root's is 0; the outermost frame may be a group of threads
 * @param {string} type of the value
 */
export function familyNumber(names, name, kind, depth, type) {
  if (name < 0) return FAMILY_KEYS.indexOf("unknown");
  if (latest.names !== names) latest = { names, table: familiesOf(names) };
  const { table } = latest;
  const at = name * KINDS.length + kind;
  const text = names[name];
  if (table[at] === NOT_ASKED) {
    const bracketed = !KINDS[kind] && text.startsWith("[") && text.endsWith("]");
    table[at] = bracketed ? BRACKETED : FAMILY_KEYS.indexOf(KINDS[kind] || familyByShape(text));
  }
  if (table[at] !== BRACKETED) return table[at];
  const mayWait = depth <= DEEPEST_WAIT && OFF_CPU.has(type);
  if (mayWait && WAITS.test(text)) return FAMILY_KEYS.indexOf("wait");
  if (mayWait && text === IDLE) return FAMILY_KEYS.indexOf("idle");
  const thread = / tid=\d+\]$/.test(text) || (depth === 1 && !text.startsWith("[unknown"));
  return FAMILY_KEYS.indexOf(thread ? "thread" : "unknown");
}

/** @param {string} name */
function familyByShape(name) {
  if (REST.test(name)) return "rest";
  if (PYTHON.test(name)) return "python";
  if (name.includes("::")) return "cpp";
  return JAVA.test(name) ? "java" : "native";
}

/** Java packages have this many segments. */
const SEGMENTS = 3;
const NATIVE = "native code";

/** Labels of packages, and by name the number of its own. @typedef {{of: Int32Array, labels: string[], index: Map<string, number>}} Packages */

/** @type {(names: string[]) => Packages} */
export const packagesOf = once((names) => ({ of: new Int32Array(names.length).fill(-1), labels: [], index: new Map() }));

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
  const python = PYTHON.exec(name);
  if (python) return (python[1] ?? "python").split("/", SEGMENTS).join(".");
  const length = packageLength(name);
  if (length > 0) return name.slice(0, length - 1).split(/[./]/, SEGMENTS).join(".");
  const namespace = /^[\w~]+(?=::)/.exec(name);
  return namespace ? namespace[0] : NATIVE;
}

/** Kinds of frames that have modules, in the order in which the data has them. */
const KINDS_WITH_MODULES = [0, KERNEL];

/**
 * Modules by the list of names, which all graphs of a page share; for each kind and name the number of its module.
 * @type {WeakMap<string[], {texts: string[], numbers: Int32Array[]}>}
 */
const MODULES = new WeakMap();

/**
 * @param {ByteReader} reader where what is known of modules begins, if anything is
 * @param {string[]} names
 */
export function readModules(reader, names) {
  if (reader.at === reader.to) return;
  const texts = [""];
  let left = reader.count();
  if (left === 0) return;
  for (; left > 0; left--) {
    const { bytes, at, to } = reader.piece();
    texts.push(new TextDecoder().decode(bytes.subarray(at, to)));
  }
  const numbers = KINDS_WITH_MODULES.map(() => {
    const numbers = new Int32Array(names.length);
    reader.piece().unpack(numbers);
    if (numbers.some((number) => number < 0 || number >= texts.length)) {
      throw new Error("the profile's data is damaged: an unknown module");
    }
    return numbers;
  });
  MODULES.set(names, { texts, numbers });
}

/**
 * The module of a node; empty if unknown.
 * @param {{names: string[], name: Int32Array, kind: Uint8Array}} shape
 * @param {number} node
 */
export function moduleOf({ names, name, kind }, node) {
  const known = MODULES.get(names);
  const numbers = known?.numbers[KINDS_WITH_MODULES.indexOf(kind[node])];
  return known && numbers && name[node] >= 0 ? known.texts[numbers[name[node]]] : "";
}
