// @ts-check
/** What a scope can be compared with, and what it is compared with when nobody said. */

import { formatScope } from "./scopes.js";

/** @typedef {import("./combobox.js").Option} Option */
/** @typedef {import("./context.js").Context} Context */
/** @typedef {import("./scopes.js").Scope} Scope */
/** @typedef {{one: Scope, another: Scope}} Pair what is compared, and with what */

/**
 * @param {Context} context
 * @param {Scope} scope what is compared
 * @returns {Option[]}
 */
export function othersOf({ page, scopes, event, thread }, scope) {
  const known = scopes.threadsOf(event);
  const threads = known.length < 2 ? [] : page.runs.flatMap((_, run) => known.map((one) => scopes.parse(`${run}/thread:${one}`)));
  return [scopes.restOf(scope), ...scopes.all(), ...threads]
    .filter((one) => one !== null)
    .filter((one) => one.key !== scope.key && scopes.has(one, event, thread))
    .map(({ key, label, section }) => ({ id: key, label, section: section || page.title }));
}

/**
 * The scope with the same of the other run; a part of the cluster with the rest; for the cluster the host that is least
 * like the others with them.
 * @param {Context} context
 * @returns {Pair | null} null where there is nothing to compare with
 */
export function likelyPair(context) {
  const { page, scopes, scope } = context;
  if (page.runs.length > 1) return pairOf(scope, counterpart(context));
  if (scope.kind !== "sum" && scope.kind !== "mean") {
    return pairOf(scope, scopes.restOf(scope) ?? scope.of ?? scopes.sumOfRun(scope.run));
  }
  const part = scopes.parse(scopes.hostsOf(scope.run) > 1 ? `host:${leastAlike(context)}` : "process:0");
  return pairOf(part, scopes.restOf(part));
}

/**
 * @param {Scope | null} one
 * @param {Scope | null} another
 * @returns {Pair | null}
 */
function pairOf(one, another) {
  return one && another && one.key !== another.key ? { one, another } : null;
}

/**
 * The same of the other run: by name, or else all of it.
 * @param {Context} context
 */
function counterpart({ page, scopes, scope }) {
  const run = scope.run ? 0 : 1;
  const name = scope.kind === "host" ? page.hosts[scope.index].name : null;
  const host = page.hosts.findIndex((one) => one.run === run && one.name === name);
  const same = host >= 0 ? `host:${host}` : formatScope({ ...scope, run });
  const alike = host >= 0 || !["host", "process", "rest"].includes(scope.kind);
  return (alike ? scopes.parse(same) : null) ?? scopes.parse(run ? "1/sum" : "sum");
}

/** @param {Context} context */
function leastAlike({ page, event }) {
  const ranked = (page.hosts_by_event[event] ?? []).filter((one) => one.taken > 0);
  const far = (/** @type {typeof ranked[number]} */ one) => (one.outlier ? 1e6 : 0) + one.distance / (one.noise || 1);
  return ranked.reduce((most, one) => (far(one) > far(most) ? one : most), ranked[0])?.host ?? 0;
}
