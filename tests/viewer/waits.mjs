/**
 * What the viewer's own code says of threads that wait: `node waits.mjs VIEWER < GIVEN` prints it as JSON. GIVEN has the
 * rules of a page, and by event a page's block of data and the type of its value.
 */

import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { inflateSync } from "node:zlib";

const module = (name) => import(pathToFileURL(join(resolve(process.argv[2]), name)).href);
const { readTree } = await module("data/tree.js");
const { Profile } = await module("data/profile.js");
const { collectMethods } = await module("data/methods.js");
const { saysOf, sumsOfKinds, waitKinds } = await module("data/waits.js");
const { setFrameRules } = await module("data/work.js");

const { rules, blocks } = JSON.parse(readFileSync(0, "utf8"));
setFrameRules(() => JSON.stringify(rules), []);
const found = Object.entries(blocks).map(([event, [block, type]]) => {
  const tree = readTree(inflateSync(Buffer.from(block, "base64")));
  const self = new Float64Array(tree.count);
  tree.columns.forEach((_, column) => tree.eachEntry(column, (node, value) => (self[node] += value)));
  const profile = new Profile(tree, { type, unit: "nanoseconds" }, self);
  const methods = collectMethods(profile).map(({ name, does, self, total }) => [does ? `${saysOf(does)} ${tree.names[name]}` : tree.names[name], self, total]);
  const sums = sumsOfKinds(profile);
  return [event, { methods, kinds: Object.fromEntries(waitKinds().map((kind, at) => [kind, sums[at]]).filter(([, sum]) => sum > 0)) }];
});
console.log(JSON.stringify(Object.fromEntries(found)));
