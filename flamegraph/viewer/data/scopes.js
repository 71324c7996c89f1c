// @ts-check
/** Scopes: the cluster, its average, hosts, processes, groups of processes by label, threads. Each is a sum of weighted columns. */

import { grouped, inOrder } from "./format.js";
import { markClasses } from "./frame_kinds.js";
import { PooledProfile, BufferPool } from "./profile.js";

/** @import { Columns } from "./method_costs.js" */
/** @import { PageInfo } from "./page.js" */
/** @import { Profile } from "./profile.js" */
/** @import { Tree } from "./tree.js" */

/**
 * What is shown: `key` is its name in the URL, `run` the index of its run.
 * @typedef {object} Scope
 * @property {string} key
 * @property {"sum" | "mean" | "host" | "rest" | "process" | "label" | "thread"} kind
 * @property {number} run
 * @property {number} index of the host, process or thread; 0 for others
 * @property {string} group the label's key
 * @property {string} value the label's value
 * @property {string} label for people
 * @property {string} section under which it is listed
 * @property {Scope | null} of the part that a rest leaves out
 */

/** How many profiles have their numbers at once. With 1,000,000 nodes each takes 16 MB. */
const KEPT = 3;
const SECTION_OF = { sum: "Cluster", mean: "Cluster", host: "Hosts", rest: "Cluster", process: "Processes", label: "", thread: "Threads" };

export class Scopes {
  /**
   * @param {PageInfo} page
   * @param {Tree} tree
   */
  constructor(page, tree) {
    this.page = page;
    this.tree = tree;
    /** @type {Map<string, PooledProfile>} */
    this.profiles = new Map();
    this.pool = new BufferPool(KEPT);
    /** Sum of each column, NaN until it was read once. */
    this.sums = new Float64Array(page.columns.length).fill(NaN);
    /** Sums of the processes by event and threads. @type {Map<string, Float64Array>} */
    this.processes = new Map();
    /** @type {Map<number, number[]>} */
    this.threads = new Map();
    /** @type {Scope[] | null} */
    this.listed = null;
  }

  /**
   * The scope with a key; null if this page has none.
   * @param {string} key `[RUN/](sum|mean|host:N|process:N|label:KEY=VALUE|thread:N)`, or one of them
   * after `rest:`, for everything but that; "" is sum
   * @returns {Scope | null}
   */
  parse(key) {
    const rest = /^rest:((?!rest:).+)$/s.exec(key);
    if (rest) return this.restOf(this.parse(rest[1]));
    const parts = /^(?:(\d+)\/)?(?:(sum|mean)|(host|process|thread):(\d+)|(label):([^=]*)=(.*))$/s.exec(key || "sum");
    if (!parts) return null;
    const [, runText, whole, kindText, indexText, , group = "", value = ""] = parts;
    const { page } = this;
    const kind = /** @type {Scope["kind"]} */ (whole ?? kindText ?? "label");
    const index = Number(indexText ?? 0);
    const list = kind === "host" ? page.hosts : kind === "process" ? page.processes : page.threads;
    if (kindText && index >= list.length) return null;
    let run = Number(runText ?? 0);
    if (kind === "host") run = page.hosts[index].run;
    if (kind === "process") run = this.runOf(index);
    if (run >= page.runs.length) return null;
    /** @type {Scope} */
    const scope = { key: "", kind, run, index, group, value, label: "", section: SECTION_OF[kind] || group, of: null };
    if (kind === "label" && !page.processes.some((_, process) => this.holds(scope, process))) return null;
    scope.key = formatScope(scope);
    scope.label = this.labelOf(scope);
    return scope;
  }

  /**
   * Everything of the run but a host, a process or a group; null if nothing is left.
   * @param {Scope | null} of
   * @returns {Scope | null}
   */
  restOf(of) {
    if (!of || !["host", "process", "label"].includes(of.kind)) return null;
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
    const { runs, hosts, processes, threads } = this.page;
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
    }
  }

  /** @param {number} run */
  hostsOf(run) {
    return this.page.hosts.filter((host) => host.run === run).length;
  }

  /** Whether there is anything to choose. */
  get several() {
    const { runs, hosts, processes } = this.page;
    return runs.length > 1 || hosts.length > 1 || processes.length > 1;
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
    if (processes.length > hosts.length) processes.forEach((_, process) => keys.push(`process:${process}`));
    this.listed = keys.map((key) => this.parse(key)).filter((scope) => scope !== null);
    return this.listed;
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
   * @param {Scope} scope
   * @param {number} process
   * @returns {boolean}
   */
  holds(scope, process) {
    const { host, labels } = this.page.processes[process];
    if (this.runOf(process) !== scope.run) return false;
    if (scope.kind === "host") return host === scope.index;
    if (scope.of) return !this.holds(scope.of, process);
    if (scope.kind === "process") return process === scope.index;
    return scope.kind !== "label" || labels[scope.group] === scope.value;
  }

  /**
   * Columns of an event in a scope, and the weight of each.
   * @param {Scope} scope
   * @param {number} event
   * @param {number} thread -1 for all
   * @returns {Columns}
   */
  columns(scope, event, thread = -1) {
    const { columns, processes, hosts } = this.page;
    /** @type {Columns} */
    const chosen = [];
    const only = scope.kind === "thread" ? scope.index : thread;
    columns.forEach((info, column) => {
      const meant = info.event === event && (only < 0 || info.thread === only) && this.holds(scope, info.process);
      if (meant) chosen.push({ column, weight: 1 });
    });
    if (scope.kind !== "mean") return chosen;
    // Every host weighs the same; together they are the average host.
    const sums = new Float64Array(hosts.length);
    const hostOf = (/** @type {number} */ column) => processes[columns[column].process].host;
    for (const { column } of chosen) sums[hostOf(column)] += this.sumOf(column);
    const busy = sums.filter((sum) => sum > 0);
    const all = busy.reduce((sum, one) => sum + one, 0);
    for (const one of chosen) one.weight = all / (busy.length ** 2 * (sums[hostOf(one.column)] || 1));
    return chosen;
  }

  /** @param {number} column */
  sumOf(column) {
    if (Number.isNaN(this.sums[column])) {
      let sum = 0;
      this.tree.eachEntry(column, (_, value) => (sum += value));
      this.sums[column] = sum;
    }
    return this.sums[column];
  }

  /**
   * The total of a scope, and how many of its hosts have samples.
   * @param {Scope} scope
   * @param {number} event
   * @param {number} [thread] -1 for all
   */
  amounts(scope, event, thread = -1) {
    const sums = this.processSums(event, scope.kind === "thread" ? scope.index : thread);
    const busy = new Set();
    let all = 0;
    // A plain loop: a callback would allocate each number, and lists need this of every scope.
    for (let process = 0; process < sums.length; process++) {
      if (sums[process] === 0 || !this.holds(scope, process)) continue;
      all += sums[process];
      busy.add(this.page.processes[process].host);
    }
    return { amount: scope.kind === "mean" ? all / Math.max(1, busy.size) : all, hosts: busy.size };
  }

  /**
   * The total of each process.
   * @param {number} event
   * @param {number} thread -1 for all
   */
  processSums(event, thread) {
    const key = `${event} ${thread}`;
    let sums = this.processes.get(key);
    if (!sums) {
      this.processes.set(key, (sums = new Float64Array(this.page.processes.length)));
      for (const [column, info] of this.page.columns.entries()) {
        if (info.event === event && (thread < 0 || info.thread === thread)) sums[info.process] += this.sumOf(column);
      }
    }
    return sums;
  }

  /**
   * The tree with the numbers of a scope; the same profile for the same scope.
   * @param {Scope} scope
   * @param {number} event
   * @param {number} thread -1 for all
   * @returns {Profile}
   */
  profileOf(scope, event, thread = -1) {
    const key = `${event} ${thread} ${scope.key}`;
    const known = this.profiles.get(key);
    if (known) return known;
    const info = this.page.events[event];
    const fill = (/** @type {Float64Array} */ self) => {
      if (scope.of && this.subtract(scope.run, scope.of, event, thread, self)) return;
      for (const { column, weight } of this.columns(scope, event, thread)) {
        this.sums[column] = this.tree.addTo(column, weight, self);
      }
      markClasses(this.tree.kind, self, info.type);
    };
    const profile = new PooledProfile(this.tree, info, this.pool, fill, scope.kind === "sum" || scope.kind === "mean");
    this.profiles.set(key, profile);
    return profile;
  }

  /**
   * A rest is the sum minus the part. This is fast if both have their numbers, and exact if these are integers.
   * @param {number} run
   * @param {Scope} of
   * @param {number} event
   * @param {number} thread
   * @param {Float64Array} self is filled with the self value of each node
   * @returns {boolean} whether it was filled
   */
  subtract(run, of, event, thread, self) {
    const [all, part] = [this.sumOfRun(run), of].map((scope) => {
      const profile = this.profiles.get(`${event} ${thread} ${scope.key}`);
      return profile ? this.pool.held(profile) : null;
    });
    if (!all || !part || !Number.isSafeInteger(all.total[0])) return false;
    for (let node = 0; node < self.length; node++) self[node] = all.self[node] - part.self[node];
    return true;
  }
}

/**
 * The key of a scope; that of the first run has no prefix.
 * @param {{kind: Scope["kind"], run: number, index: number, group: string, value: string}} scope
 */
export function formatScope({ kind, run, index, group, value }) {
  if (kind === "host" || kind === "process") return `${kind}:${index}`;
  const prefix = run ? `${run}/` : "";
  if (kind === "label") return `${prefix}label:${group}=${value}`;
  return prefix + (kind === "thread" ? `thread:${index}` : kind);
}

/**
 * "3 of 4 processes on 1 of 1 host, interrupted · 99 Hz for 5 of 60 s"; "" where unknown.
 * @param {Scopes} scopes
 * @param {Scope} scope
 * @param {number} event
 */
export function coverageOf(scopes, scope, event) {
  const { runs, hosts, short } = scopes.page.coverage[event];
  const run = runs[scope.run] ?? "";
  if (!run || ["sum", "mean", "thread"].includes(scope.kind)) return run;
  if (scope.kind === "host" && hosts[scope.index]) return hosts[scope.index];
  const processes = new Set(scopes.columns(scope, event).map(({ column }) => scopes.page.columns[column].process));
  const lasted = scope.kind === "process" ? short[scope.index] : "";
  const counted = processes.size === 1 ? "1 process" : `${grouped(processes.size)} processes`;
  return `${counted}${lasted ? ` for ${lasted}` : ""}, of a run of ${run}`;
}

/**
 * The same for two scopes; once if both are equal.
 * @param {Scopes} scopes
 * @param {Scope} one
 * @param {Scope} another
 * @param {number} event
 */
export function coverageOfBoth(scopes, one, another, event) {
  const [here, there] = [one, another].map((scope) => coverageOf(scopes, scope, event));
  if (here === there) return here;
  const named = (/** @type {Scope} */ scope, /** @type {string} */ covered) => (covered ? `${scope.label}: ${covered}` : "");
  return [named(one, here), named(another, there)].filter(Boolean).join(" | ");
}
