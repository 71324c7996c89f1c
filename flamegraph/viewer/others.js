// @ts-check
/** What a scope can be compared with, and what it is compared with when nobody said. */

/** @typedef {import("./combobox.js").Option} Option */
/** @typedef {import("./context.js").Context} Context */
/** @typedef {import("./scopes.js").Scope} Scope */

/**
 * @param {Context} context
 * @returns {Option[]}
 */
export function othersOf(context) {
  const { page, scopes, scope, event } = context;
  const keys = scope.kind === "host" && scopes.hostsOf(scope.run) > 1 ? [`rest:${scope.index}`] : [];
  const threads = scopes.threadsOf(event).map((thread) => `thread:${thread}`);
  const named = [...keys, ...(threads.length > 1 ? threads : [])].map((key) => scopes.parse(key));
  return [...named.slice(0, keys.length), ...scopes.all(), ...named.slice(keys.length)]
    .filter((one) => one !== null && one.key !== scope.key)
    .map((one) => /** @type {Scope} */ (one))
    .map(({ key, label, section }) => ({ id: key, label, section: section || page.title }));
}

/**
 * The same of the other run; the rest of the cluster for a host; for the cluster the host that is least like it.
 * @param {Context} context
 * @returns {Scope | null}
 */
export function likelyOther(context) {
  const { page, scopes, scope } = context;
  const several = scopes.hostsOf(scope.run) > 1;
  const whole = scope.run ? `${scope.run}/sum` : "sum";
  if (page.runs.length > 1) return scopes.parse(scope.run ? "sum" : "1/sum");
  if (scope.kind === "host" && several) return scopes.parse(`rest:${scope.index}`);
  if (scope.kind !== "sum" && scope.kind !== "mean") return scopes.parse(whole);
  if (several) return scopes.parse(`host:${leastAlike(context)}`);
  return page.processes.length > 1 ? scopes.parse("process:0") : null;
}

/** @param {Context} context */
function leastAlike({ page, event }) {
  const ranked = (page.hosts_by_event[event] ?? []).filter((one) => one.taken > 0);
  const far = (/** @type {typeof ranked[number]} */ one) => (one.outlier ? 1e6 : 0) + one.distance / (one.noise || 1);
  return ranked.reduce((most, one) => (far(one) > far(most) ? one : most), ranked[0])?.host ?? 0;
}
