"""What no rule may say, and what none may fail by."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hprofiler._flamegraph import Profile
from hprofiler.analysis import findings as rooms
from hprofiler.analysis.attribution import attribute_file
from hprofiler.analysis.findings import findings_of_file
from hprofiler.report import make_report, write_page
from tests.unit.test_findings import JOB, of, run_of, texts
from tests.viewer.made_run import MadeHost, content_of, make_run, rewrite

TLS = f"{JOB};sun/security/ssl/SSLSocketInputRecord.decode_[j]"


def test_kernel_code_whose_callers_were_pruned_is_told_alone(tmp_path, monkeypatch):
    monkeypatch.setattr("hprofiler.analysis.subject._MOST_NODES", 2)
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
    run = content_of(folder)
    run["hosts"][0]["recordings"][0]["samples"]["taken"] = 1000
    rewrite(folder, run)
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
    assert answer == "Too few samples for shares: the hottest method is Job.run."
    left = "left out of sentences and tables, not of the graph"
    assert f"Idle threads, 88.9 % of all wall-clock time, are {left}: about 16 of 18 threads." in others
    (event,) = make_report(folder.path).events
    assert (event.hottest[0].name, event.attributed) == ("com/acme/Job.run", 120_000_000_000)
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
    lost = MadeHost("n1").fails("failed", "the agent was killed by a signal")
    lost.fails("failed", "went away together with n1", pid=7, lost=True)
    refused = MadeHost("n2", {1: f"{JOB} 90000\n"})
    for pid in (502, 535):
        refused.fails("failed", f"process {pid} belongs to yarn", pid=pid)
    (text,) = [one for one in texts(of(make_run(tmp_path / "run", [lost, refused]))) if "missing here" in one]
    assert text.endswith("missing here: the process belongs to yarn (2 times), and 1 other reason."), text


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (f"{'x' * 190} it belongs to nobody", f"{'x' * 190} it …"),
        (f"{'x' * 190} it belongs", f"{'x' * 190} it …"),
        (f"{'x' * 190} it belong", f"{'x' * 190} it belong"),
        (f"{'x' * 201}", f"{'x' * 200} …"),
    ],
)
def test_a_long_reason_is_cut_between_words(tmp_path, words, told):
    host = MadeHost("h", {1: f"{JOB} 90000\n"}).fails("failed", words, pid=2)
    assert f"1 of 2 processes is missing here: {told}." in texts(of(make_run(tmp_path / "run", [host])))


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
    (answer, *_) = texts(findings_of_file(attribute_file(profile)))
    assert answer == "90.0 % is spent in Pool.take."
    write_page(Profile.from_bytes(b"[main] 5\n", "folded"), tmp_path / "x.html", "no frames")
    write_page(profile, tmp_path / "x.html", "x")
    page = (tmp_path / "x.html").read_text()
    hottest = page[page.index('<section class="hottest">') :].split("</section>")[0]
    assert "take" in hottest and "__libc_read" not in hottest
    assert "Then Row.get (10.0" in page.replace("<bdi>", "")


def test_a_file_is_told_with_all_that_is_in_it(tmp_path):
    """A program may have frames that are called as async-profiler's, or as the file's value."""
    game = b"main;Engine::tick;PerfEvents::signalHandler;Physics::step 900\nmain;idle 100\n"
    profile = Profile.from_bytes(game, "folded")
    assert texts(findings_of_file(attribute_file(profile)))[0] == "90.0 % is spent in Physics::step."
    write_page(profile, tmp_path / "x.html", "x")
    page = (tmp_path / "x.html").read_text()
    hottest = page[page.index('<section class="hottest">') :].split("</section>")[0]
    assert "Physics::" in hottest
    called_alike = Profile.from_bytes(b"main;samples 900\nmain;idle 100\n", "folded")
    assert called_alike.values[0][0] == "samples"
    assert texts(findings_of_file(attribute_file(called_alike)))[0] == "90.0 % is spent in samples."


def of_event(tmp_path, event, text):
    """The findings of an event with this folded text, and what the terminal is told of it."""
    folder = make_run(tmp_path / "run", [MadeHost("h", events={event: {1: text}})], events=(event,))
    return texts(of(folder, event)), make_report(folder.path)


def test_off_cpu_time_is_told_by_kind_of_wait(tmp_path):
    stacks = {"sleep": 3, "lock": 5, "idle pool thread": 92}
    text = "".join(f"[worker];[{kind}];{JOB};com/acme/Job.m_[j] {n}000000000\n" for kind, n in stacks.items())
    found, report = of_event(tmp_path, "offcpu", text)
    assert found[1] == "By kind of wait besides idle threads: [lock] 62.5 %, [sleep] 37.5 %."
    (event,) = report.events
    assert event.share_of == "off-CPU time besides idle threads" and event.attributed < event.total
    page = report.page.read_text()
    assert "Shares are of off-CPU time besides idle threads; the graph has all." in page
    assert "[lock] 62.5\u202f%" in page


def test_kinds_of_wait_where_all_threads_are_idle(tmp_path):
    found, _ = of_event(tmp_path, "offcpu", f"[worker];[idle pool thread];{JOB} 9000000000\n")
    assert found[1] == "By kind of wait: [idle pool thread] 100 %."


def test_the_kinds_of_wait_are_those_of_the_core():
    source = (Path(__file__).parents[2] / "flamegraph/src/formats/jfr/waits.rs").read_text()
    named = re.findall(r'pub\(super\) const \w+: &str = "(\[.*?\])";', source)
    assert len(named) > 5 and tuple(named) == rooms._KINDS_OF_WAIT


def test_calls_are_told_by_who_makes_them(tmp_path):
    calls = f"{JOB};com/acme/Job.load_[j];com/acme/Row.parse_[j]"
    found, report = of_event(
        tmp_path, "com.acme.Row.parse", f"{calls} 700\n{JOB};com/acme/Row.parse_[j] 300\n"
    )
    assert found[0] == "70.0 % of the calls of com.acme.Row.parse come from Job.load."
    page = report.page.read_text()
    assert "<b>1,000 calls</b>" in page and "Self counts the calls that a method makes itself" in page
    assert "<dd>com.acme.Row.parse for 60 s, engine auto</dd>" in page
    few, _ = of_event(tmp_path / "few", "com.acme.Row.parse", f"{calls} 3\n")
    assert few == [
        "Too few calls for shares: the hottest caller is Job.load.",
        "Only 3 calls were recorded: shares may be off by 58 points. Record longer (-t).",
    ]


def test_the_frequency_stands_behind_what_is_sampled_by_it(tmp_path):
    host = MadeHost("h", {1: f"{JOB} 90\n"}, events={"page-faults": {1: f"{JOB} 90\n"}})
    folder = make_run(tmp_path / "run", [host], events=("cpu", "page-faults"))
    assert (
        "<dd>cpu at 300 Hz, page-faults for 60 s, engine auto</dd>"
        in make_report(folder.path).page.read_text()
    )


def test_perf_samples_its_counters_by_the_frequency_too(tmp_path):
    events = ("offcpu", "cycles", "cache-misses:u", "page-faults:u", "sched:sched_switch", "cpu/r1,period=9/")
    host = MadeHost("h", events={event: {1: f"{JOB} 90\n"} for event in events})
    folder = make_run(tmp_path / "run", [host], events=events)

    def asked():
        page = make_report(folder.path).page.read_text()
        return (
            page[page.index("<dt>Asked for</dt><dd>") :].split(" for 60 s, engine auto")[0].split("<dd>")[1]
        )

    assert asked() == ", ".join(events), "async-profiler takes a sample every so many"
    run = content_of(folder)
    for recording in run["hosts"][0]["recordings"]:
        recording["engine"] = "perf"
    rewrite(folder, run)
    told = {"cycles": "cycles at 300 Hz", "cache-misses:u": "cache-misses:u at 300 Hz"}
    assert asked() == ", ".join(told.get(event, event) for event in events)


def test_the_profilers_own_work_leads_nothing(tmp_path):
    own = f"{JOB};Profiler::crashHandler"
    found, report = of_event(tmp_path, "page-faults", f"{own} 70\n{JOB};com/acme/Job.m_[j] 30\n")
    assert found[0] == "100 % of page-faults besides the profiler’s own work happen in Job.m."
    assert (
        "The profiler’s own work, 70.0 % of all page-faults, is left out of sentences and tables, not of the"
        " graph." in found
    )
    assert [one.name for one in report.events[0].hottest] == ["com/acme/Job.m"]
    alone, _ = of_event(tmp_path / "alone", "page-faults", f"{own} 1\n")
    assert alone[0] == "Nothing but the profiler’s own work was sampled."
    assert alone[1].startswith("Only 1 event was recorded")
    waits = "[worker];java/util/concurrent/ThreadPoolExecutor.getTask_[j]"
    mostly_idle, _ = of_event(tmp_path / "idle", "wall", f"{own} 1\n{waits} 99\n")
    assert mostly_idle[0] == "Nothing but the profiler’s own work was sampled besides idle threads."


def test_few_samples_are_no_ground_for_a_share(tmp_path):
    hosts = [MadeHost(f"h{n}", {n: f"{JOB};com/acme/Job.m_[j] {n}\n"}) for n in (1, 2)]
    folder = make_run(tmp_path / "run", hosts)
    assert texts(of(folder))[0] == "Too few samples for shares: the hottest method is Job.m."
    assert '<p class="second">' not in make_report(folder.path).page.read_text()
