// @ts-check
/** How methods spread over hosts: each method's share of every host, read host by host in the background. */

import { inTurns, MethodCosts } from "./method_costs.js";

/** @import { Context } from "../controls/context.js" */
/** @import { Attribution, Method } from "./methods.js" */

/** Shares that are kept. With more methods × hosts only the heaviest methods have shares. */
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
   * @param {Attribution} attribution
   */
  constructor(context, methods, attribution) {
    const { page, scope, event, thread, numbers } = context;
    this.context = context;
    this.numbers = numbers;
    this.methods = methods;
    this.attribution = attribution;
    /** Another event or range may be chosen during reading. */
    this.event = event;
    this.thread = thread;
    const columns = page.columns.filter((one) => one.event === event && (thread < 0 || one.thread === thread));
    const busy = new Set(columns.map(({ process }) => page.processes[process].host));
    /** Hosts of the run with samples of it, as indexes into the page's hosts. */
    this.hosts = [...page.hosts.keys()].filter((host) => busy.has(host) && page.hosts[host].run === scope.run);
    /** Where each method's row has its shares, -1 for none. */
    this.place = new Int32Array(0);
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
    const { hosts, numbers, context: { scopes } } = this;
    const { tree } = numbers;
    const most = Math.floor(MOST_SHARES / Math.max(1, hosts.length));
    const costs = new MethodCosts(tree, this.attribution);
    const all = [...costs.own.keys()];
    const kept = all.length <= most ? all : this.methods().slice(0, most).map(({ row }) => row);
    this.place = new Int32Array(all.length).fill(-1);
    kept.forEach((row, place) => (this.place[row] = place));
    this.self = new Float32Array(kept.length * hosts.length);
    this.total = new Float32Array(kept.length * hosts.length);
    yield;
    for (const [at, host] of hosts.entries()) {
      const scope = scopes.parse(`host:${host}`);
      costs.read(scope ? numbers.columns(scope, this.event, this.thread) : [], numbers);
      for (const row of costs.rows) {
        const cell = this.place[row] * hosts.length + at;
        if (cell < 0) continue;
        this.self[cell] = costs.own[row] / costs.whole;
        this.total[cell] = costs.all[row] / costs.whole;
      }
      this.done++;
      yield;
    }
  }

  /**
   * One share per host; none until all hosts are read, and for methods without shares.
   * @param {Method} method
   * @param {"self" | "total"} of
   */
  sharesOf({ row }, of) {
    const count = this.hosts.length;
    const place = this.done < count ? -1 : this.place[row];
    return place < 0 ? this[of].subarray(0, 0) : this[of].subarray(place * count, (place + 1) * count);
  }

  /**
   * @param {Method} method
   * @param {"self" | "total"} of
   * @returns {Spread | null} null where there are no shares
   */
  spreadOf(method, of) {
    const known = this.known[of].get(method.row);
    const shares = this.sharesOf(method, of);
    if (known || shares.length === 0) return known ?? null;
    const sorted = shares.slice().sort();
    const middle = sorted.length >> 1;
    const most = sorted[sorted.length - 1];
    const spread = {
      hosts: this.sharesOf(method, "total").filter((share) => share > 0).length,
      least: sorted[0],
      median: sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2,
      most,
      where: shares.indexOf(most),
    };
    this.known[of].set(method.row, spread);
    return spread;
  }
}
