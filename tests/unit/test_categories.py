"""The table of well-known code, `frames.yaml`: names that match and similar names that do not."""

from __future__ import annotations

import pytest
import yaml

from hprofiler._flamegraph import Profile, category_patterns
from hprofiler.analysis.families import family_of, is_own
from tests.unit.command import ROOT


@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("java/util/regex/Pattern.compile", "regex-compile"),
        ("java.util.regex.Pattern.sequence", "regex-compile"),
        ("java/util/regex/Pattern$GroupCurly.match0", "regex-match"),
        ("java/lang/Throwable.fillInStackTrace", "stack-traces"),
        ("java/lang/String.format", "formatting"),
        ("com/google/protobuf/CodedInputStream.readTag", "records"),
        ("snappy::RawUncompress(snappy::Source*, char*)", "compression"),
        ("sun/security/ssl/SSLCipher$T13GcmReadCipher.decrypt", "crypto"),
        ("java/lang/ClassLoader.loadClass", "class-loading"),
        ("java/util/regex/Pattern$Branch.study", "regex-compile"),
        ("org/apache/avro/Schema$RecordSchema.getField", "records"),
        ("org/apache/hadoop/shaded/com/google/protobuf/CodedInputStream.readTag", "records"),
        ("org/tukaani/xz/lz/HC4.getMatches", "compression"),
        ("java/math/BigInteger.oddModPow", "crypto"),
        ("java/math/BigInteger.add", "big-numbers"),
        ("org/xml/sax/helpers/AttributesImpl.addAttribute", "xml"),
    ],
)
def test_well_known_code_has_a_category(name, category):
    found = family_of(name)
    assert found is not None and found.category == category and not is_own(name, "jit")


@pytest.mark.parametrize(
    "name",
    [
        "java/util/HashMap.put",
        "java/util/regex/PatternSyntaxException.getMessage",
        "java/lang/String.split",
        "java/lang/ClassLoader.getResource",
        "java/lang/Long.valueOf",
        "InstanceKlass::allocate_instance",
        "com/acme/java/util/regex/Pattern.compile",
        "java/util/concurrent/FutureTask.run",
        "",
    ],
)
def test_similar_names_have_no_category(name):
    assert family_of(name) is None


@pytest.mark.parametrize(
    ("name", "kind", "own"),
    [
        ("com/acme/Job.run", "jit", True),
        ("com.acme.Job.run", "plain", True),
        ("Main.run", "interpreted", True),
        ("github.com/acme/job.Run", "plain", True),
        ("java/lang/Thread.run", "jit", False),
        ("scala/collection/Iterator$$anon$9.next", "jit", False),
        ("Interpreter", "jit", False),
        ("tcp_recvmsg.part.0.cold", "kernel", False),
        ("__memcpy_avx512_unaligned_erms", "plain", False),
        ("G1ParScanThreadState::trim_queue()", "plain", False),
        ("com.google.common.collect.ImmutableMap.get", "jit", False),
        ("org.springframework.web.servlet.DispatcherServlet.doDispatch", "jit", False),
        ("org.apache.spark.sql.execution.joins.HashedRelation.apply", "jit", True),
        ("java.util.TimSort.sort", "jit", False),
        ("", "plain", False),
    ],
)
def test_own_code_is_told_apart_from_libraries(name, kind, own):
    assert is_own(name, kind) is own


def test_docs_have_every_category():
    rules = yaml.safe_load((ROOT / "flamegraph/rules/frames.yaml").read_text())
    docs = (ROOT / "docs/categories.md").read_text()
    for one in rules["labels"]:
        for name, (label,) in one.items():
            assert f"| `{name}` | {label} |" in docs
    labelled = {name for one in rules["labels"] for name in one}
    named = {name for table in ("categories", "kernel") for one in rules[table] for name in one}
    assert named - set(rules["transparent"]) <= labelled


def samples_of(category, names):
    text = "".join(f"clone3;start_thread;{name};x 1\n" for name in names)
    return Profile.from_bytes(text.encode(), "folded").filter(include=category_patterns(category)).total()


def test_the_jvms_own_work_is_known_by_threads_and_frames():
    """Names of JDK 8 to 25, also as perf truncates them."""
    gc = ["GangWorker::run_task(WorkData)", "WorkerThread::run", "GCTaskThread::run()", "[GC Thread#N]"]
    gc += ["VM_G1CollectForAllocation::doit()", "[ZWorkerYoung#N]", "[Concurrent Mark-Sweep GC Thread]"]
    gc += ["[Concurrent Mark]", "[ZDriverMinor]", "[XDriver]", "[G1 Conc#N]"]
    jit = ["CompileBroker::compiler_thread_loop()", "[C2 CompilerThreadN]", "[C1 CompilerThre]"]
    others = [
        "VMThread::run",
        "VM_ThreadDump::doit",
        "[VM Thread]",
        "[GCloud poller]",
        "[GC watcher]",
        "[XWorker-N]",
        "com/acme/GangWorker.run",
    ]
    assert (samples_of("gc", gc), samples_of("jit", jit)) == (len(gc), len(jit))
    assert samples_of("gc", jit + others) == samples_of("jit", gc + others) == 0
