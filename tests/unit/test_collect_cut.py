"""Agents whose output ends at any byte: the host is told as lost, at the stage it had come to; no other."""

from __future__ import annotations

from hprofiler.collect import comeback, fetching
from hprofiler.model import Status
from tests.unit.stand_in import Fleet

GOOD = """
hello(); found(7); prepared(7); recording(7)
profile(7, b"p" * 300000); outcome(7); say("done", left=[]); read()
"""
CUT = """
left = {size}
def out(data):
    global left
    stdout.write(data[:left]); stdout.flush()
    left -= len(data)
    if left <= 0:
        os._exit(0)
"""
SIZES = [0, 1, 40, 200, 270, 300, 420, 500, 560, 600, 640, 720, 800, 900, 1100, 100_000, 300_900, 301_080]
"""Bytes that come: of the greeting, of each event's line, of a payload, and of what follows it."""
STAGES = {"connect", "find", "push", "prepare", "start", "record", "fetch"}


def test_wherever_the_output_ends(stand_ins, monkeypatch):
    monkeypatch.setattr(comeback, "LEASE_SECONDS", 1.0)
    bodies = {f"after-{size}": CUT.format(size=size) + GOOD for size in SIZES}
    results = Fleet(stand_ins, 60.0, {"good": GOOD, **bodies}).collect()
    assert [line.status for line in results.pop("good").outcomes] == [Status.OK]
    stages = set()
    for name, result in results.items():
        (line,) = [line for line in result.outcomes if line.pid is None]
        assert line.status is Status.FAILED and line.reason, (name, line)
        stages.add(line.stage)
        assert [line.status for line in result.outcomes if line.pid == 7 and line.lost] in (
            [],
            [Status.FAILED],
        )
    assert stages <= STAGES and {"connect", "find", "prepare", "record", "fetch"} <= stages, stages


CLAIMS = "hello(); found(7); prepared(7); recording(7)\nprofile(7, b'x' * 3000, size=1 << 29)\n"


SLOW = {"mute": "time.sleep(600)", "drips": "while True: out(b'x'); time.sleep(0.1)"}


def test_who_claims_much_and_sends_little_is_waited_for_as_long_as_a_part_may_take(
    stand_ins, limits, monkeypatch
):
    """A byte now and then gives it no more time."""
    monkeypatch.setattr(fetching, "PART", 1000)
    monkeypatch.setattr(fetching, "SLOWEST", 100)
    fleet = Fleet(stand_ins, 60.0, {name: CLAIMS + then for name, then in SLOW.items()})
    sizes, next_at = dict.fromkeys(SLOW, 0), [3000]

    def keep(host, recording, pieces, queue):
        for piece in pieces:
            sizes[host.name] += len(piece)
            if sizes["mute"] == 3000 and sizes["drips"] >= next_at[0]:
                next_at[0] = sizes["drips"] + 1
                limits.pass_time(36)
        return {}

    fleet.sink.profile = keep
    results = fleet.collect()
    for name in SLOW:
        (line,) = [line for line in results[name].outcomes if line.pid is None]
        assert (line.status, line.stage) == (Status.FAILED, "fetch")
        assert line.reason.startswith("timed out after 70 s")
