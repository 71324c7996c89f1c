"""What no rule may say, and what none may fail by."""

from __future__ import annotations

import re

import pytest

from hprofiler._flamegraph import Profile
from hprofiler.report import findings as rooms
from hprofiler.report import make_report, write_page
from hprofiler.report.findings import plain_findings
from tests.unit.test_findings import JOB, of, run_of, texts
from tests.viewer.made_run import MadeHost, make_run

TLS = f"{JOB};sun/security/ssl/SSLSocketInputRecord.decode_[j]"


def test_kernel_code_whose_callers_were_pruned_is_told_alone(tmp_path, monkeypatch):
    monkeypatch.setattr("hprofiler.report.findings.walk._MOST_NODES", 2)
    stacks = "".join(f"a{n};b{n};__libc_read;vfs_read_[k] 30\n" for n in range(40))
    found = texts(of(run_of(tmp_path, f"{stacks}{JOB} 100\n")))
    assert any(text.startswith("Kernel code takes 92.3 % of CPU time") for text in found)


def test_a_rule_that_fails_costs_its_sentence_alone(tmp_path, monkeypatch):
    def fails(subject):
        raise IndexError

    monkeypatch.setattr(rooms, "RULES", (fails, *rooms.RULES))
    assert make_report(run_of(tmp_path, f"{JOB} 1000\n").path).events[0].findings


@pytest.mark.parametrize("event", ["wall", "offcpu"])
def test_time_that_waits_below_a_library_is_not_said_to_be_its_work(tmp_path, event):
    """Below the library a thread waits for the other end: it does not encrypt all the time."""
    waits = f"{TLS};sun/nio/ch/SocketDispatcher.read0_[0];__libc_read 6000000000\n{JOB} 4000000000\n"
    folder = make_run(tmp_path / "run", [MadeHost("h", events={event: {1: waits}})], events=(event,))
    run = folder.run
    run["hosts"][0]["recordings"][0]["samples"]["taken"] = 1000
    folder.write_run(run)
    assert not [text for text in texts(of(folder, event)) if "goes to" in text]
    busy = f"{TLS} 600\n{JOB} 400\n"
    assert [text for text in texts(of(run_of(tmp_path, busy))) if "goes to" in text or "encrypt" in text]


def test_idle_threads_are_left_out_and_that_is_told_with_how_many_they_are(tmp_path):
    """Two processes are recorded, each with eight threads of a pool and one that waits for others."""
    getting = "java/util/concurrent/ThreadPoolExecutor.getTask_[j];jdk/internal/misc/Unsafe.park_[0]"
    stacks = f"{JOB};java/net/Socket.read_[j] 60000000000\n{getting} 480000000000\n"
    host = MadeHost("h", events={"wall": {1: stacks, 2: stacks}})
    folder = make_run(tmp_path / "run", [host], events=("wall",))
    answer, *others = texts(of(folder, "wall"))
    assert answer == "100 % of wall-clock time besides idle threads is spent in Job.run."
    assert "Idle threads, 88.9 % of wall-clock time, are left out: about 16 of 18 threads." in others
    (event,) = make_report(folder.path).events
    assert (event.hottest[0].name, event.telling) == ("com/acme/Job.run", 120_000_000_000)
    assert event.total == 1_080_000_000_000


def test_one_busy_process_among_idle_ones_is_no_idle_job(tmp_path):
    def idle(*samples):
        name = tmp_path / "-".join(map(str, samples))
        folder = make_run(name, [MadeHost("h", {pid: f"{JOB} {n}\n" for pid, n in enumerate(samples, 1)})])
        return [text for text in texts(of(folder)) if text.startswith("Mostly idle")]

    assert idle(90, 90, 90, 1) == [
        "Mostly idle: 4 processes used 0.0038 CPUs on average. What they wait for: -e offcpu."
    ]
    assert not idle(18_000, *[1] * 30), "one process used a whole CPU"


def test_who_is_missing_has_a_reason_were_it_a_note(tmp_path):
    host = MadeHost("h", {1: f"{JOB} 90000\n"})
    host.fails("degraded", "it ended before it was recorded", pid=2).fails("degraded", "a note", pid=1)
    assert "1 of 2 processes is missing here: it ended before it was recorded." in texts(
        of(make_run(tmp_path / "run", [host]))
    )


def test_what_is_one_reason_is_counted_once(tmp_path):
    """A host's own reason is that of the processes that were lost with it; pids make no other reason."""
    lost = MadeHost("n1").fails("failed", "the agent was ended by a signal")
    lost.fails("failed", "lost with its host: the agent was ended by a signal", pid=7)
    refused = MadeHost("n2", {1: f"{JOB} 90000\n"})
    for pid in (502, 535):
        refused.fails("failed", f"process {pid} belongs to yarn", pid=pid)
    (text,) = [one for one in texts(of(make_run(tmp_path / "run", [lost, refused]))) if "missing here" in one]
    assert text.endswith("missing here: process 502 belongs to yarn (2 times), and 1 other reason."), text


def test_a_method_that_is_called_like_a_word_is_marked_where_it_stands(tmp_path):
    folder = run_of(tmp_path, "time 900\nother 100\n")
    (answer, *_) = of(folder)
    assert answer.text[answer.at :] == "time." and answer.text.count("time") == 2
    page = make_report(folder.path).page.read_text()
    title = page[page.index("<h1>") : page.index("</h1>")]
    assert re.search(r"of CPU time is spent in <[^>]*>.*time", title)
    read = "start_[k];do_syscall_64_[k];vfs_read_[k]"
    kernel = of(run_of(tmp_path / "kernel", f"code;{read} 800\nother 200\n"))
    (told,) = [one for one in kernel if one.text.startswith("Kernel")]
    assert told.text[told.at :] == "code."


def test_a_profile_of_waits_has_one_story(tmp_path):
    """The sentence, the line below it and the table tell who waits, not what all waits end in."""
    stacks = f"{JOB};com/acme/Pool.take_[j];__libc_read 900000\n"
    stacks += f"{JOB};com/acme/Row.get_[j];__libc_read 100000\n"
    hosts = [MadeHost("h", events={"offcpu": {1: stacks}})]
    folder = make_run(tmp_path / "run", hosts, events=("offcpu",))
    profile = Profile.open(folder.profile_path("h", 1, "offcpu")).select("offcpu")
    (answer, *_) = texts(plain_findings(profile))
    assert answer == "90.0 % is spent in Pool.take."
    write_page(Profile.from_bytes(b"[main] 5\n", "folded"), tmp_path / "x.html", "no frames")
    write_page(profile, tmp_path / "x.html", "x")
    page = (tmp_path / "x.html").read_text()
    hottest = page[page.index('<section class="hottest">') :].split("</section>")[0]
    assert "take" in hottest and "__libc_read" not in hottest
    assert "Then Row.get (10.0" in page.replace("<bdi>", "")
