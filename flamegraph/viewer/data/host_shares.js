// @ts-check
/** How methods spread over hosts: each method's share of every host, read host by host in the background. */

import { inTurns, MethodCosts } from "./method_costs.js";

/** @import { Context } from "../controls/context.js" */
/** @import { Method } from "./methods.js" */

/** Shares that are kept: of more methods and hosts together only the heaviest methods have theirs. */
const MOST_SHARES = 6_000_000;

/**
 * One method's shares of the hosts.
 * @typedef {object} Spread
 * @property {number} hosts on how many it shows
 * @property {number} least
 * @property {number} median
 * @property {number} most
 * @property {number} where the host with the most, as an index into `hosts`
 */

export class HostShares {
  /**
   * @param {Context} context
   * @param {() => Method[]} methods of all hosts; asked for only where they have to be ranked
   */
  constructor(context, methods) {
    this.context = context;
    this.methods = methods;
    /** Reading goes on while another event may be looked at. */
    this.event = context.event;
    this.thread = context.thread;
    /** Hosts with anything at all of what is shown, as indexes into the page's hosts. @type {number[]} */
    this.hosts = hostsOf(context);
    this.row = new Int32Array(0);
    this.self = new Float32Array(0);
    this.total = new Float32Array(0);
    /** @type {Record<"self" | "total", Map<number, Spread>>} */
    this.known = { self: new Map(), total: new Map() };
    this.done = 0;
    this.stopped = false;
  }

  /** @returns {Promise<boolean>} false where it was stopped */
  read() {
    return inTurns(this.work(), () => this.stopped);
  }

  /** Reads all hosts; yields so that other work can run. */
  *work() {
    const { tree, scopes } = this.context;
    const rows = this.makeRows();
    this.self = new Float32Array(rows * this.hosts.length);
    this.total = new Float32Array(rows * this.hosts.length);
    yield;
    const costs = new MethodCosts(tree);
    for (const [at, host] of this.hosts.entries()) {
      const scope = scopes.parse(`host:${host}`);
      yield* costs.read(scope ? scopes.columns(scope, this.event, this.thread) : []);
      this.keep(at, costs);
      this.done++;
      yield;
    }
  }

  /** Gives each name a row, or each of the heaviest where they are too many; returns how many there are. */
  makeRows() {
    const { names } = this.context.tree;
    const most = Math.floor(MOST_SHARES / Math.max(1, this.hosts.length));
    if (names.length <= most) {
      this.row = Int32Array.from(names, (_, row) => row);
      return names.length;
    }
    this.row = new Int32Array(names.length).fill(-1);
    const kept = this.methods().sort((a, b) => b.total - a.total).slice(0, most);
    kept.forEach(({ name }, row) => (this.row[name] = row));
    return kept.length;
  }

  /**
   * @param {number} at the host's place
   * @param {MethodCosts} costs
   */
  keep(at, { names, own, all, whole }) {
    for (const name of names) {
      const cell = this.row[name] * this.hosts.length + at;
      if (cell < 0) continue;
      this.self[cell] = own[name] / whole;
      this.total[cell] = all[name] / whole;
    }
  }

  /**
   * One share a host; none until all hosts are read, and for methods that are too many and too light.
   * @param {Method} method
   * @param {"self" | "total"} of
   */
  sharesOf(method, of) {
    const count = this.hosts.length;
    const row = this.done < count ? -1 : this.row[method.name];
    return row < 0 ? this[of].subarray(0, 0) : this[of].subarray(row * count, (row + 1) * count);
  }

  /**
   * @param {Method} method
   * @param {"self" | "total"} of
   * @returns {Spread | null} null where there are no shares
   */
  spreadOf(method, of) {
    const known = this.known[of].get(method.name);
    const shares = this.sharesOf(method, of);
    if (known || shares.length === 0) return known ?? null;
    const sorted = shares.slice().sort();
    const middle = sorted.length >> 1;
    const most = sorted[sorted.length - 1];
    const spread = {
      hosts: this.sharesOf(method, "total").reduce((sum, share) => sum + (share > 0 ? 1 : 0), 0),
      least: sorted[0],
      median: sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2,
      most,
      where: shares.indexOf(most),
    };
    this.known[of].set(method.name, spread);
    return spread;
  }
}

/**
 * The hosts of the run shown that have anything of the event and threads shown.
 * @param {Context} context
 */
export function hostsOf({ page, scope, event, thread }) {
  /** @type {Set<number>} */
  const hosts = new Set();
  for (const column of page.columns) {
    if (column.event === event && (thread < 0 || column.thread === thread)) hosts.add(page.processes[column.process].host);
  }
  return [...page.hosts.keys()].filter((host) => hosts.has(host) && page.hosts[host].run === scope.run);
}
