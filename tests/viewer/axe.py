"""axe-core, which finds faults of accessibility in a page: from npm into the cache, once."""

from __future__ import annotations

import os
import subprocess
import tarfile

from selenium import webdriver

from tests.exact.peers import cache, needs

VERSION = "4.14.1"
RUN = """const done = arguments[0];
axe.run(document, { resultTypes: ["violations"] }).then(
  ({ violations }) => done(violations.flatMap(({ id, impact, help, nodes }) => nodes.map((node) => (
    { impact: node.impact ?? impact, text: `${id} (${node.impact ?? impact}): ${help}: ${node.html}` })))),
  (error) => done([{ impact: "critical", text: String(error) }]));"""


def source() -> str:
    """The script of axe-core."""
    folder = cache(f"axe-core-{VERSION}")
    if not folder.exists():
        npm = [needs("npm"), "pack", "--silent", f"axe-core@{VERSION}"]
        partial = folder.with_name(f"{folder.name}.{os.getpid()}")
        partial.mkdir()
        packed = subprocess.run(npm, check=True, cwd=partial, stdout=subprocess.PIPE, text=True)
        with tarfile.open(partial / packed.stdout.split()[-1]) as package:
            script = package.extractfile("package/axe.min.js")
            assert script is not None
            (partial / "axe.min.js").write_bytes(script.read())
        partial.rename(folder)
    return (folder / "axe.min.js").read_text(encoding="utf-8")


def faults(driver: webdriver.Chrome) -> list[str]:
    """Serious and critical faults of the page."""
    if not driver.execute_script("return typeof axe === 'object'"):
        driver.execute_script(f"{source()}\nwindow.axe = axe;")
    found = driver.execute_async_script(RUN)
    return [fault["text"] for fault in found if fault["impact"] in ("serious", "critical")]
