/**
 * What the viewer's own code makes of the test vectors: `node vectors.mjs VIEWER VECTORS < RULES` prints it as JSON.
 * RULES are those that a page has for frames. test_vectors.py compares it with what the vectors expect of Python, too.
 */

import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [viewer, vectors] = process.argv.slice(2);
const module = (name) => import(pathToFileURL(join(resolve(viewer), name)).href);
const { Noise, SideSpread } = await module("data/noise.js");
const { packageLength, percent } = await module("data/format.js");
const { categoriesOf, categoryCode, categoryOfThreads, setFrameRules } = await module("data/work.js");

/** What each method costs in folded stacks, as SideSpread takes it. */
function costsOf(stacks, numbers) {
  const [own, all] = [[], []];
  let whole = 0;
  for (const line of stacks.trim().split("\n")) {
    const [, frames, text] = /^(.*) (\d+)$/.exec(line);
    const names = frames.split(";").map((name) => {
      if (!numbers.has(name)) numbers.set(name, numbers.size);
      return numbers.get(name);
    });
    const count = Number(text);
    whole += count;
    own[names.at(-1)] = (own[names.at(-1)] ?? 0) + count;
    for (const name of new Set(names)) all[name] = (all[name] ?? 0) + count;
  }
  return { rows: Object.keys(all).map(Number), own, all, whole };
}

function noiseOf({ sides, absolute, methods, paths }) {
  const numbers = new Map();
  const spreads = sides.map((processes) => {
    const side = new SideSpread();
    for (const { kind, samples, stacks } of processes) {
      const costs = costsOf(stacks, numbers);
      side.add(costs, samples ? costs.whole / samples : 0, kind);
    }
    return side;
  });
  const noise = new Noise(spreads[0], spreads[1], absolute);
  const of = (which) => (name) => noise.of(which, numbers.get(name));
  return {
    known: noise.known,
    counted_alone: noise.countedAlone,
    methods: Object.fromEntries(Object.keys(methods).map((name) => [name, ["own", "all"].map((which) => of(which)(name))])),
    paths: paths.map(({ name, parts }) => noise.ofPath(numbers.get(name), ...parts)),
  };
}

/** How folded stacks mark the kinds of frames, by number. */
const MARKS = ["", "_[0]", "_[1]", "_[j]", "_[i]", "_[k]"];

/** The category of a folded stack, whose thread is no frame of the page's tree. */
function categoryOf(stack, kernel) {
  const frames = stack.split(";");
  const thread = frames[0].startsWith("[") ? frames.shift() : "";
  const kinds = frames.map((frame) => Math.max(0, MARKS.findIndex((mark) => mark && frame.endsWith(mark))));
  const shape = {
    names: frames.map((frame, at) => frame.slice(0, frame.length - MARKS[kinds[at]].length)),
    count: frames.length + 1,
    name: [-1, ...frames.keys()],
    kind: [0, ...kinds],
    parent: [0, ...frames.keys()],
  };
  const root = thread ? categoryOfThreads(thread.slice(1, -1)) : undefined;
  return categoryCode(categoriesOf(shape, kernel, root)[frames.length]);
}

const given = JSON.parse(readFileSync(vectors, "utf8"));
setFrameRules(() => readFileSync(0, "utf8"), given.work.rules);
console.log(
  JSON.stringify({
    noise: given.noise.map(noiseOf),
    percent: given.percent.map(([part, whole]) => percent(part, whole)),
    packages: given.packages.map(([name]) => name.slice(0, packageLength(name))),
    stacks: given.work.stacks.map(([stack]) => categoryOf(stack, true)),
    classes: given.work.classes.map(([stack]) => categoryOf(stack, false)),
  }),
);
