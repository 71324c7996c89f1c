"""axe-core, which finds faults of accessibility in a page: from npm into the cache, once."""

from __future__ import annotations

from selenium import webdriver

from tests.exact.peers import of_npm

VERSION = "4.14.1"
RUN = """const done = arguments[0];
axe.run(document, { resultTypes: ["violations"] }).then(
  ({ violations }) => done(violations.flatMap(({ id, impact, help, nodes }) => nodes.map((node) => (
    { impact: node.impact ?? impact, text: `${id} (${node.impact ?? impact}): ${help}: ${node.html}` })))),
  (error) => done([{ impact: "critical", text: String(error) }]));"""


def faults(driver: webdriver.Chrome) -> list[str]:
    """Serious and critical faults of the page."""
    if not driver.execute_script("return typeof axe === 'object'"):
        source = of_npm("axe-core", VERSION, "axe.min.js", "axe.min.js").read_text(encoding="utf-8")
        driver.execute_script(f"{source}\nwindow.axe = axe;")
    found = driver.execute_async_script(RUN)
    return [fault["text"] for fault in found if fault["impact"] in ("serious", "critical")]
