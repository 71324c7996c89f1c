// @ts-check
/** Saves what is chosen as a file: nothing leaves the browser, the file comes out of the page itself. */

import { part } from "../controls/dom.js";
import { makeMenu } from "../controls/menu.js";
import { coverageOf } from "../data/scopes.js";
import { toPprof } from "./export_pprof.js";
import { toSvg } from "./export_svg.js";
import { toFolded, toSpeedscope } from "./export_text.js";

/** @import { Context } from "../controls/context.js" */

/** Of a file's name: all together are far from what file systems take. */
const LONGEST_WORD = 40;

/**
 * @param {Context} context
 * @param {(error: unknown) => void} failed
 */
export function startExport(context, failed) {
  const save = (/** @type {string} */ ending, /** @type {() => Blob | Promise<Blob>} */ made, seen = false) => async () => {
    try {
      download(await made(), fileName(context, seen) + ending);
    } catch (error) {
      failed(error);
    }
  };
  const offered = () => context.active?.seen ?? false;
  makeMenu(part("save", HTMLDivElement), "Save", "Save what is shown as a file", [
    { id: "save-svg", label: "Picture (SVG)", note: "the graph as it is seen", offered, act: save(".svg", () => picture(context), true) },
    { id: "save-folded", label: "Folded text", note: "all stacks of what is chosen", act: save(".folded", () => toFolded(context.profile)) },
    { id: "save-pprof", label: "pprof", note: "for go tool pprof", act: save(".pb.gz", () => toPprof(context.profile)) },
    { id: "save-speedscope", label: "speedscope", note: "for speedscope.app", act: save(".speedscope.json", () => toSpeedscope(context.profile)) },
  ]);
}

/** @param {Context} context */
function picture(context) {
  const { active, scope, page, event } = context;
  if (!active) throw new Error("there is no graph to save");
  const title = [page.title, active.look.title ?? scope.label, page.events[event].title].filter(Boolean).join(" · ");
  return toSvg(active, title, active.look.coverage ?? coverageOf(context.scopes, scope, event));
}

/**
 * What is in the file: the page's title, the event, the scope and threads, and of a picture the view.
 * @param {Context} context
 * @param {boolean} seen whether it is a picture
 */
function fileName({ page, scope, event, thread, active, state }, seen) {
  const of = (seen && active?.look.title) || scope.label;
  const words = [page.title, page.events[event].name, of, page.threads[thread] ?? "", seen ? state.view : ""];
  const plain = words.map((word) => word.replace(/[^\w.]+/g, "-").slice(0, LONGEST_WORD).replace(/^[-.]+|-+$/g, ""));
  return plain.filter(Boolean).join("-") || "profile";
}

/**
 * @param {Blob} file
 * @param {string} name
 */
function download(file, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(file);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
