// @ts-check
/** The menu of a frame: what it is part of can be skipped, dropped, collapsed, or shown alone. */

import { shortName } from "../data/format.js";
import { canKeep, formatTransforms, placesOf } from "../data/transforms.js";
import { filled, make, part } from "./dom.js";

/** @import { What } from "../data/transforms.js" */
/** @import { Graph } from "../graph/graph.js" */
/** @import { Context } from "./context.js" */

/** A change and what it says. @typedef {[what: What, of: string, text: string, note: string]} Offer */

export class FrameMenu {
  /**
   * @param {Context} context
   * @param {(node: number) => void} note asks for a note on a frame
   */
  constructor(context, note) {
    this.context = context;
    this.note = note;
    this.element = part("frame-menu", HTMLDivElement);
    this.element.addEventListener("keydown", (event) => {
      const buttons = [...this.element.querySelectorAll("button")];
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      const at = buttons.findIndex((button) => button === document.activeElement);
      if (event.key !== "Escape") event.stopPropagation();
      if (step === undefined) return;
      event.preventDefault();
      buttons[(at + step + buttons.length) % buttons.length]?.focus();
    });
  }

  /**
   * Opens at a place in the window.
   * @param {Graph | null} graph
   * @param {number} node
   * @param {number} x client pixels
   * @param {number} y client pixels
   */
  open(graph, node, x, y) {
    if (!graph?.profile) return;
    const sections = this.offersOf(graph, node).map(([head, offers]) => {
      const buttons = offers.map(([what, of, text, note]) => {
        const button = filled("button", "", make("bdi", "", text), make("span", "", note));
        button.addEventListener("click", () => this.change(what, of));
        return button;
      });
      return filled("section", "", make("h3", "", head), ...buttons);
    });
    const { element } = this;
    const note = make("button", "", "Pin a note …");
    note.addEventListener("click", () => {
      element.hidePopover();
      this.note(node);
    });
    element.replaceChildren(...sections, filled("section", "", make("h3", "", "Note"), note));
    element.showPopover();
    const { width, height } = element.getBoundingClientRect();
    element.style.left = `${Math.max(8, Math.min(x, window.innerWidth - width - 8))}px`;
    element.style.top = `${Math.max(8, Math.min(y, window.innerHeight - height - 8))}px`;
    element.querySelector("button")?.focus();
  }

  /**
   * @param {Graph} graph
   * @param {number} node
   * @returns {[head: string, Offer[]][]}
   */
  offersOf(graph, node) {
    const { context } = this;
    const method = graph.methodOf(node);
    /** @type {[string, Offer[]][]} */
    const sections = [];
    if (method && canKeep(method)) {
      sections.push([shortName(method), [
        ["skip", method, "Skip the method", "what it costs is its callers'"],
        ["drop", method, "Drop its stacks", "all that have the method"],
        ["focus", method, "Only its stacks", "from its first frame on"],
      ]]);
      if (graph.profile?.shape === context.tree) {
        const frame = `#${context.originOf(node)}`;
        sections.push(["This frame alone", [
          ["skip", frame, "Skip the frame", "what it costs is its caller's"],
          ["drop", frame, "Drop its stacks", "all that go through here"],
        ]]);
      }
      const { ofClass, inPackage } = placesOf(method);
      if (ofClass) {
        sections.push([shortName(`${ofClass}.`).slice(0, -1), [
          ["focus", ofClass, "Only stacks of the class", "from its first frame on"],
          ["collapse", ofClass, "Collapse the class", "its calls of itself are one frame"],
        ]]);
      }
      if (inPackage) {
        sections.push([inPackage, [
          ["focus", inPackage, "Only stacks of the package", "from its first frame on"],
          ["collapse", inPackage, "Collapse the package", "its calls of itself are one frame"],
          ["skip", inPackage, "Skip the package", "what it costs is its callers'"],
        ]]);
      }
    }
    sections.push(["All stacks", [
      ["recursion", "", "Collapse recursion", "what a method calls through itself"],
      ["collapse", "", "Collapse packages", "calls within a package are one frame"],
    ]]);
    return sections;
  }

  /**
   * @param {What} what
   * @param {string} of
   */
  change(what, of) {
    this.element.hidePopover();
    const { context } = this;
    const others = context.transforms.filter((one) => one.what !== what || one.of !== of);
    context.go({ changes: formatTransforms([...others, { what, of }]) });
  }
}
