"""The table of well-known code: names that must be found, names that must not, and a JDK's own classes."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from hprofiler._flamegraph import Profile, category_patterns
from hprofiler.analysis.families import FAMILIES, family_of, is_own

FOUND = {
    "java/util/regex/Pattern.compile": "regex-compile",
    "java.util.regex.Pattern.sequence": "regex-compile",
    "java/util/regex/Pattern$GroupCurly.match0": "regex-match",
    "java/util/regex/Matcher.find": "regex-match",
    "java/lang/Throwable.fillInStackTrace": "stack-traces",
    "java/text/SimpleDateFormat.format": "dates",
    "java/time/format/DateTimeFormatter.parse": "dates",
    "java/util/Formatter.format": "formatting",
    "java/lang/String.format": "formatting",
    "java/io/ObjectInputStream.readObject0": "serialization",
    "com/esotericsoftware/kryo/Kryo.writeObject": "serialization",
    "org/apache/avro/io/BinaryDecoder.readString": "records",
    "com/google/protobuf/CodedInputStream.readTag": "records",
    "com/fasterxml/jackson/core/json/UTF8StreamJsonParser.nextToken": "json",
    "com.sun.org.apache.xerces.internal.impl.XMLScanner.scanAttributeValue": "xml",
    "java/util/zip/Inflater.inflate": "compression",
    "java/util/zip/DeflaterOutputStream.write": "compression",
    "net/jpountz/lz4/LZ4JNICompressor.compress": "compression",
    "snappy::RawUncompress(snappy::Source*, char*)": "compression",
    "ZSTD_decompressBlock_internal": "compression",
    "java/util/zip/CRC32.update": "hashes",
    "sun/security/provider/SHA2.implCompress0": "hashes",
    "sun/security/ssl/SSLCipher$T13GcmReadCipher.decrypt": "crypto",
    "com/sun/crypto/provider/GaloisCounterMode.doFinal": "crypto",
    "org/apache/logging/log4j/core/Logger.logMessage": "logging",
    "java/lang/ClassLoader.loadClass": "class-loading",
    "java/math/BigDecimal.divide": "big-numbers",
}
IN_NONE = (
    "java/util/HashMap.put",
    "java/util/regex/PatternSyntaxException.getMessage",
    "java/util/zip/ZipFile.getEntry",
    "java/lang/String.split",
    "java/lang/Throwable.getMessage",
    "java/lang/ClassLoader.getResource",
    "com/example/etl/AvroUtil.toAvroIdentifier",
    "com/acme/java/util/regex/Pattern.compile",
    "org/apache/hadoop/io/compress/CodecPool.getCompressor",
    "io/netty/handler/ssl/SslHandler.channelRead",
    "ClassLoaderDataGraph::roots_cld_do",
    "AES",
    "",
)


@pytest.mark.parametrize(("name", "family"), FOUND.items())
def test_well_known_code_is_known(name, family):
    found = family_of(name)
    assert found is not None and found.category == family and not is_own(name, "jit")


@pytest.mark.parametrize("name", IN_NONE)
def test_what_only_looks_like_it_is_not(name):
    assert family_of(name) is None


@pytest.mark.parametrize(
    ("name", "kind", "own"),
    [
        ("com/acme/Job.run", "jit", True),
        ("com.acme.Job.run", "plain", True),
        ("Main.run", "interpreted", True),
        ("github.com/acme/job.Run", "plain", True),
        ("java/lang/Thread.run", "jit", False),
        ("javax/swing/JLabel.paint", "plain", False),
        ("scala/collection/Iterator$$anon$9.next", "jit", False),
        ("Interpreter", "jit", False),
        ("tcp_recvmsg.part.0.cold", "kernel", False),
        ("__memcpy_avx512_unaligned_erms", "plain", False),
        ("G1ParScanThreadState::trim_queue()", "plain", False),
        ("[GC Thread#N]", "plain", False),
        ("", "plain", False),
    ],
)
def test_own_code_is_told_from_what_serves_it(name, kind, own):
    assert is_own(name, kind) is own


def through(patterns, names):
    text = "".join(f"clone3;start_thread;{name};x 1\n" for name in names)
    return Profile.from_bytes(text.encode(), "folded").filter(include=patterns).total()


def test_the_jvms_own_work_is_known_by_threads_and_frames():
    """As JDK 8 to 25 call them, and perf cuts them."""
    gc = [
        "GangWorker::run_task(WorkData)",
        "WorkerThread::run",
        "GCTaskThread::run()",
        "ConcurrentGCThread::run",
        "VM_G1CollectForAllocation::doit()",
        "VM_GenCollectForAllocation::doit",
        "VM_ParallelGCFailedAllocation::doit",
        "VM_GC_HeapInspection::doit",
        "VM_ZMarkEndOperation::doit",
        "[GC Thread#N]",
        "[G1 Conc#N]",
        "[GC task thread#N (ParallelGC)]",
        "[ZWorkerYoung#N]",
        "[Shenandoah GC Threads#N]",
        "[Concurrent Mark-Sweep GC Thread]",
    ]
    jit = ["CompileBroker::compiler_thread_loop()", "[C2 CompilerThreadN]", "[C1 CompilerThre]"]
    others = [
        "VMThread::run",
        "VM_ThreadDump::doit",
        "VM_Exit::doit",
        "G1CollectedHeap::mem_allocate",
        "OptoRuntime::new_array_C",
        "[VM Thread]",
        "[main]",
        "[GCloud poller]",
        "com/acme/GangWorker.run",
    ]
    GC, JIT = category_patterns("gc"), category_patterns("jit")
    assert (through(GC, gc), through(JIT, jit)) == (len(gc), len(jit))
    assert through(GC, jit + others) == through(JIT, gc + others) == 0


def rules():
    """The categories and their patterns, one without braces each."""
    path = Path(__file__).parents[2] / "flamegraph" / "rules" / "frames.yaml"
    for rule in yaml.safe_load(path.read_text())["categories"]:
        for category, patterns in rule.items():
            yield category, [one for pattern in patterns for one in expanded(pattern)]


def expanded(pattern):
    before, brace, rest = pattern.partition("{")
    if not brace:
        return [pattern]
    choices, _, after = rest.partition("}")
    return [before + choice + one for choice in choices.split(",") for one in expanded(after)]


PATTERNS = {pattern for category, patterns in rules() if category != "library" for pattern in patterns}


def test_every_category_is_told_in_two_ways():
    named = {category for category, _ in rules()}
    assert named - set(FAMILIES) == {"none", "gc", "jit", "library"}
    assert set(FAMILIES) <= named


# What JDK 17 no longer has, or never had in its own modules.
GONE = ("sun/misc/Launcher$AppClassLoader*",)
JDKS = ("java/", "javax/", "jdk/", "sun/", "com/sun/")
# Whatever calls back into anybody's code is in no family.
CALLERS = (
    "java/util/concurrent/",
    "java/util/stream/",
    "java/util/function/",
    "java/lang/reflect/",
    "java/lang/invoke/",
    "java/lang/Thread.",
    "java/security/AccessController.",
    "java/nio/",
    "java/util/HashMap.",
    "sun/nio/",
    "jdk/internal/reflect/",
)


@pytest.fixture(scope="module")
def jdk():
    """The folder with a JDK's tools."""
    found = [Path(tool).resolve().parent for tool in [shutil.which("jimage")] if tool]
    found += [path.parent for path in sorted(Path("/usr/lib/jvm").glob("*/bin/jimage"))]
    if not found:
        pytest.skip("no JDK with jimage and javap on this machine")
    return found[0]


@pytest.fixture(scope="module")
def classes(jdk):
    """Every class of the JDK: java/lang/String ..."""
    listed = subprocess.run(
        [str(jdk / "jimage"), "list", str(jdk.parent / "lib/modules")],
        capture_output=True,
        text=True,
        check=True,
    )
    return [line.strip()[: -len(".class")] for line in listed.stdout.splitlines() if line.endswith(".class")]


def test_every_class_in_the_table_is_one_of_the_jdk(classes):
    names = "\n".join(f"{one}.x" for one in classes)
    patterns = [one for one in PATTERNS if one.startswith(JDKS)]
    assert len(patterns) > 20
    for pattern in patterns:
        of_class = re.escape(re.sub(r"\.[^/$]*$|\*$", "", pattern))
        assert pattern in GONE or re.search(f"^{of_class}", names, re.MULTILINE), pattern


def test_what_calls_back_into_anybodys_code_is_in_no_family(classes):
    seen = 0
    for one in classes:
        if f"{one}.".startswith(CALLERS):
            seen += 1
            assert family_of(f"{one}.run") is None, one
    assert seen > 1000
