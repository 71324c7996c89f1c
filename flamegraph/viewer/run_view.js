// @ts-check
/** How the run was made and what happened to each process: written with the page, and shown as it is. */

/** @typedef {import("./context.js").View} View */

/** @implements {View} */
export class RunView {
  update() {}
}
