"""The HTTP libraries of lightkube, whose names differ between its versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpcore2 as httpcore
    import httpx2 as httpx
else:
    try:
        import httpcore2 as httpcore
        import httpx2 as httpx
    except ImportError:
        import httpcore
        import httpx

__all__ = ["httpcore", "httpx"]
