// @ts-check
/** The scope chooser: the cluster, its mean, each host. */

import { make, part } from "./dom.js";

/** @typedef {import("./data.js").Scope} Scope */

/**
 * @param {Scope[]} scopes
 * @param {(id: string) => void} chosen
 */
export function startScopes(scopes, chosen) {
  const select = part("scope", HTMLSelectElement);
  /** @type {Map<string, HTMLElement>} */
  const groups = new Map();
  for (const scope of scopes) {
    const group = groups.get(scope.group) ?? make("optgroup");
    group.setAttribute("label", scope.group);
    groups.set(scope.group, group);
    const option = new Option(scope.label, scope.id);
    option.title = scope.note;
    group.append(option);
  }
  select.replaceChildren(...groups.values());
  select.hidden = scopes.length < 2;
  select.addEventListener("change", () => chosen(select.value));
}

/** @param {Scope} scope */
export function showScope(scope) {
  part("scope", HTMLSelectElement).value = scope.id;
  part("scope-note", HTMLParagraphElement).textContent = scope.note;
}
