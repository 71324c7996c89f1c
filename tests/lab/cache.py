"""Where the lab keeps what it fetched or built: outside the checkout, shared by all runs."""

from __future__ import annotations

import os
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]


def folder(name: str) -> Path:
    """`${XDG_CACHE_HOME:-~/.cache}/hprofiler/lab/NAME`, made if missing."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    path = base / "hprofiler" / "lab" / name
    path.mkdir(parents=True, exist_ok=True)
    return path
