"""Copies the agent to a host and starts it; one round trip if it is there already.

The host needs sh, uname, mkdir, cat, chmod, mv, rm and wc; sha256sum is used to check the stored binary, and
ls to check who may write to its folder. The script has no single quotes or newlines, and exclamation marks
only before spaces, so that every login shell (also csh and fish) passes it to sh unchanged.
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from hprofiler.agent.messages import BadEvent
from hprofiler.agent.wire import PIECE, Wire
from hprofiler.base.errors import ConnectionLost, HostError
from hprofiler.base.resources import Blob
from hprofiler.base.text import printable
from hprofiler.transport.base import Channel, Transport

MARK = "HPROFILER"
_MARK_LIMIT = 4096
_PIECES_OF_A_PART = (1 << 20) // PIECE
_NOISE_LINES = 200
_END_WAIT = 0.2


@dataclass(frozen=True)
class AgentBinaries:
    """The agent's binary for each architecture (as `uname -m` says it), and what the engines load.

    `blobs` has them by the protocol's names, `async-profiler`, `perfmap` and `threadnames`, each by
    architecture.
    """

    agents: Mapping[str, Blob]
    blobs: Mapping[str, Mapping[str, Blob]] = field(default_factory=dict)


class Launched(NamedTuple):
    """A running agent. `pushed`: its binary had to be sent first."""

    channel: Channel
    wire: Wire
    arch: str
    pushed: bool


class Answer(NamedTuple):
    """The marked line of a script."""

    word: str
    arch: str
    folder: str


def launch(
    transport: Transport,
    binaries: AgentBinaries,
    greet: Callable[[Wire], None],
    enter: Callable[[str], None] = lambda stage: None,
) -> Launched:
    """Start the agent; push its binary first if it is missing.

    `greet` is called before it is known whether the agent is there, which saves a round trip. `enter` is
    called when a push starts, and after each mebibyte. Raises HostError.
    """
    command = start_command(binaries, transport.become)
    pushed = False
    while True:
        channel = transport.open(command)
        wire = Wire(channel)
        with contextlib.suppress(HostError):  # if the agent is missing, nobody reads it
            greet(wire)
        answer = marked(channel, wire)
        if answer.word == "exec":
            return Launched(channel, wire, answer.arch, pushed)
        channel.close()
        blob = _wanted(binaries, answer, pushed)
        push(transport, blob, answer.folder, lambda: enter("push"))
        pushed = True


def _wanted(binaries: AgentBinaries, answer: Answer, pushed: bool) -> Blob:
    if answer.word == "nowhere":
        raise HostError(
            "push",
            "no folder on the host can keep the agent: tried /tmp, /var/tmp, ~/.cache and /dev/shm",
            "make one of them writable for the connecting user only, on a mount without noexec",
            code="no-writable-folder",
        )
    blob = agent_for(binaries, answer.arch)
    if pushed:
        raise HostError(
            "push", f"the agent was stored in {answer.folder} but is not there any more", "try again"
        )
    return blob


def agent_for(binaries: AgentBinaries, arch: str) -> Blob:
    blob = binaries.agents.get(arch)
    if blob is None:
        known = ", ".join(sorted(binaries.agents))
        reason = f"there is no agent for the architecture {arch!r} (only {known})"
        raise HostError("push", reason, code="architecture-unsupported")
    return blob


def start_command(binaries: AgentBinaries, become: str | None) -> str:
    """The one command line that starts the agent, or says on a marked line what is missing."""
    arms = "".join(
        f"{plain(arch)}) s={plain(blob.sha256)} n={blob.path.stat().st_size};; "
        for arch, blob in sorted(binaries.agents.items())
    )
    # sudoers may allow the agent only without arguments; then it accepts only its package's library.
    prefix, arguments = {"sudo": ("sudo -n ", ""), None: ("", " --any-library")}[become]
    script = _START.format(arms=arms, mark=MARK, prefix=prefix, arguments=arguments)
    return f"exec sh -c '{script}'"


def plain(word: str) -> str:
    """A word that can stand in a script as it is, or ValueError."""
    if not word.replace("_", "").isalnum():
        raise ValueError(f"{word!r} cannot stand in the script")
    return word


def _lines(*lines: str) -> str:
    return " ".join(line.strip() for line in lines)


# Going into the folder first and looking at `.` afterwards leaves nobody the chance to swap it in between;
# `pwd -P` shows a symlink. One that others may write to, as `ls` shows its mode, is passed over even if it is
# the user's: what lies there may be theirs, such as a link in the place of a file that is written here. An
# agent that is a link, or another user's, who could change it after the check, is replaced. What must not
# stay is removed as the shell ends, by exec: where no more processes may be started a shell ends at its next
# command, and could start no rm. One that a signal ends does not come to that, so those of a connection that
# is gone are caught. Braces are doubled for str.format.
_START = _lines(
    'umask 077; trap "exec rm -f ./probe-$$" 0; a=$(uname -m);',
    "case $a in {arms}*) echo {mark} need $a -; exit 0;; esac;",
    "u=; while read -r k r e x; do case $k in Uid:) u=$e; break;; esac; done </proc/self/status;",
    'for d in /tmp/.hprofiler-$u /var/tmp/.hprofiler-$u "$HOME/.cache/hprofiler" /dev/shm/.hprofiler-$u; do',
    '[ -h "$d" ] && continue;',
    '[ -d "$d" ] || mkdir -p "$d" 2>/dev/null || continue;',
    'o=$(cd -P "${{d%/*}}" 2>/dev/null && pwd -P);',
    'cd -P "$d" 2>/dev/null || continue;',
    '[ -O . ] && [ "$(pwd -P)" = "${{o%/}}/${{d##*/}}" ] || continue;',
    'case $(ls -ld . 2>/dev/null) in d????-??-*|"") ;; *) continue;; esac;',
    'p=./probe-$$; {{ printf "#\\041/bin/sh\\n" >$p && chmod 700 . $p && $p; }} </dev/null >/dev/null 2>&1;',
    "r=$?;",
    "rm -f $p; [ $r = 0 ] || continue;",
    "f=agent-$s; if [ -h $f ]; then :; elif [ -f $f ] && [ -O $f ]; then h=;",
    "if [ $(wc -c <$f) = $n ]; then",
    "if command -v sha256sum >/dev/null 2>&1; then h=$(sha256sum <$f); h=${{h%% *}}; else h=$s; fi; fi;",
    'if [ "$h" = $s ]; then f=$(pwd -P)/$f; cd /; echo {mark} exec $a "$d";',
    'exec {prefix}"$f"{arguments}; fi; fi;',
    'echo {mark} need $a "$d"; exit 0; done;',
    "echo {mark} nowhere $a -",
)

_PUSH = _lines(
    'umask 077; cd -P {folder} && [ -O . ] || exit 1; t=agent-{sha256}.$$; trap "exec rm -f $t" 0;',
    'trap "" 13; trap "exit 1" 1 2 15; cat >$t; h=;',
    "if [ $(wc -c <$t) = {size} ]; then",
    "if command -v sha256sum >/dev/null 2>&1;",
    "then h=$(sha256sum <$t); h=${{h%% *}}; else h={sha256}; fi; fi;",
    "[ ! -h agent-{sha256} ] || rm -f agent-{sha256};",
    'if [ "$h" = {sha256} ] && chmod 700 $t && mv -f $t agent-{sha256}; then echo {mark} stored {sha256} -;',
    "else echo {mark} refused - -; fi",
)


def marked(channel: Channel, wire: Wire) -> Answer:
    """The marked line; output of the user's shell start-up files before it is skipped."""
    try:
        for _ in range(_NOISE_LINES):
            line = wire.line(_MARK_LIMIT)
            if line is None:
                said = channel.stderr_tail()
                if not said and channel.exit_status(_END_WAIT) is None:
                    raise ConnectionLost("connect", "the connection was lost")
                break
            words = line.decode("utf-8", "replace").rstrip("\r").split(" ", 3)
            if len(words) == 4 and words[0] == MARK:
                return Answer(words[1], printable(words[2]), words[3])
    except BadEvent as error:
        raise HostError(
            "connect",
            f"the host's shell prints too much before it starts the agent: {error}",
            code="shell-failed",
        ) from error
    said = printable(channel.stderr_tail()) or "no output"
    raise HostError(
        "connect",
        f"the host did not run the start command: {said}",
        "check the user's login shell",
        code="shell-failed",
    )


def push(transport: Transport, blob: Blob, folder: str, goes_on: Callable[[], None] = lambda: None) -> None:
    """Store the agent's binary in the private folder, checked by size and SHA-256. Raises HostError.

    `goes_on` is called before each mebibyte, and once more at the end.
    """
    size = blob.path.stat().st_size
    script = _PUSH.format(folder=_quoted(folder), sha256=plain(blob.sha256), size=size, mark=MARK)
    channel = transport.open("exec sh -c " + shlex.quote(script))
    try:
        with contextlib.suppress(HostError):  # on a full disk cat ends early; the answer says so
            for number, piece in enumerate(pieces(blob.path)):
                if number % _PIECES_OF_A_PART == 0:
                    goes_on()
                channel.write(piece)
            channel.end_input()
        goes_on()
        answer = marked(channel, Wire(channel))
        if answer.word != "stored":
            said = printable(channel.stderr_tail()) or "size or SHA-256 differ"
            raise HostError(
                "push",
                f"the agent could not be stored in {printable(folder)}: {said}",
                "check the free space there",
            )
    except HostError as error:
        raise error.at("push") from error
    finally:
        channel.close()


def _quoted(folder: str) -> str:
    """The folder as a word of the script; it came from the host, so it is not trusted."""
    if not folder.startswith("/") or any(mark in folder for mark in "'!\n\\\0"):
        raise HostError("push", f"the host reports an unusable private folder: {printable(folder)!r}")
    return '"' + "".join("\\" + mark if mark in '$`"' else mark for mark in folder) + '"'


def pieces(path: Path) -> Iterator[bytes]:
    """A file in pieces; never more than one of them in memory."""
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            yield piece


def sudo_refusal(stderr: str) -> tuple[str, str] | None:
    """(reason, remedy) where `stderr` holds sudo's refusal to run the agent."""
    for line in stderr.splitlines():
        if "unable to resolve host" in line:  # a warning, after which sudo goes on
            continue
        if (
            line.startswith("sudo:")
            or "sudo: not found" in line
            or line.endswith("is not in the sudoers file.")
        ):
            reason = printable(line)
            break
    else:
        return None
    return (
        f"sudo refused to run the agent: {reason}",
        "allow it without a password for this user (sudoers: NOPASSWD, !requiretty), or leave out --become",
    )
