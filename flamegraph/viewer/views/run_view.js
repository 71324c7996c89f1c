// @ts-check
/** How the run was made, and its ledger: what happened to each host and process, and what it took. */

import { filled, make, staticTable } from "../controls/dom.js";
import { grouped } from "../data/format.js";
import { Sections } from "./sections.js";

/** @import { Context, View } from "../controls/context.js" */
/** @import { Folds } from "../controls/tabs.js" */
/** @import { Ledger, LedgerLine, Run } from "../data/page.js" */

/** More notes than this are folded away: they repeat the same for many processes. */
const NOTES_SHOWN = 20;

/** @implements {View} */
export class RunView {
  /**
   * @param {Context} context
   * @param {HTMLElement} panel
   */
  constructor({ page, folds }, panel) {
    this.sections = new Sections(page.run?.seen ?? [], () => null);
    if (page.run) panel.append(runSection(page.run, folds, this.sections));
  }

  /** It changes only as it is laid out for paper. */
  update() {
    this.sections.lay();
  }
}

/**
 * @param {Run} run
 * @param {Folds} folds
 * @param {Sections} sections what part of the job was recorded
 */
export function runSection({ seen, ledger, facts }, folds, sections = new Sections(seen, () => null)) {
  const listed = make("dl", "facts");
  for (const [label, kind, lines] of facts) {
    const value = make("dd");
    lines.forEach((line, at) => {
      if (at) value.append(kind === "code" ? ", " : document.createElement("br"));
      value.append(kind === "code" ? make("code", "", line) : line);
    });
    listed.append(make("dt", "", label), value);
  }
  const how = filled("section", "", make("h2", "", "Run"), listed);
  how.id = "facts";
  const section = filled("section", "", sections.element, ledgerSection(ledger, folds), how);
  section.id = "run";
  return section;
}

/**
 * Shows failures and notes, and folds the rest.
 * @param {Ledger} ledger
 * @param {Folds} folds
 */
function ledgerSection({ samples, all_well, fine, lines }, folds) {
  const trouble = lines.filter(({ status }) => status === "failed" || status === "degraded");
  const notes = lines.filter(({ status, reason }) => status === "ok" && reason);
  const rest = lines.filter((line) => !trouble.includes(line) && !notes.includes(line));
  const section = filled("section", "", make("h2", "", "Outcomes"));
  section.id = "ledger";
  const noted = notes.length === 1 ? "1 note" : `${grouped(notes.length)} notes`;
  const numbers = [...(samples ? ["Expected", "Taken", "Lost"] : []), "Attached", "Sent"];
  /** @type {[string, string][]} */
  const heads = [
    ...["State", "Host", "Process", "Recorded with"].map((head) => /** @type {[string, string]} */ ([head, ""])),
    ...numbers.map((head) => /** @type {[string, string]} */ ([head, "number"])),
    ["Details", ""],
  ];
  const table = (/** @type {LedgerLine[]} */ rows) => staticTable("ledger", heads, rows.map((line) => ledgerRow(line, samples)));
  if (trouble.length) section.append(table(trouble));
  else section.append(make("p", "lead", `${all_well}${notes.length ? `, with ${noted}` : ""}.`));
  const folded = (/** @type {string} */ name, /** @type {string} */ summary, /** @type {LedgerLine[]} */ rows, open = false) => {
    if (rows.length === 0) return;
    const details = document.createElement("details");
    details.open = open;
    details.append(make("summary", "", summary), table(rows));
    folds.add(name, details);
    section.append(details);
  };
  folded("notes", noted, notes, notes.length <= NOTES_SHOWN);
  const more = `${trouble.length || notes.length ? "more " : ""}line${rest.length === 1 ? "" : "s"}`;
  folded("rest", `${grouped(rest.length)} ${more} of ${fine}`, rest);
  return section;
}

/**
 * @param {LedgerLine} line
 * @param {boolean} samples whether there are columns for expected, taken and lost ones
 */
function ledgerRow(line, samples) {
  const state = filled("td", "", make("span", `state ${line.status}`, line.status));
  if (line.stage) state.append(" ", make("span", "soft", `at ${line.stage}`));
  const process = make("td");
  if (line.process) process.append(make("bdi", "", line.process));
  if (line.pid !== null) process.append(" ", make("span", "soft", `pid ${line.pid}`));
  const used = line.used.flatMap((one, at) => [...(at ? [document.createElement("br")] : []), one]);
  const counts = samples ? line.samples?.map(grouped) ?? ["", "", ""] : [];
  const words = make("td", "words", line.reason);
  if (line.remedy) words.append(make("div", "remedy", line.remedy));
  if (line.took) words.append(make("div", "took", line.took));
  return [
    state, filled("td", "", make("bdi", "", line.host)), process, filled("td", "", ...used),
    ...[...counts, line.attached, line.sent].map((text) => make("td", "number", text)), words,
  ];
}
