// @ts-check
/**
 * Changes of all stacks that can be undone: idle threads left out, stacks dropped, methods skipped, a focus, recursion
 * and packages collapsed. They are applied one after the other, each to the tree that the one before left.
 */

import { endsOf } from "./comparison.js";
import { packageLength, shortName } from "./format.js";
import { packageNumber } from "./frame_kinds.js";
import { idleNodes, movedWaits } from "./waits.js";

/** @import { Shape } from "./profile.js" */
/** @import { Tree } from "./tree.js" */

/**
 * - `drop`: stacks with it are left out.
 * - `skip`: its frames are left out; what they cost is their callers'.
 * - `focus`: only stacks with it, from its first frame on.
 * - `collapse`: frames of it that call each other are one, the first. Without a name: frames of the same package.
 * - `recursion`: what a method calls through itself stands on its first frame.
 * @typedef {"drop" | "skip" | "focus" | "collapse" | "recursion"} What
 */
/** `of` is a method, a class or a package, or `#` and a node of the page's tree; "" for none. @typedef {{what: What, of: string}} Transform */

/** A link may ask for more than a browser can bear. */
const MOST_TRANSFORMS = 20;
const LONGEST_KEPT = 600;
const OF_SOMETHING = ["drop", "skip", "focus", "collapse"];
const ONE_FRAME = /^#(\d{1,7})$/;

/**
 * @param {string} text as in the address: `what:of`, one a line
 * @returns {Transform[]}
 */
export function parseTransforms(text) {
  const parts = text.split("\n", MOST_TRANSFORMS).map((line) => /^([a-z]+)(?::(.+))?$/.exec(line));
  return parts.flatMap((found) => {
    const [what, of] = [found?.[1] ?? "", found?.[2] ?? ""];
    const known = of ? OF_SOMETHING.includes(what) && of.length <= LONGEST_KEPT : what === "collapse" || what === "recursion";
    return known ? [{ what: /** @type {What} */ (what), of }] : [];
  });
}

/** @param {Transform[]} transforms */
export function formatTransforms(transforms) {
  return transforms.map(({ what, of }) => (of ? `${what}:${of}` : what)).join("\n");
}

/**
 * Whether the address can keep a change of it.
 * @param {string} of
 */
export function canKeep(of) {
  return of.length <= LONGEST_KEPT && !of.includes("\n");
}

/**
 * For people: "without stacks of Pattern.compile".
 * @param {Transform} transform
 * @param {Tree} tree
 */
export function transformText({ what, of }, tree) {
  const frame = ONE_FRAME.exec(of);
  const node = frame && Number(frame[1]) < tree.count ? Number(frame[1]) : 0;
  const name = frame ? `one ${shortName(tree.names[tree.name[node]] ?? "frame")}` : shortName(of);
  switch (what) {
    case "drop": return `without stacks of ${name}`;
    case "skip": return `${name} skipped`;
    case "focus": return `only ${name}`;
    case "collapse": return of ? `${name} collapsed` : "packages collapsed";
    case "recursion": return "recursion collapsed";
  }
}

/**
 * The class and the package of a method: "a.b.C" and "a.b" of a/b/C.m; "" where it has none.
 * @param {string} method
 */
export function placesOf(method) {
  const cut = packageLength(method);
  const name = method.slice(cut);
  const dot = name.indexOf(".");
  const inPackage = method.slice(0, Math.max(0, cut - 1)).replaceAll("/", ".");
  const ofClass = dot > 0 && /^[\p{Lu}$]/u.test(name) ? (inPackage && `${inPackage}.`) + name.slice(0, dot) : "";
  return { ofClass, inPackage };
}

/** What stands behind a class or a package in names of what is in it. */
const BOUNDARY = new Set([".", "$", ":"]);

/**
 * Which names are meant: 1 for the method, and for methods of the class or the package.
 * @param {string[]} names
 * @param {string} of
 */
function namesOf(names, of) {
  const wanted = of.replaceAll("/", ".");
  return Uint8Array.from(names, (name) => {
    if (name.length < wanted.length) return 0;
    const text = name.replaceAll("/", ".");
    return text.startsWith(wanted) && (text.length === wanted.length || BOUNDARY.has(text[wanted.length])) ? 1 : 0;
  });
}

/** Says whether a node of a tree is meant. @typedef {(node: number) => boolean} Meant */

/** The page's tree as it is shown. */
export class ChangedTree {
  /**
   * @param {Tree} source the page's
   * @param {Transform[]} transforms
   * @param {boolean} withoutIdle
   */
  constructor(source, transforms, withoutIdle) {
    this.source = source;
    /** @type {Shape} */
    this.tree = source;
    /** Where each of the page's nodes is in the tree; null if that is the page's. @type {Int32Array | null} */
    this.place = null;
    /** 1 for each of the page's nodes whose stacks are shown; null for all. @type {Uint8Array | null} */
    this.kept = null;
    for (const transform of transforms) this.apply(transform);
    const { waits, count } = source;
    if (!withoutIdle || !waits) return;
    const kept = (this.kept ??= new Uint8Array(count).fill(1));
    const idle = idleNodes(source);
    for (let node = 0; node < count; node++) if (idle[node] === 1) kept[node] = 0;
  }

  /** @param {Transform} transform */
  apply({ what, of }) {
    const meant = this.meaning(of);
    const { tree } = this;
    const { name, parent } = tree;
    if (what === "drop" || what === "focus") {
      const within = new Uint8Array(tree.count);
      for (let node = 1; node < tree.count; node++) within[node] = within[parent[node]] || meant(node) ? 1 : 0;
      this.keep(within, what === "focus" ? 1 : 0);
      if (what === "focus") this.regrow((node) => (within[node] ? ITS_OWN : 0));
    } else if (what === "skip") {
      this.regrow((node, above) => (meant(node) ? above : ITS_OWN));
    } else if (what === "recursion") {
      this.regrow((node, above, made) => {
        let at = above;
        while (at > 0 && made.name[at] !== name[node]) at = made.parent[at];
        return at > 0 ? at : ITS_OWN;
      });
    } else if (of) {
      // The frame that it stands on is meant if its own is: a made frame has the first one's name.
      const named = namesOf(tree.names, of);
      this.regrow((node, above, made) => (named[name[node]] && above > 0 && named[made.name[above]] ? above : ITS_OWN));
    } else {
      const packageOf = (/** @type {number} */ named, /** @type {number} */ kind) => packageNumber(tree.names, named, kind);
      this.regrow((node, above, made) => {
        const same = above > 0 && packageOf(name[node], tree.kind[node]) === packageOf(made.name[above], made.kind[above]);
        return same ? above : ITS_OWN;
      });
    }
  }

  /**
   * @param {string} of
   * @returns {Meant} of the tree's nodes as it is now
   */
  meaning(of) {
    const { tree, place } = this;
    const frame = ONE_FRAME.exec(of);
    if (frame) {
      const node = place ? place[Number(frame[1])] : Number(frame[1]);
      return (at) => at === node;
    }
    const named = namesOf(tree.names, of);
    return (node) => named[tree.name[node]] === 1;
  }

  /**
   * Keeps only stacks that end in such nodes of the tree.
   * @param {Uint8Array} within by node of the tree
   * @param {number} wanted
   */
  keep(within, wanted) {
    const kept = (this.kept ??= new Uint8Array(this.source.count).fill(1));
    for (let node = 0; node < kept.length; node++) {
      if (within[this.place ? this.place[node] : node] !== wanted) kept[node] = 0;
    }
  }

  /** @param {Decide} decide */
  regrow(decide) {
    const { tree, place } = regrown(this.tree, decide);
    tree.doing = movedWaits(this.tree, tree, place);
    this.tree = tree;
    this.place = this.place ? this.place.map((node) => place[node]) : place;
  }

  /**
   * Where a node of the page's tree is shown.
   * @param {number} node
   */
  shownAt(node) {
    const known = node < this.source.count ? node : 0;
    return this.place ? this.place[known] : known;
  }

  /**
   * A node of the page's tree that is shown there.
   * @param {number} node
   */
  originOf(node) {
    return this.place ? Math.max(0, this.place.indexOf(node)) : node;
  }
}

/** The frame gets a node of its own, on the one that it stands on. */
const ITS_OWN = -1;

/** Nodes in the order in which they were made; 0 is the root. @typedef {{parent: Int32Array, name: Int32Array, kind: Uint8Array}} Made */
/**
 * Where a node goes: to a made one, such as `above`, on which it stands; or ITS_OWN.
 * @typedef {(node: number, above: number, made: Made) => number} Decide
 */

/**
 * A tree made anew, in preorder with children in name order, and where each node went.
 * @param {Shape} old
 * @param {Decide} decide
 * @returns {{tree: Shape, place: Int32Array}}
 */
function regrown({ names, count, name, kind, parent }, decide) {
  const made = { parent: new Int32Array(count), name: new Int32Array(count), kind: new Uint8Array(count) };
  made.name[0] = name[0];
  const place = new Int32Array(count);
  // Made nodes by parent and frame: a table of twice as many places, 0 where there is none.
  const mask = 2 ** Math.ceil(Math.log2(count * 2 + 1)) - 1;
  const table = new Int32Array(mask + 1);
  let size = 1;
  for (let node = 1; node < count; node++) {
    const above = place[parent[node]];
    const to = decide(node, above, made);
    if (to >= 0) {
      place[node] = to;
      continue;
    }
    let at = (Math.imul(above, 0x9e3779b1) ^ Math.imul(name[node] * 16 + kind[node], 0x85ebca6b)) & mask;
    for (; table[at]; at = (at + 1) & mask) {
      const known = table[at];
      if (made.parent[known] === above && made.name[known] === name[node] && made.kind[known] === kind[node]) break;
    }
    if (!table[at]) {
      table[at] = size;
      made.parent[size] = above;
      made.name[size] = name[node];
      made.kind[size] = kind[node];
      size++;
    }
    place[node] = table[at];
  }
  const rank = inPreorder(made, size, names.length);
  /** @type {Shape} */
  const tree = {
    names, count: size, parent: new Int32Array(size), depth: new Int32Array(size), end: new Int32Array(0),
    name: new Int32Array(size), kind: new Uint8Array(size),
  };
  for (let node = 0; node < size; node++) {
    tree.name[rank[node]] = made.name[node];
    tree.kind[rank[node]] = made.kind[node];
    tree.parent[rank[node]] = node === 0 ? -1 : rank[made.parent[node]];
  }
  for (let node = 1; node < size; node++) tree.depth[node] = tree.depth[tree.parent[node]] + 1;
  tree.end = endsOf(tree.parent, size);
  for (let node = 0; node < count; node++) place[node] = rank[place[node]];
  return { tree, place };
}

/**
 * The number of each made node in preorder, with children in the order of names, then kinds.
 * @param {Made} made
 * @param {number} size
 * @param {number} names
 */
function inPreorder({ parent, name, kind }, size, names) {
  // Lists of children: nodes are put before those that were put there, from the last frame to the first.
  const [first, next, rank] = [new Int32Array(size), new Int32Array(size), new Int32Array(size)];
  for (const node of byFrame(name, kind, size, names)) {
    next[node] = first[parent[node]];
    first[parent[node]] = node;
  }
  let number = 0;
  for (let at = 0; ; ) {
    rank[at] = number++;
    if (first[at]) {
      at = first[at];
      continue;
    }
    while (at > 0 && !next[at]) at = parent[at];
    if (at === 0) return rank;
    at = next[at];
  }
}

/** At least the number of kinds. */
const FRAMES_PER_NAME = 16;

/**
 * All nodes but the root, from the last frame to the first.
 * @param {Int32Array} name
 * @param {Uint8Array} kind
 * @param {number} size
 * @param {number} names
 */
function byFrame(name, kind, size, names) {
  const ends = new Int32Array(names * FRAMES_PER_NAME + 1);
  for (let node = 1; node < size; node++) ends[name[node] * FRAMES_PER_NAME + kind[node]]++;
  for (let frame = ends.length - 2; frame >= 0; frame--) ends[frame] += ends[frame + 1];
  const order = new Int32Array(size - 1);
  for (let node = 1; node < size; node++) order[--ends[name[node] * FRAMES_PER_NAME + kind[node]]] = node;
  return order;
}
