// @ts-check
/** What is shown: the event, the scope (cluster, hosts, processes, groups), and the threads. */

import { grouped, percent, quantity } from "../data/format.js";
import { Combobox } from "./combobox.js";
import { make, part } from "./dom.js";

/** @import { Scope } from "../data/scopes.js" */
/** @import { Context } from "./context.js" */

export class ScopeBox {
  /** @param {Context} context */
  constructor(context) {
    const { page, scopes } = context;
    this.context = context;
    this.threads = part("thread", HTMLSelectElement);
    /** The event whose threads are listed. */
    this.listed = -1;
    const element = part("scope", HTMLDivElement);
    element.hidden = !scopes.several;
    const options = () => {
      const { event, thread } = context;
      const wholes = page.runs.map((_, run) => context.numbers.amounts(scopes.sumOfRun(run), event, thread).amount);
      const found = scopes.all().map((scope) => {
        const plain = scope.kind === "sum" || scope.kind === "mean";
        const share = plain ? Infinity : context.numbers.amounts(scope, event, thread).amount / (wholes[scope.run] || 1);
        const note = () => (plain ? "" : percent(share, 1));
        return { id: scope.key, label: scope.label, section: scope.section, note, share };
      });
      // Sections stay in their order, the heaviest of each is first.
      const sections = [...new Set(found.map(({ section }) => section))];
      const place = new Map(sections.map((section, at) => [section, at]));
      return found.sort((a, b) => (place.get(a.section) ?? 0) - (place.get(b.section) ?? 0) || (a.share === b.share ? 0 : b.share - a.share));
    };
    this.box = new Combobox(element, "Scope", options, (id) => context.go({ scope: context.addressOf(id) }));
    this.threads.addEventListener("change", () => context.go({ thread: this.threads.value }));
    this.buttons = page.events.map(({ name, title }, event) => {
      const button = make("button", "", title === name ? title : title.charAt(0).toUpperCase() + title.slice(1));
      button.addEventListener("click", () => context.go({ event: event === 0 ? "" : name }));
      return button;
    });
    const events = part("events", HTMLDivElement);
    events.replaceChildren(...this.buttons);
    events.hidden = this.buttons.length < 2;
  }

  focus() {
    this.box.input.focus();
    this.box.open("");
  }

  update() {
    const { scope, event, thread, scopes, page, state } = this.context;
    this.box.show(scope.key, scope.label);
    this.buttons.forEach((button, index) => button.setAttribute("aria-pressed", String(index === event)));
    if (this.listed !== event) {
      this.listed = event;
      const known = scopes.threadsOf(event);
      const options = known.map((one) => new Option(page.threads[one], scopes.called.thread.texts[one]));
      this.threads.replaceChildren(new Option("All threads", ""), ...options);
      this.threads.hidden = known.length === 0;
    }
    this.threads.value = scopes.called.thread.texts[thread] ?? "";
    const { title, name } = page.events[event];
    const notes = [];
    if (state.event && state.event !== name) notes.push(`The link's event is not on this page. Shown instead: ${title}.`);
    if (state.scope && !scopes.parse(state.scope)) notes.push(`The link's scope is not on this page. Shown instead: ${scope.label}.`);
    part("scope-note", HTMLParagraphElement).textContent = [...notes, this.describe(scope), this.base(scope), this.missing(scope)].filter(Boolean).join(" ");
  }

  /**
   * What shares are of, if that is not all stacks.
   * @param {Scope} scope
   */
  base(scope) {
    const { changed, numbers, event, thread, page, idleHidden } = this.context;
    const { amount } = changed.tree ? numbers.amounts(scope, event, thread) : { amount: 0 };
    return amount > 0 ? [`Shares are of the ${quantity(amount, page.events[event])} shown`, idleHidden].filter(Boolean).join(", ") + "." : "";
  }

  /**
   * The processes that a part of the recording has nothing of, because their samples' times are not known.
   * @param {Scope} scope
   */
  missing(scope) {
    const { page, inTime, untimed } = this.context;
    const processes = new Set(untimed.map(({ column }) => page.columns[column].process));
    if (!inTime || processes.size === 0 || untimed.length === this.context.columns(scope).length) return "";
    const counted = processes.size === 1 ? "1 process" : `${grouped(processes.size)} processes`;
    return `Without ${counted} of which the times of samples are not known.`;
  }

  /** @param {Scope} scope */
  describe(scope) {
    const { scopes, numbers, unchanged, page, event, thread, span, part, inTime } = this.context;
    const info = page.events[event];
    if (!scopes.hasEvent(event)) return `There are no samples of ${info.title}.`;
    const { untimed, idleHidden, idleShare } = this.context;
    if (inTime && untimed.length > 0 && untimed.length === this.context.columns(scope).length) {
      return `It is not known when samples of ${info.title} were taken: nothing is shown of ${span}.`;
    }
    const { amount, hosts: busy } = numbers.amounts(scope, event, thread);
    if (amount === 0 && idleHidden && idleShare === 1) return `Only idle threads have samples here${span && ` in ${span}`}. They are hidden.`;
    if (amount === 0) return span ? `No samples here in ${span}.` : "No samples here.";
    const hosts = scopes.hostsOf(scope.run);
    if (scope.kind === "mean") {
      const some = busy < hosts ? `, of the ${busy} with samples` : "";
      return `The average host${span && ` in ${span}`}, with equal weight for every host${some}.`;
    }
    if (scope.kind === "sum" && thread < 0 && !part) return hosts > 1 ? "The sum of all hosts." : "";
    // A part of the recording is measured by all of it, a scope by all scopes in the same part.
    const [base, threads] = scope.kind === "sum" ? [unchanged, -1] : [numbers, thread];
    const of = base.amounts(scopes.sumOfRun(scope.run), event, threads).amount;
    // "100 of 400 samples", "20 ms of 3.0 s": a unit that is the same is said once.
    const [here, whole] = [quantity(amount, info), quantity(of, info)];
    const unit = whole.slice(whole.indexOf(" "));
    const labels = scope.kind === "process" ? Object.entries(page.processes[scope.index].labels) : [];
    const known = labels.map(([key, value]) => ` · ${key} ${value}`).join("");
    const sentence = `${here.endsWith(unit) ? here.slice(0, -unit.length) : here} of ${whole}, ${percent(amount, of)}${known}`;
    if (scope.kind !== "slice" || scope.index < 0) return span ? `${sentence}, in ${span}.` : `${sentence}.`;
    const certain = numbers.certainOf(scope, event, thread);
    const how = `${quantity(certain, info)} certain, ${quantity(amount - certain, info)} likely`;
    const spread = info.second?.type === "cpu" ? " Its CPU time is its share of all that the processes used, also of what was not sampled." : "";
    return `${sentence}${span && `, in ${span}`}: ${how}.${spread}`;
  }
}
