"""The page inside a notebook: an iframe without an address or rights of its own."""

from __future__ import annotations

from pathlib import Path

import hprofiler
from tests.viewer.browser import Viewer


def test_the_page_inside_a_notebook(viewer: Viewer, spark_page: Path, tmp_path: Path) -> None:
    outer = tmp_path / "notebook.html"
    outer.write_text(f"<!doctype html>{hprofiler.Run.open(spark_page.parent)._repr_html_()}")
    viewer.driver.get(outer.as_uri())
    viewer.driver.switch_to.frame(0)
    try:
        viewer.until("return document.documentElement.dataset.ready === 'true'")
        viewer.element("view-methods").click()
        viewer.until("return !document.getElementById('methods-panel').hidden")
        viewer.driver.execute_script("history.back()")
        viewer.until("return document.getElementById('methods-panel').hidden")
        assert viewer.driver.execute_script("return origin") == "null"
    finally:
        viewer.driver.switch_to.default_content()
