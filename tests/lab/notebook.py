"""Notebooks of tests: cells that run in a kernel of their own, and what they show.

python -m tests.lab.notebook FILE       runs a notebook, and writes its output into it
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

_SECONDS = 240


def execute(
    file: Path,
    cells: Sequence[str],
    environment: Mapping[str, str],
    wrap: Callable[[list[str]], list[str]] = lambda command: command,
) -> list[list[dict[str, Any]]]:
    """Run the cells in the file's folder; the output of each. An error in a cell fails the test."""
    nbformat.write(nbformat.v4.new_notebook(cells=list(map(nbformat.v4.new_code_cell, cells))), file)
    command = wrap([sys.executable, "-m", "tests.lab.notebook", str(file)])
    done = subprocess.run(
        command,
        env=dict(environment),
        cwd=file.parent,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]
    return [cell.outputs for cell in nbformat.read(file, 4).cells]


def texts(outputs: Sequence[Mapping[str, Any]], kind: str) -> list[str]:
    """What was shown of a kind, such as `text/html`."""
    return [output["data"][kind] for output in outputs if kind in output.get("data", {})]


if __name__ == "__main__":
    notebook = nbformat.read(sys.argv[1], 4)
    NotebookClient(notebook, timeout=_SECONDS, kernel_name="python3").execute()
    nbformat.write(notebook, sys.argv[1])
