// @ts-check
/** How the run was made and what happened to each process: written with the page, shown as it is. */

/** @implements {View} */
export class RunView {
  update() {}
}

/** @typedef {import("./context.js").View} View */
