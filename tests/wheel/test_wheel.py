"""The wheel of `make dist`, installed in an empty environment, profiles a job."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.nightly


def test_the_demo_runs(tmp_path: Path) -> None:
    (wheel,) = (ROOT / "dist").glob(f"hprofiler-*manylinux2014_{platform.machine()}*.whl")
    # Neither PYTHONPATH nor the working directory may offer the checkout's package.
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment, results = tmp_path / "environment", tmp_path / "results"
    subprocess.run([sys.executable, "-m", "venv", str(environment)], env=variables, check=True)
    pip = [str(environment / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, "--disable-pip-version-check", str(wheel)], env=variables, cwd=tmp_path, check=True)
    demo = [str(environment / "bin" / "hprofiler"), "demo", "-o", str(results)]
    done = subprocess.run(demo, cwd=tmp_path, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "OrderParser.cleanField" in done.stdout
    assert (results / "report.html").stat().st_size > 100_000
