"""Where fuzzing of the coordinator starts: a good input of each kind, and words that matter in it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
Seed = tuple[str, str, bytes]
"""Of which target, a name, the bytes."""

_ID = "container_e17_1700000000000_0042_01_000003"
_ATTEMPT = "appattempt_1700000000000_0042_000001"
_SHA = "0" * 64
_OUTCOME = {"pid": 7, "status": "ok", "stage": "record", "reason": "r", "remedy": "m"}
_FINDING = {"severity": "ok", "about": "perf", "text": "t", "remedy": "r"}
_HOST = {
    "name": "h",
    "boot_id": "b",
    "pid_namespace": "p",
    "kernel": "k",
    "arch": "x86_64",
    "cpus": 2,
    "load": 0.5,
    "memory_bytes": 1,
    "memory_available_bytes": None,
    "uid": 0,
    "user": "root",
}
_PROCESS = {
    "pid": 7,
    "namespace_pid": 7,
    "start_time": 1,
    "uid": 0,
    "user": "root",
    "ppid": 1,
    "main_class": "M",
    "command": "java M",
    "label": "M",
    "labels": {"a": "b"},
    "jvm": {"version": "17"},
}
_HELLO = {"type": "hello", "protocol": 2, "version": "0", "sha256": _SHA, "host": _HOST, "blobs": [_SHA]}
_UNDONE = {"what": "w", "reason": "r"}
_LEFT = {
    "kind": "agent",
    "path": "/tmp/x",
    "pid": 7,
    "user": "root",
    "seconds": 5,
    "bytes": None,
    "state": "left",
    "reason": "r",
    "result": "ended",
}
_EVENTS = (
    _HELLO,
    {**_HELLO, "session": "4711-99812"},
    {"type": "processes", "processes": [_PROCESS], "ignored": [{"pid": 8, "reason": "r"}]},
    {"type": "found", "searched": 9, "processes": [_PROCESS], "ignored": [{"pid": 8, "reason": "r"}]},
    {"type": "ready", "processes": [{"pid": 7}]},
    {"type": "outcome", **_OUTCOME},
    {"type": "outcome", **_OUTCOME, "status": "degraded", "ended": "cut", "seconds": 1.5},
    {"type": "started", "pid": 7, "engine": "perf", "sources": {"cpu": "perf_events"}},
    {"type": "recording", "processes": 1},
    {"type": "interrupted", "seconds": 2.5, "reason": "r"},
    {"type": "raw", "pid": 7, "name": "recording.jfr", "sha256": _SHA, "size": 3},
    {"type": "done", "left": []},
    {
        "type": "leftovers",
        "entries": [_LEFT],
        "out_of_reach": [{"user": "u", "jvms": 2}],
        "failed": [_UNDONE],
    },
    {"type": "error", "reason": "r", "remedy": "m"},
    {
        "type": "checked",
        "time": 1.5,
        "findings": [_FINDING],
        "processes": [{**_OUTCOME, "engine": "perf", "sources": {"cpu": "cpu"}, "findings": [_FINDING]}],
    },
    {"type": "audit", "time": 1.5, "what": "file", "pid": None, "detail": "d"},
)
_OUTCOMES = (
    {
        **_OUTCOME,
        "pid": 1,
        "status": "degraded",
        "reason": "ended after 3.5 s: the disk is full (2 MiB)",
    },
    {**_OUTCOME, "pid": 2, "status": "degraded", "reason": "ended after 4 s: the disk is full (3 MiB)"},
    {**_OUTCOME, "pid": 3, "status": "failed", "stage": "record", "reason": "it has ended"},
    {**_OUTCOME, "pid": 4, "reason": "perf: TID 77 took 1,234.5 ms, 10 %; one sample stands for 10.3 ms"},
    {**_OUTCOME, "pid": 5, "reason": "perf: TID 78 took … ms, 11 %; one sample stands for 10.4 ms"},
    {**_OUTCOME, "pid": None, "status": "failed", "stage": "connect", "reason": "<b>no</b>"},
)
_PROFILE = {
    "type": "profile",
    "pid": 7,
    "event": "cpu",
    "engine": "perf",
    "source": "perf_events",
    "interval": 1000,
    "seconds": 1.5,
    "cpu_seconds": 0.5,
    "attach_seconds": 0.1,
    "samples": {"expected": 10, "taken": 9, "lost": 1},
    "timeline": [9],
    "sha256": _SHA,
    "size": 5,
}
_APP = {
    "id": "application_1700000000000_0042",
    "name": "a",
    "user": "u",
    "queue": "root.b",
    "state": "RUNNING",
    "finalStatus": "UNDEFINED",
    "applicationType": "SPARK",
    "applicationTags": "c,d",
    "runningContainers": 3,
    "allocatedMB": 100,
    "elapsedTime": 5000,
}
_YARN = (
    {"app": _APP},
    {"apps": {"app": [_APP]}},
    {
        "appAttempts": {"appAttempt": [{"appAttemptId": _ATTEMPT, "appAttemptState": "RUNNING"}]},
        "container": [{"containerId": _ID, "nodeHttpAddress": "http://n1:8042", "containerState": "RUNNING"}],
    },
    {"nodes": {"node": [{"nodeHTTPAddress": "n:8042", "nodeHostName": "n", "numContainers": 1}]}},
    {"containers": {"container": [{"id": _ID, "state": "RUNNING"}]}},
    [
        {
            "id": "1",
            "hostPort": "h:7077",
            "isActive": True,
            "activeTasks": 1,
            "stageId": 2,
            "executorLogs": {"stdout": f"http://n:8042/node/containerlogs/{_ID}/u/stdout"},
            "attributes": {"CONTAINER_ID": _ID},
        },
        {"id": "driver", "hostPort": "[::1]:7077"},
    ],
)
_NODE = json.dumps(_YARN[3]).encode()
_CLUSTERS = {
    "whole": [json.dumps(_YARN[number]).encode() for number in (1, 2, 2, 3, 5, 5, 5)],
    "one-application": [json.dumps(_YARN[number]).encode() for number in (0, 2, 2, 3, 5, 5, 5)],
    "old": [_NODE, b"404\n{}", json.dumps(_YARN[4]).encode(), _NODE],
    "elsewhere": [b"302 http://rm2:8088/ws/v1/cluster/nodes\n", b"", b"", _NODE],
    "standby": [b"200 3; url=http://rm2:8088/x\nThis is standby RM"],
    "refused": [b'403\n{"RemoteException": {"message": "no"}}', b"401 Negotiate\n", b"500\n", b"404\n"],
}
"""What is answered to each kind of question."""
_STATE = {"terminated": {"reason": "OOMKilled", "exitCode": 137, "signal": 9}}
_POD = {
    "metadata": {
        "name": "a-1",
        "namespace": "n",
        "uid": "u",
        "labels": {"app": "x", "spark-role": "executor", "spark-exec-id": "1", "pod-template-hash": "5d"},
        "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "a-5d"},
            {"apiVersion": "batch/v1", "kind": "Job", "name": "a-29000000"},
        ],
    },
    "spec": {
        "nodeName": "n1",
        "restartPolicy": "OnFailure",
        "initContainers": [{"name": "s", "restartPolicy": "Always"}],
    },
    "status": {
        "phase": "Running",
        "hostIP": "10.0.0.1",
        "conditions": [{"status": "False", "reason": "Unschedulable", "message": "m"}],
        "containerStatuses": [
            {"name": "c", "containerID": "containerd://0123abc", "state": {"running": {}}},
            {"name": "d", "state": _STATE, "lastState": _STATE},
            {"name": "e", "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "m"}}},
        ],
        "initContainerStatuses": [{"name": "s", "containerID": "x://1", "state": {"running": {}}}],
    },
}
_SELECTOR = {
    "matchLabels": {"app": "x"},
    "matchExpressions": [
        {"key": "k", "operator": "In", "values": ["a", "b"]},
        {"key": "k", "operator": "Exists"},
    ],
}
_STATUS = {
    "status": "Failure",
    "reason": "NonZeroExitCode",
    "details": {"causes": [{"reason": "ExitCode", "message": "3"}]},
}
_KUBECONFIG = """\
current-context: c
clusters: [{name: k, cluster: {server: "https://h:6443", certificate-authority: ca.pem}}]
contexts: [{name: c, context: {cluster: k, user: u, namespace: n}}]
users: [{name: u, user: {token: t, client-certificate: c.pem}}]
"""
_YAML = """\
name: a
summary: b
any:
  - main_class: [org.*.Main, x]
    arguments: --name (?:a|b)
    environment: {A: ^b$}
    user: yarn
labels:
  n: {from: arguments, regex: 'n=(\\S+)'}
  e: {from: environment, name: A, regex: '(.)'}
process_label: "{n} of {e}"
roots: [a.B.c, "x.*"]
"""
_TAGS = """\
a: &a [1, 0x1f, 0b1, 1:30, 2001-12-14t21:59:43.10-05:00, 2001-01-01]
b: *a
c: !!timestamp x
d: !!bool maybe
e: {<<: {x: y}, ? [k] : v}
"""
_SITE = """\
<?xml version="1.0" encoding="UTF-8"?>
<configuration><property><name>yarn.resourcemanager.hostname</name><value>${h}</value></property>
<property><name>h</name><value>rm</value></property>
<property><name>yarn.resourcemanager.ha.enabled</name><value>true</value></property>
<property><name>yarn.resourcemanager.ha.rm-ids</name><value>a,b</value></property>
<property><name>yarn.resourcemanager.webapp.address.a</name><value>0.0.0.0:8088</value></property>
<property><name>yarn.resourcemanager.hostname.a</name><value>rm1</value></property></configuration>
"""
_RUN = {
    "format": 2,
    "hprofiler": "0.1.0",
    "command": ["hprofiler"],
    "target": {"kind": "hosts", "name": "h"},
    "selector": "any",
    "sampling": {"events": ["cpu", "alloc"], "frequency": 99, "duration": 5.0, "engine": "auto"},
    "started": "s",
    "finished": "f",
    "interrupted": False,
    "roots": ["a.*"],
    "hosts": [
        {
            "name": "h",
            "address": "h",
            "labels": {"a": "b"},
            "unseen": [1],
            "outcomes": [{"host": "h", **_OUTCOME, "label": "M"}],
            "recordings": [{**_PROFILE, "process": _PROCESS, "totals": {"samples": 9, "cpu": 9000}}],
        }
    ],
}
_SSH = """\
Host host
  HostName h.%h
  Port 2222
  ProxyJump u@j:22,[::1]:2200
  HostKeyAlias k
  StrictHostKeyChecking accept-new
  UserKnownHostsFile ~/a %d/b
  RevokedHostKeys /c
  IdentityFile i
Match user x
  ProxyCommand nc %h %p
"""
_KEY = "AAAA" * 10 + "AAA="
_SHELLS = {
    "noise": [b"Welcome!\r\nHPROFILER exec x86_64 /tmp/.hprofiler-0\r\n"],
    "need": [b"HPROFILER need aarch64 -\n"],
    "push": [
        b"HPROFILER need x86_64 /home/a b/.cache/hprofiler\n",
        b"HPROFILER stored 0 -\n",
        b"HPROFILER exec x86_64 /home/a b/.cache/hprofiler\n",
    ],
    "unnameable": [b"HPROFILER need x86_64 /tmp/a\0b\n"],
    "nowhere": [b"HPROFILER nowhere x86_64 -\n"],
    "visit": [b"HPROFILER send x86_64 cd /tmp/.hprofiler-once-0\nHPROFILER stored - -\n"],
    "visit-without-head": [b"HPROFILER send x86_64 ed /tmp/it's\n", b"HPROFILER stored - -\n"],
}
"""What a host answers to one command after the other."""


def seeds() -> Iterator[Seed]:
    lines = [json.dumps(event).encode() + b"\n" for event in _EVENTS]
    lines.append(json.dumps(_PROFILE).encode() + b"\nbytes")
    for number, line in enumerate(lines):
        yield "agent_events", f"event-{number}", line
    yield "agent_events", "all", b"".join(lines)
    told = [json.dumps({"type": "outcome", **one}, ensure_ascii=False) for one in _OUTCOMES]
    yield "outcomes", "all", "\n".join(told).encode()
    yield "outcomes", "rest-of-host", "\n".join(told[:2] + told[5:]).encode()
    for name, answers in _SHELLS.items():
        yield "agent_start", name, b"\xff\xff".join(answers)
    for path in sorted((CHECKOUT / "selectors").glob("*.yaml")):
        yield "selector_file", path.name, path.read_bytes()
    for target in ("selector_file", "kubeconfig"):
        yield target, "small", _YAML.encode()
        yield target, "tags", _TAGS.encode()
    yield "kubeconfig", "whole", _KUBECONFIG.encode()
    answers = [json.dumps(answer).encode() for answer in _YARN]
    for number, answer in enumerate(answers):
        yield "yarn", f"answer-{number}", answer
    for name, known in _CLUSTERS.items():
        yield "yarn", name, b"\0".join(known)
    for name, said in {"pods": {"items": [_POD]}, "selector": _SELECTOR, "status": _STATUS}.items():
        yield "kubernetes", name, json.dumps(said).encode()
    yield "hadoop_site", "site", _SITE.encode()
    yield "hadoop_site", "wide", _SITE.replace("UTF-8", "UTF-16").encode("utf-16")
    config = 'Host a b*\n  User "u"\n  Port=22\nInclude file f*\nMatch host x\n  ProxyJump j\ninclude "~"\n'
    yield "ssh_config", "config", config.encode()
    yield "ssh_config", "whole", _SSH.encode()
    yield "ssh_config", "match", b'Match exec "true"\n  Port 23\n'
    yield "ssh_config", "homes", b"UserKnownHostsFile ~nobody-at-all/a %d/b\nRevokedHostKeys ~/c\n"
    yield "ssh_config", "names", b"CanonicalizeHostname yes\nCanonicalDomains a.b\n"
    yield "known_hosts", "revoked", f"ssh-rsa {_KEY}\n".encode()
    yield "known_hosts", "keys", f"host,!b,*.c ssh-rsa {_KEY}\n@revoked * ssh-rsa {_KEY}\n".encode()
    yield "known_hosts", "hashed", f"|1|AAAA|AAAA ssh-rsa {_KEY} c\n# c\n[host]:2222 x {_KEY}".encode()
    for number, text in enumerate(
        ("u@h:22,node[01-12],n[1,3,7-9]", "[::1]:22,fe80::1%eth0", "r[1-2]n[1-3]x")
    ):
        yield "hosts", f"hosts-{number}", text.encode()
    yield "run_file", "run", json.dumps(_RUN).encode()
