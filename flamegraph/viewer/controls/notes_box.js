// @ts-check
/** The notes of the reader: written in a dialog, listed above the views; a note leads to its frame or range. */

import { percent, shortName } from "../data/format.js";
import { formatNotes, LONGEST_NOTE, MOST_NOTES, noteNode, parseNotes } from "../data/notes.js";
import { parseRange, rangeText } from "../data/range.js";
import { filled, linkButton, make, part } from "./dom.js";

/** @import { Note } from "../data/notes.js" */
/** @import { Context } from "./context.js" */

export class NotesBox {
  /** @param {Context} context */
  constructor(context) {
    this.context = context;
    this.list = part("notes", HTMLUListElement);
    this.dialog = part("note", HTMLDialogElement);
    this.text = part("note-text", HTMLInputElement);
    this.text.maxLength = LONGEST_NOTE;
    /** What the note in the making is pinned to. */
    this.at = "";
    this.shown = "";
    this.dialog.addEventListener("close", () => {
      const text = this.text.value.trim();
      if (this.dialog.returnValue !== "keep" || !text) return;
      const others = this.notes.filter(({ at }) => at !== this.at);
      context.go({ notes: formatNotes([...others, { at: this.at, text }].slice(-MOST_NOTES)) });
    });
  }

  /** @returns {Note[]} */
  get notes() {
    const { state, source, page } = this.context;
    return parseNotes(state.notes).filter((note) => (noteNode(note) < 0 ? page.time !== null : noteNode(note) < source.count));
  }

  /**
   * Asks for a note: of a frame, or of the range that is shown if no frame is meant.
   * @param {number} node of the tree that is shown
   */
  ask(node) {
    const { context } = this;
    this.at = node > 0 || !context.range ? `#${context.originOf(Math.max(0, node))}` : context.state.time;
    part("note-title", HTMLHeadingElement).textContent = `Note on ${this.placeOf(this.at)}`;
    this.text.value = this.notes.find(({ at }) => at === this.at)?.text ?? "";
    this.dialog.returnValue = "";
    this.dialog.showModal();
    this.text.select();
  }

  /** @param {string} at */
  placeOf(at) {
    const { source } = this.context;
    const range = parseRange(at);
    if (range) return rangeText(range);
    const name = source.names[source.name[Number(at.slice(1))]];
    return name === undefined ? "all" : shortName(name);
  }

  /**
   * The frame that shows a note's frame; -1 if the changes of stacks leave none.
   * @param {number} node of the page's tree
   */
  shownAt(node) {
    const { source, tree } = this.context;
    const at = this.context.shownAt(node);
    return tree.name[at] === source.name[node] && (at > 0) === (node > 0) ? at : -1;
  }

  update() {
    const { context } = this;
    const { profile } = context;
    const { notes } = this;
    const items = notes.map((note) => {
      const node = noteNode(note);
      const at = this.shownAt(Math.max(0, node));
      const share = at < 0 ? "not shown" : node > 0 ? percent(profile.total[at], profile.sum()) : "";
      return { note, node, hidden: at < 0, place: `${this.placeOf(note.at)} ${share}`.trim() };
    });
    for (const graph of context.graphs) {
      const here = graph.profile?.shape === context.tree ? notes.filter((note) => noteNode(note) >= 0 && this.shownAt(noteNode(note)) >= 0) : [];
      graph.pin(new Map(here.map((note) => [this.shownAt(noteNode(note)), note.text])));
    }
    const shown = items.map(({ note, place }) => `${place} ${note.text}`).join("\n");
    if (shown === this.shown) return; // the focus stays
    this.shown = shown;
    this.list.hidden = items.length === 0;
    this.list.replaceChildren(...items.map(({ note, node, hidden, place }) => {
      const go = () => context.go(node < 0 ? { time: note.at, time2: "" } : { view: "graph", zoom: node, ...(hidden ? { changes: "" } : {}) });
      const remove = make("button", "remove", "×");
      remove.setAttribute("aria-label", `Remove the note on ${place}`);
      remove.addEventListener("click", () => {
        context.go({ notes: formatNotes(this.notes.filter(({ at }) => at !== note.at)) });
      });
      const link = linkButton("Show it", go, make("bdi", "", place));
      return filled("li", "", link, make("bdi", "text", note.text), remove);
    }));
  }
}
