"""What hosts may do that nobody's agent would: stand-ins by name, with what a run has to say of each.

What single events and profiles of a host may hold is tested in tests/unit (test_agent_wire, test_sink).
"""

from __future__ import annotations

from typing import NamedTuple

NASTY = (
    "</script><script>alert(7)</script><img src=x onerror=alert(7)>"
    "\\x1b[2J\\x1b]0;owned\\x07\\u202e\\x9b31m\\r\\n../../../owned"
)
"""In a stand-in's source: what would break out of a page, a terminal and a folder."""
_TO_FIND = "hello(); read(); "
TO_RECORD = "hello(); found(7); prepared(7); recording(7); "
_SENDS = TO_RECORD + "profile(7, open(FOLDER + '/{}', 'rb').read()); outcome(7); say('done', left=[]); read()"
_NAMES = f"N = '{NASTY}'\n"


class Hostile(NamedTuple):
    """A stand-in's body, and words of what the ledger says of its host."""

    body: str
    says: str


ALL: dict[str, Hostile] = {
    # without end
    "flood_line": Hostile("read()\nwhile True: out(b'x' * 65536)", "more than 16777216 bytes"),
    "flood_noise": Hostile("while True: out(b'[' * 65536)", "more than 16777216 bytes"),
    "flood_stderr": Hostile("sys.stdout.flush()\nwhile True: os.write(2, b'\\x1b[2Jy' * 10000)", "timed out"),
    "flood_outcomes": Hostile(
        TO_RECORD + "\nwhile True: outcome(None, 'failed', reason='z' * 4000)", "too many events"
    ),
    "flood_events": Hostile(
        TO_RECORD + "\nwhile True: say('started', pid=7, engine='perf', sources={'cpu': 'x'})",
        "too many events",
    ),
    "flood_profiles": Hostile(TO_RECORD + "\nwhile True: profile(7, b'x' * 1000000)", "came twice"),
    "flood_prepare": Hostile(
        "hello(); found(7); read()\nwhile True: outcome(None, 'failed')",
        "too many outcomes",
    ),
    # what cannot be true
    "garbage": Hostile(_TO_FIND + "out(os.urandom(1 << 20)); read()", "not a JSON|protocol"),
    "version": Hostile("hello(protocol=99); read()", "another version"),
    "claims_payload": Hostile(TO_RECORD + "profile(7, b'x', size=1 << 62); read()", "protocol"),
    "claims_much": Hostile(TO_RECORD + "profile(7, b'x', size=512 << 20)\nwhile True: read()", "timed out"),
    "trickles": Hostile(
        TO_RECORD + "profile(7, b'', size=1 << 20)\nwhile True: out(b'x'); time.sleep(0.2)", "timed out"
    ),
    "nested": Hostile(_TO_FIND + "out(b'{\"type\":' * 300000 + b'\\n'); read()", "not a JSON"),
    # small profiles that ask for much
    "zeros": Hostile(_SENDS.format("zeros"), "cannot be read"),
    "claims_names": Hostile(_SENDS.format("claims_names"), "cannot be read"),
    "huge": Hostile(_SENDS.format("huge"), "is impossible"),
    # texts that a terminal or a page might obey
    "words": Hostile(
        _NAMES
        + """
hello(version=N, host={**HOST, **dict.fromkeys(("name", "kernel", "user", "boot_id"), N)})
read()
say("found", searched=9, ignored=[{"pid": 9, "reason": N}], processes=[process(7, label=N, main_class=N,
    command=N, user=N, labels={N: N, "../../owned": "../../owned"}, jvm={"version": N})])
prepared(7); read()
say("started", pid=7, engine="async-profiler", sources={"cpu": N})
say("recording", processes=1)
profile(7, open(FOLDER + "/nasty", "rb").read(), source=N, seconds=1)
outcome(7, "degraded", "record", N + "x" * 4000, N)
say("done", left=[N, "/" + "../" * 1000 + "etc/passwd"]); sys.stderr.write(N); read()
""",
        "left behind",
    ),
    "error": Hostile(_NAMES + "read(); say('error', reason=N, remedy=N); sys.stderr.write(N)", r"alert\(7\)"),
    "stderr": Hostile(_NAMES + "read(); sys.stderr.write(N); sys.stderr.flush(); sys.exit(9)", "status 9"),
}
