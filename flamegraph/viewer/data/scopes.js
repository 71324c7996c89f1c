// @ts-check
/** Scopes: the cluster, its average, hosts, processes, groups of processes by label, threads, stages. */

import { grouped, inOrder } from "./format.js";

/** @import { Numbers } from "./numbers.js" */
/** @import { ColumnInfo, PageInfo } from "./page.js" */

/**
 * What is shown: `key` is its name in the URL, `run` the index of its run.
 * @typedef {object} Scope
 * @property {string} key
 * @property {"sum" | "mean" | "host" | "rest" | "process" | "label" | "thread" | "slice"} kind
 * @property {number} run
 * @property {number} index of the host, process, thread or slice; NO_SLICE for what belongs to none; 0 for others
 * @property {string} group the label's key
 * @property {string} value the label's value
 * @property {string} label for people
 * @property {string} section under which it is listed
 * @property {Scope | null} of the part that a rest leaves out
 */

const SECTION_OF = {
  sum: "Cluster", mean: "Cluster", host: "Hosts", rest: "Cluster", process: "Processes", label: "", thread: "Threads", slice: "Stages",
};
/** The samples of no stage. */
const NO_SLICE = -1;

export class Scopes {
  /** @param {PageInfo} page */
  constructor(page) {
    this.page = page;
    /** The first slice of the same name, for each. */
    this.sliceOf = page.slices.map(({ name }) => page.slices.findIndex((one) => one.name === name));
    /** How the address calls each host, process, group of threads and slice, and what has that name there. */
    this.called = {
      host: new Called(page.hosts.map(({ name }) => name), (host) => page.hosts[host].run),
      process: new Called(page.processes.map(({ host, pid }) => `${page.hosts[host].name}/${pid}`), (process) => this.runOf(process)),
      thread: new Called(page.threads, () => 0),
      slice: new Called(page.slices.map(({ name }, slice) => (this.sliceOf[slice] === slice ? name : "")), () => 0),
    };
    /** @type {Map<number, number[]>} */
    this.threads = new Map();
    /** @type {Scope[] | null} */
    this.listed = null;
  }

  /**
   * The scope with a key; null if this page has none.
   * @param {string} key `[RUN/](sum|mean|host:NAME|process:HOST/PID|label:KEY=VALUE|thread:NAME|slice:NAME|slice:none)`,
   * or one of them after `rest:`, for everything but that; "" is sum. Instead of a name it may have a number, which is a
   * place in the page's lists
   * @returns {Scope | null}
   */
  parse(key) {
    const rest = /^rest:((?!rest:).+)$/s.exec(key);
    if (rest) return this.restOf(this.parse(rest[1]));
    const parts = /^(?:(\d+)\/)?(?:(sum|mean)|(host|process|thread|slice):(.+)|(label):([^=]*)=(.*))$/s.exec(key || "sum");
    if (!parts) return null;
    const [, runText, whole, kindText, indexText, , group = "", value = ""] = parts;
    const { page } = this;
    const kind = /** @type {Scope["kind"]} */ (whole ?? kindText ?? "label");
    if (indexText === "none" && (kind !== "slice" || page.slices.length === 0)) return null;
    let run = Number(runText ?? 0);
    let index = indexText === "none" ? NO_SLICE : 0;
    if (kindText && indexText !== "none") {
      const found = this.called[/** @type {keyof Scopes["called"]} */ (kindText)].find(indexText, kind === "host" || kind === "process" ? run : 0);
      if (found < 0) return null;
      index = kind === "slice" ? this.sliceOf[found] : found;
    }
    if (kind === "host") run = page.hosts[index].run;
    if (kind === "process") run = this.runOf(index);
    if (run >= page.runs.length) return null;
    /** @type {Scope} */
    const scope = { key: "", kind, run, index, group, value, label: "", section: SECTION_OF[kind] || group, of: null };
    if (kind === "label" && !page.processes.some((_, process) => this.holds(scope, process))) return null;
    scope.key = this.keyOf(scope);
    scope.label = this.labelOf(scope);
    return scope;
  }

  /**
   * Everything of the run but a host, a process, a group or a stage; null if nothing is left.
   * @param {Scope | null} of
   * @returns {Scope | null}
   */
  restOf(of) {
    if (!of || !["host", "process", "label", "slice"].includes(of.kind)) return null;
    /** @type {Scope} */
    const rest = { ...of, key: `rest:${of.key}`, kind: "rest", section: SECTION_OF.rest, of };
    rest.label = this.labelOf(rest);
    return this.page.processes.some((_, process) => this.holds(rest, process)) ? rest : null;
  }

  /** @param {number} run */
  sumOfRun(run) {
    return /** @type {Scope} */ (this.parse(run ? `${run}/sum` : "sum"));
  }

  /** What is shown first: the sum of the later run. */
  get whole() {
    return this.sumOfRun(this.page.runs.length - 1);
  }

  /** @param {number} process */
  runOf(process) {
    return this.page.hosts[this.page.processes[process].host].run;
  }

  /** @param {Scope} scope */
  labelOf({ kind, run, index, value, of }) {
    const { runs, hosts, processes, threads, slices } = this.page;
    const prefix = runs.length > 1 ? `${runs[run]}: ` : "";
    // A file is a run whose host has the same name.
    const hostName = (/** @type {string} */ name) => (runs[run] === name ? name : prefix + name);
    switch (kind) {
      case "sum": {
        if (this.hostsOf(run) > 1) return `${prefix}Cluster, sum`;
        return hostName(hosts.find((host) => host.run === run)?.name || "Everything");
      }
      case "mean": return `${prefix}Cluster, average`;
      case "host": return hostName(hosts[index].name);
      case "rest": return `${prefix}All but ${of?.label.startsWith(prefix) ? of.label.slice(prefix.length) : of?.label}`;
      case "process": {
        const { name, pid, host } = processes[index];
        const where = hosts.length > 1 ? ` on ${hosts[host].name}` : "";
        return prefix + (pid ? `${name || "process"} (${pid})` : name) + where;
      }
      case "label": return prefix + (value || "(none)");
      case "thread": return prefix + threads[index];
      case "slice": {
        if (index === NO_SLICE) return `${prefix}No stage`;
        const { name, label } = slices[index];
        return prefix + (label ? `${label} (${name})` : name);
      }
    }
  }

  /**
   * The key of a scope; that of the first run has no prefix.
   * @param {{kind: Scope["kind"], run: number, index: number, group: string, value: string}} scope
   */
  keyOf({ kind, run, index, group, value }) {
    const prefix = run ? `${run}/` : "";
    switch (kind) {
      case "label": return `${prefix}label:${group}=${value}`;
      case "slice": return `${prefix}slice:${index === NO_SLICE ? "none" : this.called.slice.texts[index]}`;
      case "host": case "process": case "thread": return `${prefix}${kind}:${this.called[kind].texts[index]}`;
      default: return prefix + kind;
    }
  }

  /** @param {number} run */
  hostsOf(run) {
    return this.page.hosts.filter((host) => host.run === run).length;
  }

  /** Whether there is anything to choose. */
  get several() {
    const { runs, hosts, processes } = this.page;
    return runs.length > 1 || hosts.length > 1 || processes.length > 1 || this.page.slices.length > 0;
  }

  /**
   * The scopes to choose from, in order; threads are chosen separately.
   * @returns {Scope[]}
   */
  all() {
    if (this.listed) return this.listed;
    const { runs, hosts, processes } = this.page;
    const prefix = (/** @type {number} */ run) => (run ? `${run}/` : "");
    const keys = [];
    for (let run = 0; run < runs.length; run++) {
      keys.push(`${prefix(run)}sum`);
      if (this.hostsOf(run) > 1) keys.push(`${prefix(run)}mean`);
    }
    if (hosts.length > runs.length) hosts.forEach((_, host) => keys.push(`host:${host}`));
    /** @type {Map<string, {values: string[], runs: Set<number>}>} */
    const labels = new Map();
    processes.forEach((one, process) => {
      for (const [key, value] of Object.entries(one.labels)) {
        const known = labels.get(key) ?? { values: [], runs: new Set() };
        known.values.push(value);
        known.runs.add(this.runOf(process));
        labels.set(key, known);
      }
    });
    for (const [key, { values, runs }] of labels) {
      const groups = [...new Set(values)].sort(inOrder);
      if (groups.length < 2 || groups.length === values.length) continue; // it splits no processes into groups
      for (const value of groups) for (const run of runs) keys.push(`${prefix(run)}label:${key}=${value}`);
    }
    for (const [run, index] of this.slicesOfRuns()) keys.push(`${prefix(run)}slice:${index === NO_SLICE ? "none" : index}`);
    if (processes.length > hosts.length) processes.forEach((_, process) => keys.push(`process:${process}`));
    this.listed = keys.map((key) => this.parse(key)).filter((scope) => scope !== null);
    return this.listed;
  }

  /** The stages that have samples, each with its run, in the order of the page; none if the page has none. */
  slicesOfRuns() {
    const { slices, columns } = this.page;
    /** @type {Map<string, [run: number, index: number]>} */
    const found = new Map();
    for (const { process, slice } of slices.length ? columns : []) {
      const [run, index] = [this.runOf(process), slice === null ? NO_SLICE : this.sliceOf[slice]];
      found.set(`${run} ${index}`, [run, index]);
    }
    const last = (/** @type {number} */ index) => (index === NO_SLICE ? slices.length : index);
    return [...found.values()].sort((a, b) => a[0] - b[0] || last(a[1]) - last(b[1]));
  }

  /**
   * The groups of threads in the event's columns.
   * @param {number} event
   */
  threadsOf(event) {
    let threads = this.threads.get(event);
    if (!threads) {
      const known = new Set(this.page.columns.filter((one) => one.event === event).map((one) => one.thread));
      threads = [...known].filter((thread) => thread !== null).sort((a, b) => a - b);
      this.threads.set(event, threads);
    }
    return threads;
  }

  /**
   * Whether there are samples of an event.
   * @param {number} event
   */
  hasEvent(event) {
    return this.page.columns.some((column) => column.event === event);
  }

  /**
   * Whether any samples of a process may be in the scope.
   * @param {Scope} scope
   * @param {number} process
   * @returns {boolean}
   */
  holds(scope, process) {
    const { host, labels } = this.page.processes[process];
    if (this.runOf(process) !== scope.run) return false;
    if (scope.kind === "host") return host === scope.index;
    if (scope.of?.kind === "slice") return true;
    if (scope.of) return !this.holds(scope.of, process);
    if (scope.kind === "process") return process === scope.index;
    return scope.kind !== "label" || labels[scope.group] === scope.value;
  }

  /**
   * Whether a column's samples are of the scope's stage, if it is of one.
   * @param {Scope} scope
   * @param {ColumnInfo} column
   * @returns {boolean}
   */
  ofSlice(scope, { slice }) {
    const stage = scope.kind === "slice" ? scope : scope.of?.kind === "slice" ? scope.of : null;
    if (!stage) return true;
    const within = (slice === null ? NO_SLICE : this.sliceOf[slice]) === stage.index;
    return within === (stage === scope);
  }
}

/** Names in the address of things in a list: the number of what has the same name as another of its run, or one like a number. */
class Called {
  /**
   * @param {string[]} names
   * @param {(index: number) => number} runOf
   */
  constructor(names, runOf) {
    /** By run and name; -1 if several have it. @type {Map<string, number>} */
    this.found = new Map();
    const keys = names.map((name, index) => `${runOf(index)}/${name}`);
    keys.forEach((key, index) => this.found.set(key, this.found.has(key) ? -1 : index));
    this.texts = names.map((name, index) => {
      return /^(?:|\d+|none)$/.test(name) || this.found.get(keys[index]) !== index ? String(index) : name;
    });
  }

  /**
   * The place in the list; -1 for none.
   * @param {string} text
   * @param {number} run
   */
  find(text, run) {
    if (/^\d+$/.test(text)) return Number(text) < this.texts.length ? Number(text) : -1;
    return this.found.get(`${run}/${text}`) ?? -1;
  }
}

/**
 * "3 of 4 processes on 1 of 1 host, interrupted · 99 Hz for 5 of 60 s"; "" where unknown.
 * @param {Numbers} numbers
 * @param {Scope} scope
 * @param {number} event
 */
export function coverageOf(numbers, scope, event) {
  const { page } = numbers;
  const { runs, hosts, short } = page.coverage[event];
  const run = runs[scope.run] ?? "";
  if (!run || ["sum", "mean", "thread", "slice"].includes(scope.kind) || scope.of?.kind === "slice") return run;
  if (scope.kind === "host" && hosts[scope.index]) return hosts[scope.index];
  const processes = new Set(numbers.columns(scope, event).map(({ column }) => page.columns[column].process));
  const lasted = scope.kind === "process" ? short[scope.index] : "";
  const counted = processes.size === 1 ? "1 process" : `${grouped(processes.size)} processes`;
  return `${counted}${lasted ? ` for ${lasted}` : ""}, of a run of ${run}`;
}

/**
 * The same for two scopes; once if both are equal.
 * @param {Numbers} numbers
 * @param {Scope} one
 * @param {Scope} another
 * @param {number} event
 */
export function coverageOfBoth(numbers, one, another, event) {
  const [here, there] = [one, another].map((scope) => coverageOf(numbers, scope, event));
  if (here === there) return here;
  const named = (/** @type {Scope} */ scope, /** @type {string} */ covered) => (covered ? `${scope.label}: ${covered}` : "");
  return [named(one, here), named(another, there)].filter(Boolean).join(" | ");
}
