// @ts-check
/** Saves what is chosen as a file: nothing leaves the browser, the file comes out of the page itself. */

import { part } from "./dom.js";
import { toPprof } from "./export_pprof.js";
import { toSvg } from "./export_svg.js";
import { toFolded, toSpeedscope } from "./export_text.js";
import { makeMenu } from "./menu.js";

/** @typedef {import("./context.js").Context} Context */

/**
 * @param {Context} context
 * @param {(error: unknown) => void} failed
 */
export function startExport(context, failed) {
  const save = (/** @type {string} */ ending, /** @type {() => Blob | Promise<Blob>} */ made) => async () => {
    try {
      download(await made(), fileName(context) + ending);
    } catch (error) {
      failed(error);
    }
  };
  makeMenu(part("save", HTMLDivElement), "Save", "Save what is shown as a file", [
    { id: "save-svg", label: "Picture (SVG)", note: "the graph as it is seen", act: save(".svg", () => picture(context)) },
    { id: "save-folded", label: "Folded text", note: "all stacks of what is chosen", act: save(".folded", () => toFolded(context.profile)) },
    { id: "save-pprof", label: "pprof", note: "for go tool pprof", act: save(".pb.gz", () => toPprof(context.profile)) },
    { id: "save-speedscope", label: "speedscope", note: "for speedscope.app", act: save(".speedscope.json", () => toSpeedscope(context.profile)) },
  ]);
}

/** @param {Context} context */
function picture(context) {
  const { active, scope, page, event } = context;
  if (!active) throw new Error("there is no graph to save");
  return toSvg(active, [page.title, scope.label, page.events[event].title].filter(Boolean).join(" · "));
}

/** @param {Context} context */
function fileName({ page, scope, event, thread }) {
  const words = [page.title, page.events[event].name, scope.key === "sum" ? "" : scope.label];
  if (thread >= 0) words.push(page.threads[thread]);
  const name = words.filter(Boolean).join("-").replace(/[^\w.]+/g, "-").replace(/^[-.]+|-+$/g, "");
  return name.slice(0, 120) || "profile";
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
