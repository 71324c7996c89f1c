// @ts-check
/** Saves the selection as a file. Nothing leaves the browser. */

import { part } from "../controls/dom.js";
import { coverageOf } from "../data/scopes.js";
import { toPprof } from "./export_pprof.js";
import { toSvg } from "./export_svg.js";
import { toFolded, toSpeedscope } from "./export_text.js";

/** @import { Context } from "../controls/context.js" */

/** Of each part of a file's name. */
const LONGEST_WORD = 40;

/** By the ending of its name. @type {Record<string, (context: Context) => Blob | Promise<Blob>>} */
const FILES = {
  svg: picture,
  folded: ({ profile }) => toFolded(profile),
  "pb.gz": ({ profile }) => toPprof(profile),
  "speedscope.json": ({ profile }) => toSpeedscope(profile),
};

/**
 * @param {Context} context
 * @param {(error: unknown) => void} failed
 */
export function startExport(context, failed) {
  const menu = part("save", HTMLDetailsElement);
  const [button, ...items] = /** @type {NodeListOf<HTMLElement>} */ (menu.querySelectorAll("summary, button"));
  menu.addEventListener("toggle", () => {
    if (!menu.open) return;
    part("save-svg", HTMLButtonElement).hidden = !context.active?.seen;
    items.find((item) => !item.hidden)?.focus();
  });
  menu.addEventListener("focusout", ({ relatedTarget }) => {
    if (!(relatedTarget instanceof Node && menu.contains(relatedTarget))) menu.open = false;
  });
  menu.addEventListener("keydown", (event) => {
    if (!menu.open || event.key !== "Escape") return;
    event.stopPropagation();
    button.focus();
    menu.open = false;
  });
  for (const item of items) {
    // On a Mac a click gives a button no focus. If the menu lost it, it would close before the click.
    item.addEventListener("mousedown", (event) => event.preventDefault());
    item.addEventListener("click", async () => {
      button.focus();
      menu.open = false;
      const ending = item.dataset.ending ?? "";
      try {
        const link = document.createElement("a");
        link.href = URL.createObjectURL(await FILES[ending](context));
        link.download = `${fileName(context, ending === "svg")}.${ending}`;
        link.click();
        setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
      } catch (error) {
        failed(error);
      }
    });
  }
}

/** @param {Context} context */
function picture(context) {
  const { active, scope, page, event } = context;
  if (!active) throw new Error("there is no graph to save");
  const title = [page.title, ...shownIn(context, true), page.events[event].title].filter(Boolean).join(" · ");
  return toSvg(active, title, active.look.coverage ?? coverageOf(context.recorded, scope, event));
}

/**
 * The scope, or what a picture shows instead, the part of the recording, and whether idle threads are missing. A
 * comparison of two ranges names them.
 * @param {Context} context
 * @param {boolean} seen whether it is a picture
 */
function shownIn({ scope, active, part, otherRange, idleHidden }, seen) {
  const title = seen ? active?.look.title : undefined;
  return [title ?? scope.label, title && otherRange ? "" : part, idleHidden];
}

/**
 * The page's title, the event, the scope and threads, the part of the recording, what is hidden, and the view of a picture.
 * @param {Context} context
 * @param {boolean} seen whether it is a picture
 */
function fileName(context, seen) {
  const { page, event, thread, state } = context;
  const [of, part, hidden] = shownIn(context, seen);
  const words = [page.title, page.events[event].name, of, page.threads[thread] ?? "", part, hidden, seen ? state.view : ""];
  const plain = words.map((word) => word.replace(/[^\w.]+/g, "-").slice(0, LONGEST_WORD).replace(/^[-.]+|-+$/g, ""));
  return plain.filter(Boolean).join("-") || "profile";
}
