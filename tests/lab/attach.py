"""The tests' own HotSpot attach, which queries the profiler in a JVM.

It is independent of the product, because it checks that nothing was left running.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
import signal
import socket
import stat
import tempfile
from pathlib import Path

from tests.lab import procs

_LIBC = ctypes.CDLL(None, use_errno=True)
_CALLS = {
    "setresuid": {"x86_64": 117, "aarch64": 147},
    "setresgid": {"x86_64": 119, "aarch64": 149},
}


def execute(pid: int, command: str, *arguments: str) -> str:
    """Send an attach command to a JVM (a pid of this namespace, any uid); returns the reply."""
    status = procs.status(pid)
    inner, uid, gid = int(status["NStgid"][-1]), int(status["Uid"][1]), int(status["Gid"][1])
    door = Path(f"/proc/{pid}/root/tmp/.java_pid{inner}")
    if not _is_socket(door):
        _ask_for_a_door(pid, inner, uid, gid, door)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(procs.PATIENCE)
        _connect_as(connection, door, uid, gid)
        words = ["1", command, *arguments, *[""] * (3 - len(arguments))]
        connection.sendall(b"".join(word.encode() + b"\0" for word in words))
        reply = b""
        while True:
            chunk = connection.recv(65536)
            if not chunk:
                return reply.decode("utf-8", "replace")
            reply += chunk


def profiler_libraries(pid: int) -> list[str]:
    """Paths of async-profiler libraries mapped in a JVM, even if the file is deleted."""
    maps = Path(f"/proc/{pid}/maps").read_text()
    found = re.findall(r"(/\S*[Aa]syncProfiler\S*\.so\S*|/\S*/\.hprofiler\S*)", maps)
    return sorted(set(found))


def profiling_status(pid: int, library: str) -> str:
    """The status of async-profiler loaded from `library`: "Profiling is running for…" or "…not active"."""
    folder = f"/proc/{pid}/root/tmp"
    descriptor, name = tempfile.mkstemp(prefix="lab-status-", dir=folder)
    os.close(descriptor)
    answer = Path(name)
    answer.chmod(0o666)
    try:
        reply = execute(pid, "load", library, "true", f"status,file=/tmp/{answer.name}")
        return answer.read_text().strip() or reply
    finally:
        answer.unlink()


def _is_socket(path: Path) -> bool:
    try:
        return stat.S_ISSOCK(path.stat().st_mode)
    except OSError:
        return False


def _ask_for_a_door(pid: int, inner: int, uid: int, gid: int, door: Path) -> None:
    """A trigger file and SIGQUIT make the JVM open its attach socket."""
    trigger = Path(f"/proc/{pid}/root/tmp/.attach_pid{inner}")
    trigger.touch()
    try:
        os.chown(trigger, uid, gid)
        os.kill(pid, signal.SIGQUIT)
        procs.wait_for(f"attach socket of {pid}", lambda: _is_socket(door))
    finally:
        trigger.unlink(missing_ok=True)


def _connect_as(connection: socket.socket, door: Path, uid: int, gid: int) -> None:
    """The JVM checks the ids that the peer had when it connected."""
    if (uid, gid) == (os.geteuid(), os.getegid()):
        connection.connect(str(door))
        return
    _become(uid, gid)
    try:
        connection.connect(str(door))
    finally:
        _become(0, 0)


def _become(uid: int, gid: int) -> None:
    """Change the effective ids of this thread only; libc's functions would change all threads."""
    steps = [("setresgid", gid), ("setresuid", uid)]
    for name, number in steps if uid else reversed(steps):
        call = _CALLS[name][platform.machine()]
        keep = ctypes.c_int(-1)
        if _LIBC.syscall(ctypes.c_long(call), keep, ctypes.c_int(number), keep):
            raise OSError(ctypes.get_errno(), f"{name} {number}")
