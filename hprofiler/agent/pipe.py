"""Selectors that are a shell pipe over the process list, in the columns of `ps -ef`.

The pipe runs on the host as the connecting user, never as another: it is the user's own text. For containers,
whose images may have no filters, it runs on the coordinator's machine.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from hprofiler.agent.messages import Listed
from hprofiler.base.errors import HostError
from hprofiler.base.text import printable
from hprofiler.transport.base import Transport

HEADER = "UID          PID    PPID  C STIME TTY          TIME CMD"


def pids_of_pipe(
    transport: Transport,
    pipe: str,
    processes: Sequence[Listed],
    timeout: float,
    remedy: str = "try it on the host: ps -ef | {}",
) -> list[int]:
    """The pids that the pipe lets through. Raises HostError (stage "find", with the `remedy`) if it fails."""
    rows = listing(processes)
    stdin = "".join(f"{row}\n" for row in [HEADER, *rows]).encode("utf-8", "replace")
    try:
        done = transport.run("exec sh -c " + shlex.quote(pipe), stdin, timeout)
    except HostError as error:
        raise HostError(
            "find", f"the selector's pipe failed: {error.reason}", error.remedy, code="pipe-failed"
        ) from error
    found = chosen(done.stdout.decode("utf-8", "replace"), rows)
    if not found and (done.exit_status not in (0, 1) or done.stderr):
        said = printable(done.stderr[-500:]) or f"exit status {done.exit_status}"
        raise HostError(
            "find", f"the selector's pipe failed: {said}", remedy.format(pipe), code="pipe-failed"
        )
    return found


def listing(processes: Sequence[Listed]) -> dict[str, int]:
    """The rows of the process list, each with its pid."""
    return {_row(process): process.pid for process in processes}


def _row(process: Listed) -> str:
    columns = f"{process.user:<8} {process.pid:7} {process.ppid:7}  0 00:00 ?        00:00:00"
    return f"{columns} {process.command}".rstrip()


def chosen(output: str, rows: Mapping[str, int]) -> list[int]:
    """The pids of the lines that came through: whole rows of the list, or bare pids of it."""
    known = set(rows.values())
    found: dict[int, None] = {}
    for line in output.splitlines():
        row = line.rstrip()
        word = row.strip()
        if row in rows:
            found[rows[row]] = None
        elif word.isascii() and word.isdigit() and len(word) <= 7 and int(word) in known:
            found[int(word)] = None
    return list(found)
