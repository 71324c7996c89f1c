"""Runs a command in which perf_event_open fails with EPERM, as in a container with the usual seccomp profile.

python without_perf_events.py COMMAND [ARGUMENT...]
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys

PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, FAIL = 0x7FFF0000, 0x00050000


class Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def forbid(number: int) -> None:
    """Let one system call fail in this process and all it starts."""
    steps = [
        (LOAD, 0, 0, 0),
        (JUMP_IF_EQUAL, 0, 1, number),
        (RETURN, 0, 0, FAIL | errno.EPERM),
        (RETURN, 0, 0, ALLOW),
    ]
    code = b"".join(struct.pack("HBBI", *step) for step in steps)
    libc = ctypes.CDLL(None, use_errno=True)
    program = Program(len(steps), code)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(
        PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0
    ):
        raise OSError(ctypes.get_errno(), "seccomp")


if __name__ == "__main__":
    forbid(PERF_EVENT_OPEN[platform.machine()])
    os.execvp(sys.argv[1], sys.argv[1:])
