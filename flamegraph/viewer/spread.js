// @ts-check
/** How methods spread over hosts: each one's share of every host, found out host by host while the page stays alive. */

/** @typedef {import("./context.js").Context} Context */
/** @typedef {import("./methods.js").Method} Method */

/** Shares that are kept: of more methods and hosts together only the heaviest methods have theirs. */
const MOST_SHARES = 6_000_000;
/** After so many milliseconds of work the page gets its turn. */
const TURN = 12;

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
   * @param {Method[]} methods
   * @param {Uint8Array} outermost
   */
  constructor(context, methods, outermost) {
    this.context = context;
    /** Reading goes on while another event may be looked at. */
    this.event = context.event;
    this.thread = context.thread;
    this.outermost = outermost;
    /** Hosts with anything at all of what is shown, as indexes into the page's hosts. @type {number[]} */
    this.hosts = hostsOf(context);
    const kept = methods.slice().sort((a, b) => b.total - a.total);
    kept.length = Math.min(kept.length, Math.floor(MOST_SHARES / Math.max(1, this.hosts.length)));
    this.row = new Int32Array(context.tree.names.length).fill(-1);
    kept.forEach(({ name }, row) => (this.row[name] = row));
    this.self = new Float32Array(kept.length * this.hosts.length);
    this.total = new Float32Array(kept.length * this.hosts.length);
    /** @type {Record<"self" | "total", Map<number, Spread>>} */
    this.known = { self: new Map(), total: new Map() };
    this.done = 0;
    this.stopped = false;
  }

  /** Reads all hosts, and lets the page go on meanwhile. */
  async read() {
    const self = new Float64Array(this.context.tree.count);
    const total = new Float64Array(this.context.tree.count);
    let begin = performance.now();
    while (this.done < this.hosts.length && !this.stopped) {
      this.readHost(this.done++, self, total);
      if (performance.now() - begin < TURN) continue;
      await new Promise((resolve) => setTimeout(resolve));
      begin = performance.now();
    }
  }

  /**
   * @param {number} at the host's place
   * @param {Float64Array} self scratch of a number a node
   * @param {Float64Array} total scratch
   */
  readHost(at, self, total) {
    const { tree, scopes } = this.context;
    const scope = scopes.parse(`host:${this.hosts[at]}`);
    if (!scope) return;
    self.fill(0);
    for (const { column, weight } of scopes.columns(scope, this.event, this.thread)) tree.addTo(column, weight, self);
    total.set(self);
    const { parent, name, count } = tree;
    for (let node = count - 1; node > 0; node--) total[parent[node]] += total[node];
    const whole = total[0] || 1;
    for (let node = 1; node < count; node++) {
      const row = total[node] > 0 ? this.row[name[node]] : -1;
      if (row < 0) continue;
      const cell = row * this.hosts.length + at;
      this.self[cell] += self[node] / whole;
      if (this.outermost[node]) this.total[cell] += total[node] / whole;
    }
  }

  /**
   * One share a host; none until all hosts are read, and for methods that are too many and too light.
   * @param {Method} method
   * @param {"self" | "total"} of
   */
  sharesOf(method, of) {
    const row = this.row[method.name];
    const count = this.done < this.hosts.length ? 0 : this.hosts.length;
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
export function hostsOf(context) {
  const { page, scopes, scope } = context;
  /** @type {number[]} */
  const hosts = [];
  page.hosts.forEach(({ run }, host) => {
    const one = run === scope.run ? scopes.parse(`host:${host}`) : null;
    if (one && context.columns(one).length > 0) hosts.push(host);
  });
  return hosts;
}
