"""This machine: the target without a host option."""

from __future__ import annotations

import socket

from hprofiler.model import Host, Target
from hprofiler.resolve.options import Located, Resolver, TargetOptions


def _resolve(_options: TargetOptions) -> Located:
    name = socket.gethostname() or "localhost"
    return Located(Target("local", name), [Host(name, "localhost")])


RESOLVER = Resolver("no host option", lambda _options: True, _resolve)
