"""Where fuzzing of the agent starts: a good input of each kind, made here or told by this machine."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

Seed = tuple[str, str, bytes]
"""Of which target, a name, the bytes."""

_CAPTURES = {
    "name": {"from": "arguments", "regex": "--name (\\S+)"},
    "a": {"from": "environment", "name": "A", "regex": "(.)"},
    "class": {"from": "main_class", "regex": "(\\w+)$"},
    "group": {"from": "cgroup", "regex": "(x)"},
    "option": {"from": "options", "regex": "-D(\\S+)"},
}
_RULE = {
    "kind": "rule",
    "any": [
        {
            "main_class": ["org.*.Main"],
            "arguments": "--name",
            "options": "-Xmx",
            "environment": {"A": "b"},
            "user": ["yarn"],
            "cgroup": "x",
        },
        {"program": ["java"]},
    ],
    "labels": _CAPTURES,
    "process_label": "{name} of {class}",
}
_SAMPLING = {
    "engine": "auto",
    "events": ["cpu", "page-faults", "offcpu", "sched:sched_switch"],
    "frequency": 300,
    "duration": 5.0,
    "alloc_interval": None,
    "lock_threshold": 10_000,
    "wall_interval": 1_000_000,
    "keep_raw": False,
}
_PREPARE = {
    "sampling": _SAMPLING,
    "blobs": {"async-profiler": "ab", "perfmap": None},
    "versions": {"async-profiler": "4.4"},
    "processes": [{"pid": 7, "start_time": 9, "label": "a", "labels": {"x": "y"}}],
}
_EXCLUDED = {"boot_id": "x", "pid_namespace": "pid:[1]", "pids": [1, 2]}
_REQUESTS = (
    {"type": "hello", "protocol": 2, "lease_seconds": 30.0, "exclude": _EXCLUDED, "audit": True},
    {"type": "find", "selector": {"kind": "pids", "pids": [1, -1]}, "containers": None},
    {"type": "find", "selector": {"kind": "text", "text": "Main"}, "native": True, "containers": ["c_1"]},
    {"type": "find", "selector": {"kind": "regex", "regex": "exa(m|n)ple[.]Main"}, "own": "c_1"},
    {"type": "find", "selector": _RULE},
    {"type": "prepare", **_PREPARE},
    {"type": "check", **_PREPARE},
    {"type": "clean", "kept": False},
)
_COMMANDS = (
    "java -Xmx1g -cp a:b org.x.Main 1 2",
    "java -jar /opt/app-1.2.jar x",
    "java --module-path p -m mod/org.x.Main",
    "java --add-opens a/b=ALL-UNNAMED -Dx=-jar Main @a",
    "java --disable-@files -cp x @args",
    "jsvc.exec -user hdfs -cp c -outfile o a.b.Starter",
    "java -XX:+DisableAttachMechanism -XX:-DisableAttachMechanism M",
    "java org.apache.hadoop.mapred.YarnChild 10.0.1.4 45261 attempt_1700000000000_0042_r_000019_1 3",
    "app --token hunter --password x user=a,password=b,port=1 jdbc:x://u:pw@h:1/db -Dapi_key=abc",
    "x passwd passphrase= secret= credential= accesskey= key=",
)
_FILES = b"\xff\xff-cp \"a b.jar\" # note\n'p.Main' one\xff@x\\\\n"
_YARN = "container_e17_1700000000000_0042_01_000003"
_POD = "3f4e5d6c7b8a99887766554433221100ffeeddccbbaa99887766554433221100"
_TEXTS = (
    f"4:cpu,cpuacct:/hadoop-yarn/{_YARN}\n1:name=systemd:/\n0::/k.slice/cri-containerd-{_POD}.scope\n",
    f"7:cpu:/system.slice/containerd.service/k.slice:cri-containerd:{_POD}\n",
    "root:x:0:0::/root:/bin/sh\nyarn:x:990:1:a:b:c\n",
    "ID: 0\nsignal: 27/0000000000000000\nnotify: signal/tid.77\nClockID: -6\n",
    "7f1-7f2 r-xp 00000000 08:01 42    /opt/my app/libjvm.so (deleted)\n7f1-7f2 rw-p 0 00:00 0 [heap]\n",
    "0: 00000000:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  2001        0 4711 1\n",
    "77 (x) R 1 (y) S 12 1 1 0 -1 4194304 100 0 0 0 30 12 0 0 20 0 9 0 98765 1 2 3\n",
)
_ANSWERS = (
    "0\n0\n",
    "0\n-1\n",
    "0\nreturn code: 100\n",
    "100\nDynamic agent loading is not enabled\n",
    "[WARN] perf_event_open for TID 1 failed: No\n[ERROR] Perf events unavailable. Try --all-user\n",
    "Profiling started\nProfiler is not active\n",
    "perf version 6.1.187\n",
    "Error:\nThe cache-misses:u event is not supported.\n",
    "Permission error mapping pages.\n",
    "Workload failed: No such process\n",
)


def by_hand() -> Iterator[Seed]:
    lines = [json.dumps(request, separators=(",", ":")).encode() + b"\n" for request in _REQUESTS]
    lines.append(b'{"type":"put","name":"l","sha256":"ab","size":3}\nxyz{"type":"ping"}\n{"type":"list"}\n')
    for number, line in enumerate([*lines, b"".join(lines)]):
        yield "request", f"request-{number}", line
    for number, command in enumerate(_COMMANDS):
        yield "command_line", f"command-{number}", command.replace(" ", "\0").encode() + b"\0" + _FILES
    for number, text in enumerate(_TEXTS):
        yield "proc_texts", f"text-{number}", text.encode()
    for number, answer in enumerate(_ANSWERS):
        yield "answers", f"answer-{number}", answer.encode()
    arguments = (b"java.rt.vmArgs", b"-Xmx1g -XX:+X")
    yield "hsperf", "some", published([(b"a", b"12345678"), arguments, (b"java.rt.vmFlags", b"x")])
    yield "hsperf", "none", published([])


def by_tools() -> Iterator[Seed]:
    for name in ("stat", "status", "cgroup"):
        yield "proc_texts", name, Path(f"/proc/self/{name}").read_bytes()[:6000]
    yield from perfs_beginning()
    yield from libraries()


def perfs_beginning() -> Iterator[Seed]:
    perf = shutil.which("perf")
    if perf is not None:
        command = [perf, "record", "-q", "-o", "-", "--", "true"]
        yield "answers", "perf", subprocess.run(command, capture_output=True).stdout[:5000]


def published(entries: list[tuple[bytes, bytes]]) -> bytes:
    """What a JVM publishes of itself: entries of a name and a value."""
    data = b"\xca\xfe\xc0\xc0\1\2\0\1" + bytes(16) + struct.pack("=II", 32, len(entries))
    for name, value in entries:
        begin = 20 + len(name) + 1
        size = begin + len(value) + 1
        data += struct.pack("=II8xI", size, 20, begin) + name + b"\0" + value + b"\0"
    return data


def libraries() -> Iterator[Seed]:
    """A small program with its symbols, without, and with the name of a file that has them."""
    if shutil.which("cc") is None or shutil.which("objcopy") is None:
        print("no C compiler on this machine: no seeds of libraries")
        return
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder) / "seed.c", Path(folder) / "program"
        source.write_text("int main(void) { return 0; }\n")
        link = ["-nostdlib", "-e", "main", "-Wl,--build-id"]
        subprocess.run(["cc", *link, "-o", str(program), str(source)], check=True)
        yield "library", "whole", program.read_bytes()
        subprocess.run(["objcopy", "--strip-all", f"--add-gnu-debuglink={source}", str(program)], check=True)
        yield "library", "stripped", program.read_bytes()
