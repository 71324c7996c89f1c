// @ts-check
/** Folded text, and speedscope's JSON. */

import { annotated, eachStack, numberFrames, TextFile } from "./export.js";

/** @typedef {import("./profile.js").Profile} Profile */

const KNOWN_UNITS = ["bytes", "nanoseconds"];

/**
 * A line for each stack: frames from the root on, an amount.
 * @param {Profile} profile
 */
export function toFolded(profile) {
  const file = new TextFile();
  const { numbers, first } = numberFrames(profile);
  const texts = first.map((node) => annotated(profile, node).replaceAll(";", ":").replace(/[\r\n]/g, " "));
  eachStack(profile, (node, amount) => {
    const frames = profile.pathOf(node).map((at) => texts[numbers[at]]);
    file.put(`${frames.join(";")} ${amount}\n`);
  });
  return file.finish("text/plain");
}

/** @param {Profile} profile */
export function toSpeedscope(profile) {
  const file = new TextFile();
  const { numbers, first } = numberFrames(profile);
  const { title, type, unit } = profile.event;
  const frames = first.map((node) => ({ name: annotated(profile, node) }));
  let total = 0;
  eachStack(profile, (_, amount) => (total += amount));
  const head = { type: "sampled", name: title, unit: KNOWN_UNITS.includes(unit) ? unit : "none", startValue: 0, endValue: total };
  file.put('{"$schema":"https://www.speedscope.app/file-format-schema.json","exporter":"hprofiler","shared":');
  file.put(`${JSON.stringify({ frames })},"profiles":[`);
  file.put(JSON.stringify({ ...head, value: { name: type, unit } }).slice(0, -1));
  file.put(',"samples":[');
  let comma = "";
  eachStack(profile, (node) => {
    file.put(`${comma}[${profile.pathOf(node).map((at) => numbers[at])}]`);
    comma = ",";
  });
  file.put('],"weights":[');
  comma = "";
  eachStack(profile, (_, amount) => {
    file.put(comma + amount);
    comma = ",";
  });
  file.put("]}]}\n");
  return file.finish("application/json");
}
