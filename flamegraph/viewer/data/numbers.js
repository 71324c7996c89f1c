// @ts-check
/** What scopes amount to, in the whole recording or in a part of it. Each scope is a sum of weighted columns. */

import { markClasses, ofMemory } from "./frame_kinds.js";
import { PooledProfile } from "./profile.js";
import { categoriesOf, categoryCount, categoryNumber, categoryOfThreads } from "./work.js";

/** @import { Columns } from "./method_costs.js" */
/** @import { EventInfo } from "./page.js" */
/** @import { BufferPool, Shape } from "./profile.js" */
/** @import { Selection } from "./range.js" */
/** @import { Scope, Scopes } from "./scopes.js" */
/** @import { Times } from "./times.js" */
/** @import { ChangedTree } from "./transforms.js" */

export class Numbers {
  /**
   * @param {Scopes} scopes
   * @param {Times} times
   * @param {BufferPool} pool
   * @param {Selection | null} selection null for the whole recording
   * @param {number} [category] of work, -1 for all
   * @param {Numbers | null} [whole] the same of all categories
   * @param {ChangedTree | null} [changed] the tree that is shown, if it is not the page's as it is
   */
  constructor(scopes, times, pool, selection, category = -1, whole = null, changed = null) {
    this.scopes = scopes;
    this.page = scopes.page;
    this.times = times;
    this.source = times.tree;
    this.changed = changed;
    /** Its nodes have the numbers. @type {Shape} */
    this.tree = changed?.tree ?? times.tree;
    this.pool = pool;
    this.selection = selection;
    this.category = category;
    this.whole = whole;
    /** @type {Map<string, ScopeProfile>} */
    this.profiles = new Map();
    /** Sum of each column, NaN until it was read once. */
    this.sums = new Float64Array(this.page.columns.length).fill(NaN);
    /** Sums of the processes by event, threads and stage. @type {Map<string, Float64Array>} */
    this.processes = new Map();
    /** Costs by category, by column. @type {Map<number, Float64Array>} */
    this.work = new Map();
  }

  /**
   * Whether both have a part of the recording in common.
   * @param {Numbers} other
   */
  overlaps(other) {
    const [one, another] = [this.selection?.range, other.selection?.range];
    return !one || !another || (one.from < another.to && another.from < one.to);
  }

  /**
   * The event, as long as the selection.
   * @param {number} event
   * @returns {EventInfo}
   */
  eventInfo(event) {
    const info = this.page.events[event];
    const range = this.selection?.range;
    return range ? { ...info, seconds: Math.min(info.seconds, (range.to - range.from) / 1e6) } : info;
  }

  /**
   * Columns of an event in a scope, and the weight of each.
   * @param {Scope} scope
   * @param {number} event
   * @param {number} thread -1 for all
   * @returns {Columns}
   */
  columns(scope, event, thread = -1) {
    // A host weighs as much as it does without the category, also if it has none of it.
    if (this.whole && scope.kind === "mean") return this.whole.columns(scope, event, thread);
    const { columns, processes, hosts } = this.page;
    /** @type {Columns} */
    const chosen = [];
    const only = scope.kind === "thread" ? scope.index : thread;
    columns.forEach((info, column) => {
      if (info.event !== event || (only >= 0 && info.thread !== only) || !this.scopes.ofSlice(scope, info)) return;
      if (this.scopes.holds(scope, info.process)) chosen.push({ column, weight: 1 });
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

  /**
   * Adds a column's self values, times a weight, to an entry a node; returns their sum without the weight.
   * @param {number} column
   * @param {number} weight
   * @param {Float64Array} self
   */
  addTo(column, weight, self) {
    let sum = 0;
    this.eachValue(column, (node, value) => {
      self[node] += value * weight;
      sum += value;
    });
    return sum;
  }

  /**
   * The category of each of the page's nodes in a column.
   * @param {number} column
   * @param {Shape} [tree] of whose nodes, if not of the page's
   */
  categoriesIn(column, tree = this.source) {
    const { columns, events } = this.page;
    return categoriesOf(tree, !ofMemory(events[columns[column].event].type), this.rootOf(column));
  }

  /**
   * The category of a column's threads.
   * @param {number} column
   */
  rootOf(column) {
    const { columns, threads } = this.page;
    const { thread } = columns[column];
    return thread === null ? categoryNumber("other") : categoryOfThreads(threads[thread]);
  }

  /**
   * The category of each node in columns of one event: where their threads differ, that of the threads with most of
   * what the node costs.
   * @param {Columns} columns one or more
   */
  categoriesAt(columns) {
    const [{ column: first }] = columns;
    /** Of threads of each category: what nodes cost with all below. @type {Map<number, {like: number, total: Float64Array}>} */
    const roots = new Map();
    if (new Set(columns.map(({ column }) => this.rootOf(column))).size === 1) return this.categoriesIn(first, this.tree);
    const { count, parent } = this.tree;
    for (const { column, weight } of columns) {
      const root = this.rootOf(column);
      const { total } = roots.get(root) ?? { total: new Float64Array(count) };
      roots.set(root, { like: column, total });
      this.eachValue(column, (node, value) => (total[node] += value * weight));
    }
    const of = this.categoriesIn(first, this.tree).slice();
    const most = new Float64Array(count);
    for (const { like, total } of roots.values()) {
      for (let node = count - 1; node > 0; node--) total[parent[node]] += total[node];
      const categories = this.categoriesIn(like, this.tree);
      for (let node = 0; node < count; node++) {
        if (total[node] <= most[node]) continue;
        most[node] = total[node];
        of[node] = categories[node];
      }
    }
    return of;
  }

  /**
   * Which of the page's nodes count in a column, by the category and the changes of stacks; null for all.
   * @param {number} column
   */
  chosenIn(column) {
    const { category } = this;
    const kept = this.changed?.kept;
    if (category < 0) return kept ? (/** @type {number} */ node) => kept[node] === 1 : null;
    const of = this.categoriesIn(column);
    if (kept) return (/** @type {number} */ node) => of[node] === category && kept[node] === 1;
    return (/** @type {number} */ node) => of[node] === category;
  }

  /**
   * Calls `entry` for each of the page's nodes that counts and has a value in the column, in their order. For a part of
   * the recording in any order, and perhaps several times, unless that is asked for.
   * @param {number} column
   * @param {boolean} inOrder
   * @param {(node: number, value: number) => void} entry
   */
  eachSource(column, inOrder, entry) {
    const { selection, times } = this;
    const chosen = this.chosenIn(column);
    const wanted = chosen ? (/** @type {number} */ node, /** @type {number} */ value) => chosen(node) && entry(node, value) : entry;
    if (!selection) this.source.eachEntry(column, wanted);
    else if (inOrder) times.eachEntry(column, selection, wanted);
    else times.of(column)?.eachRow(selection, wanted);
  }

  /**
   * Columns' costs by number of category.
   * @param {Columns} columns
   */
  workOf(columns) {
    const all = new Float64Array(categoryCount());
    for (const { column, weight } of columns) {
      let work = this.work.get(column);
      if (!work) {
        const [sums, of] = [new Float64Array(all.length), this.categoriesIn(column)];
        this.eachSource(column, false, (node, value) => (sums[of[node]] += value));
        this.work.set(column, (work = sums));
      }
      for (let category = 0; category < all.length; category++) all[category] += work[category] * weight;
    }
    return all;
  }

  /**
   * Calls `entry` for each node that the column has a value of, in their order.
   * @param {number} column
   * @param {(node: number, value: number) => void} entry
   */
  eachEntry(column, entry) {
    if (!this.changed?.place) return this.eachSource(column, true, entry);
    this.times.inOrder(this.tree.count, (add) => this.eachValue(column, add), entry);
  }

  /**
   * Calls `entry` for each value of the column: in any order, and perhaps several of a node.
   * @param {number} column
   * @param {(node: number, value: number) => void} entry
   */
  eachValue(column, entry) {
    const place = this.changed?.place;
    this.eachSource(column, false, place ? (node, value) => entry(place[node], value) : entry);
  }

  /** @param {number} column */
  sumOf(column) {
    if (Number.isNaN(this.sums[column])) {
      let sum = 0;
      const all = this.category < 0 && !this.changed?.kept;
      if (this.selection && all) sum = this.times.sumOf(column, this.selection);
      else this.eachSource(column, false, (_, value) => (sum += value));
      this.sums[column] = sum;
    }
    return this.sums[column];
  }

  /**
   * The total of a scope, and how many of its hosts have samples.
   * @param {Scope} scope
   * @param {number} event
   * @param {number} [thread] -1 for all
   * @returns {{amount: number, hosts: number}}
   */
  amounts(scope, event, thread = -1) {
    const sums = this.processSums(event, scope.kind === "thread" ? scope.index : thread, scope);
    const busy = new Set();
    let all = 0;
    // A plain loop: a callback would allocate each number, and lists need this of every scope.
    for (let process = 0; process < sums.length; process++) {
      if (sums[process] === 0 || !this.scopes.holds(scope, process)) continue;
      all += sums[process];
      busy.add(this.page.processes[process].host);
    }
    const hosts = this.whole ? this.whole.amounts(scope, event, thread).hosts : busy.size;
    return { amount: scope.kind === "mean" ? all / Math.max(1, hosts) : all, hosts: busy.size };
  }

  /**
   * The total of each process.
   * @param {number} event
   * @param {number} thread -1 for all
   * @param {Scope} scope only its stage, if it is of one
   */
  processSums(event, thread, scope) {
    const stage = scope.kind === "slice" || scope.of?.kind === "slice" ? scope.key : "";
    const key = `${event} ${thread} ${stage}`;
    let sums = this.processes.get(key);
    if (!sums) {
      this.processes.set(key, (sums = new Float64Array(this.page.processes.length)));
      for (const [column, info] of this.page.columns.entries()) {
        const meant = info.event === event && (thread < 0 || info.thread === thread) && this.scopes.ofSlice(scope, info);
        if (meant) sums[info.process] += this.sumOf(column);
      }
    }
    return sums;
  }

  /**
   * What of a stage belongs to it for certain.
   * @param {Scope} scope
   * @param {number} event
   * @param {number} thread -1 for all
   */
  certainOf(scope, event, thread) {
    const { columns, slices } = this.page;
    const certain = this.columns(scope, event, thread).filter(({ column }) => {
      const { slice } = columns[column];
      return slice !== null && slices[slice].certain;
    });
    return certain.reduce((sum, { column }) => sum + this.sumOf(column), 0);
  }

  /**
   * The tree with the numbers of a scope; the same profile for the same scope.
   * @param {Scope} scope
   * @param {number} event
   * @param {number} thread -1 for all
   * @returns {ScopeProfile}
   */
  profileOf(scope, event, thread = -1) {
    const key = `${event} ${thread} ${scope.key}`;
    const known = this.profiles.get(key);
    if (known) return known;
    const info = this.eventInfo(event);
    const fill = (/** @type {Float64Array} */ self) => {
      if (scope.of && this.subtract(scope.run, scope.of, event, thread, self)) return;
      for (const { column, weight } of this.columns(scope, event, thread)) {
        this.sums[column] = this.addTo(column, weight, self);
      }
      markClasses(this.tree.kind, self, info.type);
    };
    const profile = new ScopeProfile(this, info, fill, scope, event, thread);
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
    const [all, part] = [this.scopes.sumOfRun(run), of].map((scope) => {
      const profile = this.profiles.get(`${event} ${thread} ${scope.key}`);
      return profile ? this.pool.held(profile) : null;
    });
    // Parts of a recording may have fractions that add up to a whole number.
    if (!all || !part || this.selection || !Number.isSafeInteger(all.total[0])) return false;
    for (let node = 0; node < self.length; node++) self[node] = all.self[node] - part.self[node];
    return true;
  }
}

/** The page's tree with the numbers of a scope, whose threads are known. */
class ScopeProfile extends PooledProfile {
  /**
   * @param {Numbers} numbers
   * @param {EventInfo} info
   * @param {(self: Float64Array) => void} fill
   * @param {Scope} scope
   * @param {number} event
   * @param {number} thread -1 for all
   */
  constructor(numbers, info, fill, scope, event, thread) {
    super(numbers.tree, info, numbers.pool, fill, scope.kind === "sum" || scope.kind === "mean");
    this.columns = () => numbers.columns(scope, event, thread);
    this.numbers = numbers;
    /** @type {Uint8Array | null} */
    this.found = null;
  }

  /** @override */
  get categories() {
    if (this.found) return this.found;
    const columns = this.columns();
    return (this.found = columns.length ? this.numbers.categoriesAt(columns) : super.categories);
  }

  /** @override */
  get work() {
    return this.numbers.workOf(this.columns());
  }
}
