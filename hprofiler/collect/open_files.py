"""How many files this process may have open: each host takes one, with a ProxyCommand three."""

from __future__ import annotations

import contextlib
import resource
import sys

# macOS lets no process have more (OPEN_MAX). Elsewhere a million may be allowed: there are programs, and we
# start some, that close every file they could have inherited.
_ENOUGH = 10_240 if sys.platform == "darwin" else 65_536


def allow_many() -> None:
    """Raise the soft limit towards the hard one, where it is lower than what very many hosts need."""
    with contextlib.suppress(ValueError, OSError):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = _ENOUGH if hard == resource.RLIM_INFINITY else min(hard, _ENOUGH)
        if soft != resource.RLIM_INFINITY and soft < most:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
