"""The keys of hosts."""

from __future__ import annotations

from pathlib import Path

from hprofiler.transport.ssh.known_hosts import KnownHosts, Verdict
from tests.fuzz.invariants import of_file, ours

_SOME_KEY = b"\0" * 32
_NAMES = ("host", "[host]:2222")


def known_hosts(data: bytes) -> None:
    """The keys that hosts have, and those that none may have."""

    def check(path: Path) -> None:
        before = [KnownHosts().check([path], name, _SOME_KEY)[0] for name in _NAMES]
        known = KnownHosts()
        for name in _NAMES:
            known.kinds([path], name)
        ours(lambda: known.revoked([path], _SOME_KEY))
        known.add(path, "another", "ssh-rsa", _SOME_KEY)
        now = KnownHosts()
        assert now.check([path], "another", _SOME_KEY)[0] in (Verdict.KNOWN, Verdict.REVOKED)
        assert before == [now.check([path], name, _SOME_KEY)[0] for name in _NAMES]

    of_file(data, check)
