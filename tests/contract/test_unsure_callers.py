"""Callers of stubs and intrinsics in real JVMs: what is said of them, and what `diff` makes of two starts."""

from __future__ import annotations

import json

import pytest

from tests.burners import build
from tests.burners.burner import Program
from tests.contract import real
from tests.contract.test_commands import hprofiler

pytestmark = pytest.mark.skipif(bool(real.why_not()), reason=str(real.why_not()))
EXACT = ["-XX:+UnlockDiagnosticVMOptions", "-XX:+DebugNonSafepoints"]
STUBS = ("md5_implCompress", "arraycopy", "clock_gettime")


def start(keep_program, *options):
    """The program, once it is compiled."""
    words = ["env", f"CLASSPATH={build.classes()}", "java", "-Xmx64m", *options, "Callers"]
    return keep_program(Program(words))


def own_shares(event):
    """Each stub's part of the event."""
    shares = dict.fromkeys(STUBS, 0.0)
    for method in event["hottest"]:
        for stub in STUBS:
            if stub in method["method"]:
                shares[stub] += method["self"] / event["hottest_of"]
    return shares


def test_two_starts_do_not_differ_in_callers_that_are_not_known(keep_program, tmp_path):
    """With its debug information a JVM names the callers, without it others: nothing else differs."""
    events = {}
    for name, options in (("exact", EXACT), ("usual", [])):
        program, folder = start(keep_program, *options), tmp_path / name
        done = hprofiler(
            "-f", "400", "-t", "4", "-j", f"pid:{program.pid}", "-o", folder, "--force-busy", "--json"
        )
        assert done.returncode == 0, done
        (events[name],) = json.loads(done.stdout)["events"]
        program.kill()
    assert events["exact"]["callers_unsure"] is None
    unsure = events["usual"]["callers_unsure"]
    assert unsure["processes"] == 1 and unsure["share"] > 0.7
    (caveat,) = [one for one in events["usual"]["findings"] if one["code"] == "callers-unsure"]
    assert EXACT[1] in caveat["text"]
    for stub, share in own_shares(events["exact"]).items():
        assert share > 0.05 and own_shares(events["usual"])[stub] == pytest.approx(share, abs=0.15), events
    done = hprofiler("diff", tmp_path / "exact", tmp_path / "usual", "--json", "--fail-over", "5%")
    found = json.loads(done.stdout)
    assert found["totals_unknown"] and "callers-unsure" in [one["code"] for one in found["findings"]]
    totals = [(one["method"], one["total"]) for one in found["methods"] if one["total"]]
    moved = [one for one in totals if one[1]["beyond"] and abs(one[1]["change"]) > 0.05]
    assert not moved, moved
