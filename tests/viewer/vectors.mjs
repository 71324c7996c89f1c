/**
 * What the viewer's own code makes of the test vectors: `node vectors.mjs VIEWER VECTORS` prints it as JSON.
 * test_vectors.py compares it with what the vectors expect of Python, too.
 */

import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [viewer, vectors] = process.argv.slice(2);
const module = (name) => import(pathToFileURL(join(resolve(viewer), name)).href);
const { Noise, SideSpread } = await module("data/noise.js");
const { packageLength, percent } = await module("data/format.js");

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
  return { names: Object.keys(all).map(Number), own, all, whole };
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

const given = JSON.parse(readFileSync(vectors, "utf8"));
console.log(
  JSON.stringify({
    noise: given.noise.map(noiseOf),
    percent: given.percent.map(([part, whole]) => percent(part, whole)),
    packages: given.packages.map(([name]) => name.slice(0, packageLength(name))),
  }),
);
