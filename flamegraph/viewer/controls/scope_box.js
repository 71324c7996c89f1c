// @ts-check
/** What is shown: the event, the scope (cluster, hosts, processes, groups), and the threads. */

import { percent, quantity } from "../data/format.js";
import { Combobox } from "./combobox.js";
import { make, part } from "./dom.js";

/** @import { Scope } from "../data/scopes.js" */
/** @import { Context } from "./context.js" */

export class ScopeBox {
  /** @param {Context} context */
  constructor(context) {
    this.context = context;
    this.events = part("events", HTMLDivElement);
    this.threads = part("thread", HTMLSelectElement);
    this.note = part("scope-note", HTMLParagraphElement);
    /** The event whose threads are listed. */
    this.listed = -1;
    const element = part("scope", HTMLDivElement);
    this.box = new Combobox(element, "What is shown", () => this.options(), (id) => context.go({ scope: context.addressOf(id) }));
    element.hidden = !context.scopes.several;
    this.threads.addEventListener("change", () => context.go({ thread: Number(this.threads.value) }));
    this.listEvents();
  }

  focus() {
    this.box.input.focus();
    this.box.open("");
  }

  listEvents() {
    const { page } = this.context;
    const buttons = page.events.map((event) => {
      const { name, title } = event;
      const button = make("button", "", title === name ? title : title.charAt(0).toUpperCase() + title.slice(1));
      button.addEventListener("click", () => this.context.go({ event: event === page.events[0] ? "" : event.name }));
      return button;
    });
    this.events.replaceChildren(...buttons);
    this.events.hidden = buttons.length < 2;
  }

  options() {
    const { scopes, event, thread, page } = this.context;
    const wholes = page.runs.map((_, run) => scopes.amount(scopes.sumOfRun(run), event, thread));
    return scopes.all().map((scope) => {
      const plain = scope.kind === "sum" || scope.kind === "mean";
      const note = () => (plain ? "" : percent(scopes.amount(scope, event, thread), wholes[scope.run]));
      return { id: scope.key, label: scope.label, section: scope.section, note };
    });
  }

  update() {
    const { context } = this;
    const { scope, event } = context;
    this.box.show(scope.key, scope.label);
    [...this.events.children].forEach((button, index) => button.setAttribute("aria-pressed", String(index === event)));
    this.listThreads(event);
    this.threads.value = String(context.thread);
    this.note.textContent = [...this.missed(scope), this.describe(scope)].join(" ");
  }

  /**
   * What a link asked for that is not on this page.
   * @param {Scope} scope what is shown instead
   */
  missed(scope) {
    const { page, state, event, scopes } = this.context;
    const notes = [];
    if (state.event && state.event !== page.events[event].name) {
      notes.push(`The link asks for an event that is not on this page; this is ${page.events[event].title}.`);
    }
    if (state.scope && !scopes.parse(state.scope)) {
      notes.push(`The link asks for a scope that is not on this page; this is ${scope.label}.`);
    }
    return notes;
  }

  /** @param {number} event */
  listThreads(event) {
    if (this.listed === event) return;
    this.listed = event;
    const { scopes, page } = this.context;
    const threads = scopes.threadsOf(event);
    const options = threads.map((thread) => new Option(page.threads[thread], String(thread)));
    this.threads.replaceChildren(new Option("All threads", "-1"), ...options);
    this.threads.hidden = threads.length === 0;
  }

  /** @param {Scope} scope */
  describe(scope) {
    const { context } = this;
    const { scopes, page, event, thread } = context;
    if (!scopes.hasEvent(event)) return `There are no samples of ${page.events[event].title}.`;
    const part = scopes.amount(scope, event, thread);
    if (part === 0) return "No samples here.";
    const hosts = scopes.hostsOf(scope.run);
    if (scope.kind === "mean") {
      const busy = scopes.busyHosts(scope, event, thread);
      const some = busy < hosts ? `, of the ${busy} that ${busy === 1 ? "has" : "have"} any` : "";
      return `Every host weighs the same: this is one host on average${some}.`;
    }
    const several = hosts > 1;
    if (scope.kind === "sum" && thread < 0) return several ? "Every sample counts once." : "";
    const whole = scopes.amount(scopes.sumOfRun(scope.run), event, scope.kind === "sum" ? -1 : thread);
    const what = page.events[event];
    return `${ofWhole(quantity(part, what), quantity(whole, what))}, ${percent(part, whole)}${this.labels(scope)}.`;
  }

  /**
   * What is known of a process.
   * @param {Scope} scope
   */
  labels(scope) {
    if (scope.kind !== "process") return "";
    const { labels } = this.context.page.processes[scope.index];
    return Object.entries(labels).map(([key, value]) => ` · ${key} ${value}`).join("");
  }
}

/**
 * "100 of 400 samples", "20 ms of 3.0 s": a unit that is the same is said once.
 * @param {string} part
 * @param {string} whole
 */
function ofWhole(part, whole) {
  const unit = whole.slice(whole.indexOf(" "));
  return `${part.endsWith(unit) ? part.slice(0, -unit.length) : part} of ${whole}`;
}
