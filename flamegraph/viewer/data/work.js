// @ts-check
/** What kind of work frames are: the rules of `rules/frames.yaml`, which the page has, as the core applies them. */

import { once } from "./format.js";
import { INLINED, KERNEL, isClass } from "./frame_kinds.js";

/** @import { Shape } from "./profile.js" */

/**
 * Names of rules and their patterns, each as its parts between stars: `*` is any text, and dots are written as slashes.
 * @typedef {[string, string[][]][]} RuleTable
 */
/**
 * @typedef {object} FrameRules
 * @property {RuleTable} categories
 * @property {RuleTable} kernel
 * @property {RuleTable} frameworks
 * @property {string[]} weak
 * @property {string[]} transparent
 * @property {string[]} whole
 * @property {Record<string, string>} labels
 * @property {[code: string, kind: string, says: string, spent: string][]} doing what threads do that wait
 * @property {[code: string, label: string][]} doing_kinds
 */

const [OTHER, APPLICATION, KERNEL_OTHER] = ["other", "application", "kernel-other"];
/** Interpreted, compiled by C1, compiled, inlined. */
const JAVA_KINDS = new Set([1, 2, 3, 4]);
const NOT_KNOWN = 255;
const EVENTS_OF_WAITS = new Set(["threads", "wall", "offcpu", "lock"]);

/** The rules, which are read when they are first asked for, and the categories by number. */
const work = { read: () => "", own: /** @type {RuleTable} */ ([]), rules: /** @type {FrameRules | null} */ (null), codes: /** @type {string[]} */ ([]) };

/**
 * @param {() => string} read gives the rules as JSON
 * @param {[string, string[]][]} own those of the user, which come first
 */
export function setFrameRules(read, own) {
  work.read = read;
  work.own = splitPatterns(own.map(([code, patterns]) => [code, patterns.map((pattern) => pattern.replaceAll(".", "/"))]));
}

/** @param {[string, string[]][]} table @returns {RuleTable} */
function splitPatterns(table) {
  return table.map(([code, patterns]) => [code, patterns.map((pattern) => pattern.split("*"))]);
}

export function frameRules() {
  if (work.rules) return work.rules;
  const { categories, kernel, frameworks, ...rest } = JSON.parse(work.read());
  const tables = { categories: splitPatterns(categories), kernel: splitPatterns(kernel), frameworks: splitPatterns(frameworks) };
  return (work.rules = /** @type {FrameRules} */ ({ ...rest, ...tables }));
}

function categoryCodes() {
  if (work.codes.length) return work.codes;
  const { categories, kernel, transparent } = frameRules();
  const named = [...categories, ...kernel, ...work.own].map(([name]) => name).filter((name) => !transparent.includes(name));
  return (work.codes = [...new Set([OTHER, APPLICATION, KERNEL_OTHER, ...named])]);
}

/** @param {string} code */
export function categoryNumber(code) {
  return Math.max(0, categoryCodes().indexOf(code));
}

/** @param {string} code */
export function isCategory(code) {
  return categoryCodes().includes(code);
}

/** How many there are: their numbers are below. */
export function categoryCount() {
  return categoryCodes().length;
}

/**
 * Whether stacks of an event say who works; else they say who waits.
 * @param {string} event
 */
export function isWork(event) {
  return !EVENTS_OF_WAITS.has(event);
}

/**
 * What a group of threads does, whatever is on its stacks: the number of "other" for most.
 * @param {string} group
 */
export function categoryOfThreads(group) {
  return categoryNumber(ruleOf(`[${group}]`.replaceAll(".", "/"), false, false));
}

/** @param {number} category */
export function categoryCode(category) {
  return categoryCodes()[category];
}

/** @param {number} category */
export function categoryLabel(category) {
  const code = categoryCode(category);
  return frameRules().labels[code] ?? code;
}

/**
 * Whether a name is what a pattern means: its parts between stars, in order. There are many names and patterns.
 * @param {string} name
 * @param {string[]} parts
 */
function fitsPattern(name, parts) {
  const last = parts.length - 1;
  if (last === 0) return name === parts[0];
  if (!name.startsWith(parts[0])) return false;
  let at = parts[0].length;
  for (let part = 1; part < last; part++) {
    const found = name.indexOf(parts[part], at);
    if (found < 0) return false;
    at = found + parts[part].length;
  }
  return name.length - parts[last].length >= at && name.endsWith(parts[last]);
}

/**
 * @param {RuleTable} table
 * @param {string} name
 */
function firstRule(table, name) {
  return table.find(([, patterns]) => patterns.some((pattern) => fitsPattern(name, pattern)))?.[0];
}

/**
 * By name, and by name in the kernel: a category's number, or NOT_KNOWN for none; matched once.
 * @type {(names: string[]) => [Map<number, number>, Map<number, number>]}
 */
const matched = once(() => [new Map(), new Map()]);

/**
 * @param {string[]} names
 * @param {number} name not -1
 * @param {number} kind
 * @param {boolean} kernel
 */
function categoryOfName(names, name, kind, kernel) {
  const inKernel = kernel && kind === KERNEL;
  const java = JAVA_KINDS.has(kind);
  const table = matched(names)[inKernel ? 1 : 0];
  const key = name * 2 + (java ? 1 : 0);
  let category = table.get(key);
  if (category === undefined) {
    category = categoryCodes().indexOf(ruleOf(names[name].replaceAll(".", "/"), java, inKernel));
    table.set(key, category < 0 ? NOT_KNOWN : category);
  }
  return category < 0 ? NOT_KNOWN : category;
}

/**
 * @param {string} name
 * @param {boolean} java
 * @param {boolean} inKernel
 */
function ruleOf(name, java, inKernel) {
  const rules = frameRules();
  const own = firstRule(work.own, name);
  if (own !== undefined) return own;
  if (inKernel) return firstRule(rules.kernel, name) ?? "";
  const rule = firstRule(rules.categories, name);
  if (rule !== undefined) return rule;
  return java && name.includes("/") && firstRule(rules.frameworks, name) === undefined ? APPLICATION : "";
}

/** Without the number of a hidden class: the first letter that is a name's first and upper-case is the class's. */
const CLASS_NAME = /^(?:(?!\p{Lu})[^./]*\.)*(?:[\p{Lu}$][^./]*|[^./]*\[\])$/u;

const [WRITTEN_AS_CLASS, WRITTEN_AS_METHOD] = [1, 2];

/** By name: as what it is written; 0 if it may be a class or a method. @type {(names: string[]) => Uint8Array} */
const writtenOf = once((names) => new Uint8Array(names.length).fill(NOT_KNOWN));

/** @param {string} name */
function writtenAs(name) {
  const text = name.replace(/[./+][0-9].*$/s, "");
  return text.includes("/") ? WRITTEN_AS_METHOD : CLASS_NAME.test(text) ? WRITTEN_AS_CLASS : 0;
}

/**
 * Whether a node is the class that a stack of allocations ends in, as `ops/categories.rs` of the core has it.
 * @param {Shape} shape
 * @param {number} node
 * @param {boolean} leaf
 * @param {boolean} kernel
 */
function isAllocated({ names, name, kind }, node, leaf, kernel) {
  const [number, marked] = [name[node], kind[node] === INLINED || kind[node] === KERNEL || isClass(kind[node])];
  if (number < 0 || (!marked && (kind[node] !== 0 || kernel || !leaf))) return false;
  const known = writtenOf(names);
  if (known[number] === NOT_KNOWN) known[number] = writtenAs(names[number]);
  return known[number] === WRITTEN_AS_CLASS || (marked && leaf && !kernel && known[number] !== WRITTEN_AS_METHOD);
}

/** @type {(shape: Shape) => Map<string, Uint8Array>} */
const nodesOf = once(() => new Map());

/**
 * The category's number of each node of a tree whose roots are the roots of stacks.
 * @param {Shape} shape
 * @param {boolean} kernel whether frames of that kind are the kernel's
 * @param {number} [root] the category of the stacks' threads
 */
export function categoriesOf(shape, kernel, root = categoryNumber(OTHER)) {
  const key = `${kernel} ${root}`;
  const before = nodesOf(shape).get(key);
  if (before) return before;
  const { names, count, name, kind, parent } = shape;
  const codes = categoryCodes();
  const rules = frameRules();
  const numbers = (/** @type {string[]} */ members) => new Set(members.map((code) => codes.indexOf(code)));
  const [weak, whole] = [numbers(rules.weak), numbers(rules.whole)];
  const unclaimed = numbers([OTHER, APPLICATION]);
  const kernelOther = codes.indexOf(KERNEL_OTHER);
  const of = new Uint8Array(count).fill(root);
  const leaf = new Uint8Array(count).fill(1);
  for (let node = 1; node < count; node++) leaf[parent[node]] = 0;
  for (let node = 1; node < count; node++) {
    const above = of[parent[node]];
    if (isAllocated(shape, node, leaf[node] === 1, kernel)) {
      of[node] = above;
      continue;
    }
    const own = name[node] < 0 ? NOT_KNOWN : categoryOfName(names, name[node], kind[node], kernel);
    if (whole.has(above)) of[node] = above;
    else if (own === NOT_KNOWN) of[node] = kernel && kind[node] === KERNEL && kind[parent[node]] !== KERNEL ? kernelOther : above;
    else of[node] = weak.has(own) && !unclaimed.has(above) ? above : own;
  }
  nodesOf(shape).set(key, of);
  return of;
}
