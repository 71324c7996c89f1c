"""What the threads of processes do, as the agent has it of JVMs, of Python and of the kernel."""

from __future__ import annotations

import re
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.contract.agent_driver import WORK, Dumped, ready, running
from tests.contract.conftest import still
from tests.lab import attach, jdks, procs

NO_ATTACH = "-XX:+DisableAttachMechanism"
OWNED = "Locked ownable synchronizers"
DUMP = "Full thread dump"
ASLEEP = "import sys, threading\ndef nap():\n    print('ready', flush=True)\n    sys.stdin.read()\nnap()\n"


def nids(text: str) -> dict[int, str]:
    """The names of a dump's threads by their numbers, which JVMs before 22 or so write in base 16."""
    found = re.findall(r'^"(.*?)" .*\bnid=(0x[0-9a-f]+|\d+) ', text, re.MULTILINE)
    return {int(number, 0): name for name, number in found}


def assert_complete(dumped: Dumped) -> None:
    """A JVM's own text from its first line to its last, and the CPU time of each thread in it."""
    assert dumped.head and dumped.head["kind"] == "jvm" and dumped.code == ("ok", "dumped"), dumped.outcome
    assert DUMP in dumped.text[:200] and "JNI global ref" in dumped.text.strip().splitlines()[-1]
    assert abs(dumped.head["time"] - time.time()) < procs.PATIENCE and dumped.head["seconds"] < 10
    assert set(nids(dumped.text)) <= set(dumped.cpu), dumped.text


@pytest.mark.parametrize("jdk", jdks.VERSIONS)
def test_a_jvm_prints_its_threads_and_loads_nothing(agent, burn, jdk):
    burner = burn(jdk=jdk)
    maps = Path(f"/proc/{burner.outer.pid}/maps")
    before = {line.split()[-1] for line in maps.read_text().splitlines() if "/" in line}
    dumped = agent.dump(burner)
    assert_complete(dumped)
    assert OWNED not in dumped.text
    main = next(number for number, name in nids(dumped.text).items() if name == "main")
    assert dumped.cpu[main] > 0 and "Burner" in dumped.text
    after = {line.split()[-1] for line in maps.read_text().splitlines() if "/" in line}
    assert not [name for name in after - before if ".so" in name] and not attach.profiler_libraries(
        burner.outer.pid
    )
    assert OWNED in agent.dump(burner, owners=True).text
    assert burner.burn(1e8).nanos > 0


def test_the_numbers_of_threads_are_those_that_a_container_sees(agent, burn_contained):
    burner = burn_contained()
    dumped = agent.dump(burner)
    assert_complete(dumped)
    assert burner.pid in dumped.cpu and burner.outer.pid not in dumped.cpu


def test_a_thousand_threads(agent, burn):
    burner = burn(main="Crowd", options=["-Dcrowd=1000"])
    dumped = agent.dump(burner)
    assert_complete(dumped)
    crowd = [name for name in nids(dumped.text).values() if name.startswith("crowd-")]
    assert len(crowd) == 1000 and dumped.text.count("at Crowd.waitForEver(") == 1000


def test_a_jvm_that_takes_no_commands(agent, burn):
    closed, other = burn(options=[NO_ATTACH]), burn(load=0.2)
    agent.begin_dump(closed, other)
    dumped = agent.dumped()
    assert_complete(dumped[other.outer.pid])
    refused = dumped[closed.outer.pid]
    assert refused.code == ("degraded", "attach-disabled") and NO_ATTACH in refused.outcome["reason"]
    assert_native(refused, "java")
    closed.finish()
    assert DUMP not in "\n".join(closed.other_lines)


def test_a_stopped_jvm(agent, burn):
    burner = burn()
    burner.outer.suspend()
    dumped = agent.dump(burner)
    burner.outer.kill(signal.SIGCONT)
    assert dumped.code == ("degraded", "process-stopped") and "kill -CONT" in dumped.outcome["remedy"]
    assert_native(dumped, "java", state="T")
    assert burner.counters().nanos > 0
    assert_complete(agent.dump(burner))


def test_a_jvm_whose_safepoint_does_not_come(agent, burn):
    """The kernel's account says which thread is held, and which ran meanwhile."""
    burner = burn()
    assert_complete(agent.dump(burner))
    with still(burner.outer.pid, "VM Thread"):
        dumped = agent.dump(burner)
    assert dumped.code == ("degraded", "attach-timeout"), dumped.outcome
    assert "VM Thread" in dumped.outcome["reason"] and "stopped by a debugger" in dumped.outcome["reason"]
    assert_native(dumped, "VM Thread", state="t")
    procs.wait_for("the JVM", lambda: agent.dump(burner).code == ("ok", "dumped"))


def test_a_jvm_that_is_recorded(new_agent, burn):
    burner, recording, dumping = burn(), new_agent(), new_agent()
    recording.begin(burner, duration=60)
    assert_complete(dumping.dump(burner))
    burner.burn(WORK)
    assert recording.stop().of(burner).is_good()


def test_a_python_process_that_is_asleep(agent):
    with ready([sys.executable, "-c", ASLEEP]) as process:
        dumped = agent.dump(of(process.pid))
    assert dumped.code == ("ok", "dumped") and dumped.head["kind"] == "python", dumped.outcome
    assert dumped.text.startswith(f"Process {process.pid}: {sys.executable} -c import sys")
    assert f'Thread {process.pid} (idle): "MainThread"\n    nap (<string>:4)\n' in dumped.text
    assert "<module> (<string>:5)\n" in dumped.text and process.pid in dumped.cpu


def test_a_process_of_which_only_the_kernel_says_something(agent):
    with running("sleep", "600") as sleeper:
        procs.wait_for("sleep", lambda: procs.name(sleeper.pid) == "sleep")
        dumped = agent.dump(of(sleeper.pid))
    assert dumped.code == ("ok", "dumped")
    assert_native(dumped, "sleep")
    assert "\tat syscall clock_nanosleep\n" in dumped.text, dumped.text


def test_a_process_that_has_ended(agent, untouched):
    found = agent.found(untouched)[0]
    dumped = agent.dump({**found, "start_time": found["start_time"] - 1})
    assert dumped.code == ("failed", "process-ended") and dumped.head is None


def test_a_dump_that_is_ended_leaves_no_trigger(new_agent, burn):
    """It is asked whose signals nobody handles: so the file that says what its signal means has to stay."""
    burner, agent = burn(), new_agent()
    trigger = Path(f"/tmp/.attach_pid{burner.outer.pid}")
    with still(burner.outer.pid, "Signal Dispatch"):
        agent.begin_dump(burner)
        procs.wait_for("the request", trigger.exists)
        agent.send("stop")
        agent.close_stdin()
        procs.wait_for("the end of the output", lambda: agent.next()[0]["type"] == "(end of output)")
        assert trigger.exists()
    procs.wait_for("the end of the trigger", lambda: not trigger.exists())
    assert agent.wait() == 0
    burner.finish()
    assert DUMP not in "\n".join(burner.other_lines)


@pytest.mark.nightly
def test_a_large_heap_is_searched_only_for_owners(agent, burn, tmp_path):
    log = tmp_path / "safepoints"
    logged = [f"-Xlog:safepoint=info:file={log}", "-Xmx3g", "-Xms3g"]
    burner = burn(jdk=17, main="Crowd", options=["-Dmegabytes=1000", *logged])

    def longest(owners: bool) -> float:
        """Milliseconds at the longest safepoint of five dumps."""
        before = len(log.read_text())
        for _ in range(5):
            assert_complete(agent.dump(burner, owners=owners))
        lines = [line for line in log.read_text()[before:].splitlines() if '"PrintThreads' in line]
        times = [int(one) / 1e6 for line in lines for one in re.findall(r"At safepoint: +(\d+) ns", line)]
        assert len(times) >= 5, log.read_text()[before:]
        return max(times)

    without = longest(False)
    assert without < 10, without
    assert longest(True) > 10 * without


def assert_native(dumped: Dumped, name: str, state: str = "[RSD]") -> None:
    assert dumped.head and dumped.head["kind"] == "native", dumped.outcome
    assert re.search(rf'^"{name}" nid=\d+ {state}$', dumped.text, re.MULTILINE), dumped.text


def of(pid: int) -> dict[str, int]:
    identity = procs.Identity.of(pid)
    assert identity
    return {"pid": pid, "start_time": identity.start_time}
