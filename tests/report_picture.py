"""Writes docs/images/report.png and time.png: the page of a recording of the demo, and its heat map."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.viewer.browser import Viewer, chromium

IMAGES = Path(__file__).parents[1] / "docs" / "images"
DEMO = ("demo", "-t", "20", "-f", "300", "--json")
WIDTH, HEIGHT = 1280, 1500


def take(folder: Path) -> None:
    """Profile the demo below `folder`, and take the pictures of its page."""
    run = folder / "run"
    subprocess.run(
        [sys.executable, "-m", "hprofiler", *DEMO, "-o", str(run)], check=True, stdout=subprocess.DEVNULL
    )
    with chromium(folder / "chromium", WIDTH, HEIGHT) as driver:
        # The window's own size includes the browser's bars.
        size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        light = [{"name": "prefers-color-scheme", "value": "light"}]
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": light})
        viewer = Viewer(driver).open(run / "report.html")
        (IMAGES / "report.png").write_bytes(driver.get_screenshot_as_png())
        viewer.open(run / "report.html", "view=time&time=10.2-11.96")
        viewer.canvas = "time-graph-canvas"
        viewer.still()
        explorer = viewer.element("explorer")
        (IMAGES / "time.png").write_bytes(explorer.screenshot_as_png)


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        take(Path(folder))
