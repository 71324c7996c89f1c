"""Starting the agent where nothing may stay: it is sent each time, and gone when it ends.

In a container there may be no more than sh and cat. The binary comes over the same stream by which the
agent is then talked to: so many bytes, counted by head. Where there is no head, cat takes them until the
input ends, and a second command starts what was stored. Where nothing can make a file executable (no
chmod) the system's dynamic loader can run it all the same (see `loadable`).

The agent deletes its own binary as soon as it runs, and keeps what it is given in memory; the shell waits for
its end, and deletes the binary if it never came to run. Where there is no rm, a program of 400 bytes is
written beside it and deletes both (see `remover`). A debug container ends with it ($HPROFILER_END). What goes
wrong on the way is undone by another command: the shell may have ended, or not know of it.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from hprofiler.agent.bootstrap import MARK, AgentBinaries, Answer, Blob, Launched, marked, pieces, plain
from hprofiler.agent.loadable import loadable
from hprofiler.agent.remover import ZEROS, printed
from hprofiler.agent.wire import PIECE, Wire
from hprofiler.base.errors import HostError
from hprofiler.base.text import printable
from hprofiler.transport.base import Channel, NoShell, Transport

_LOADERS = ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1")
_FOLDERS = ("/tmp", "/var/tmp", '"$HOME"', "/dev/shm")
_NAME = ".hprofiler-once"
_FULL = "free some space in the container's writable folders"
_OLD = "Kubernetes 1.30 and newer can end it; or go by SSH: --via ssh"


class _Place(NamedTuple):
    """Where the binary goes. `way` is how it gets there and how it runs, in the script's words."""

    arch: str
    way: str
    file: str


def launch(
    transport: Transport,
    binaries: AgentBinaries,
    greet: Callable[[Wire], None],
    enter: Callable[[str], None] = lambda stage: None,
) -> Launched:
    """Send the agent and start it. Raises HostError, and then leaves nothing."""
    token = secrets.token_hex(8)
    channel = transport.open(_find_command(binaries, token))
    wire = Wire(channel)
    with _undone(transport, channel, " ".join(f"{folder}/{_NAME}-*-{token}" for folder in _FOLDERS)):
        answer = marked(channel, wire)
    place = _place(channel, answer)
    blob = binaries.agents.get(place.arch)
    if blob is None:
        channel.close()
        known = ", ".join(sorted(binaries.agents))
        raise HostError("push", f"there is no agent for the architecture {place.arch!r} (only {known})")
    file, counted = _quoted(place.file), place.way[:1] == "c"
    with _undone(transport, channel, file):
        if not counted and not channel.can_end_input:
            raise HostError("push", "the container has no head, without which no input can be ended", _OLD)
        enter("push")
        _send(channel, blob, place)
        _expect(channel, wire, "stored")
        if not counted:
            channel.close()
            channel = transport.open(_script(_RUN, file=file, mark=MARK, how=place.way[1:]))
            wire = Wire(channel)
            _expect(channel, wire, "stored")
        greet(wire)
    return Launched(channel, wire, place.arch, True)


@contextlib.contextmanager
def _undone(transport: Transport, channel: Channel, files: str) -> Iterator[None]:
    """What fails in here leaves none of the `files` (words of the script), and no debug container."""
    try:
        yield
    except NoShell:
        raise
    except BaseException:
        channel.close()
        transport.last(_script(_UNDO, files=files))
        raise


def _send(channel: Channel, blob: Blob, place: _Place) -> None:
    counted, direct = place.way[:1] == "c", place.way[1:] == "d"
    binary = pieces(blob.path) if direct else _loadable(blob)
    with contextlib.suppress(HostError):  # where there is no room the reader ends early; the answer says so
        for piece in binary:
            channel.write(piece)
        if not counted:
            channel.end_input()


def _place(channel: Channel, answer: Answer) -> _Place:
    if answer.word == "nowhere":
        channel.close()
        raise HostError(
            "push",
            "there is no folder in the container that can be written to and programs run from: tried /tmp, "
            "/var/tmp, $HOME, /dev/shm and whatever is mounted writable",
            "mount an emptyDir at /tmp, which a JVM needs in any case to be attached to",
        )
    if answer.word == "unable":
        channel.close()
        raise HostError(
            "push",
            "the container has neither chmod nor glibc's loader, so that nothing that is sent there can run",
            "go by SSH to the node: --via ssh",
        )
    if answer.word == "none":
        channel.close()
        return _Place(answer.arch, "", "")
    way, _, file = answer.folder.partition(" ")
    if way[:1] not in ("c", "e") or way[1:] not in ("d", *_LOADERS):
        raise HostError("push", f"the container's shell answers nonsense: {printable(way[:100])!r}")
    return _Place(answer.arch, way, file)


def _expect(channel: Channel, wire: Wire, word: str) -> None:
    try:
        answer = marked(channel, wire)
    except HostError as error:
        channel.close()
        raise HostError("push", f"the agent could not be stored: {error.reason}", _FULL) from error
    if answer.word != word:
        said = printable(channel.stderr_tail())
        channel.close()
        raise HostError("push", f"the agent could not be stored: {said or 'it did not arrive whole'}", _FULL)


def _loadable(blob: Blob) -> Iterable[bytes]:
    try:
        changed = loadable(blob.path.read_bytes())
    except ValueError as error:
        reason = f"the container has no chmod, and this agent cannot be run without: {error}"
        raise HostError("push", reason) from error
    return [changed[start : start + PIECE] for start in range(0, len(changed), PIECE)]


def _find_command(binaries: AgentBinaries, token: str) -> str:
    sizes = {plain(arch): blob.path.stat().st_size for arch, blob in sorted(binaries.agents.items())}
    arms = "".join(f"{arch}) n={size};;\n" for arch, size in sizes.items())
    return _script(_FIND, arms=arms, mark=MARK, name=_NAME, token=token, folders=" ".join(_FOLDERS))


def _script(text: str, **words: str) -> str:
    """One of those below, with what all begin with."""
    known = {"loaders": " ".join(_LOADERS), "zeros": ZEROS, "remover": printed()}
    return (_START + text).format(**known, **words)


def _quoted(file: str) -> str:
    """The file's name as a word of the script; it came from the container, so it may hold anything."""
    if not file.startswith("/") or "\0" in file:
        raise HostError("push", f"the container names no usable file: {printable(file)!r}")
    return "'" + file.replace("'", "'\\''") + "'"


# What machine it is, how the agent runs there, and what becomes of its binary. Braces are doubled for
# str.format. Two shells may be deleting one file at once, so each writes a remover of its own; and whoever
# empties the file, which may make it anew, deletes it after that.
_START = """
has() {{ command -v "$1" >/dev/null 2>&1; }}
h=
for l in {loaders}; do
  [ -x "$l" ] && h=$l
done
a=$(uname -m 2>/dev/null)
if [ -z "$a" ]; then
  case $h in *x86-64*) a=x86_64;; *aarch64*) a=aarch64;; esac
fi
run() {{
  case $2 in
  d) "$1" --once "$1";;
  *) l=$2; "$l" "$1" --once "$1";;
  esac
  s=$?
  gone "$1"
  over
  exit $s
}}
over() {{ [ -n "$HPROFILER_END" ] && read -r p <"$HPROFILER_END" && kill "$p"; }}
gone() {{
  rm -f "$1" && return
  [ -f "$1" ] || return
  : >"$1"
  [ "$a" = x86_64 ] && has printf && erase "$1" "$1.$$"
}} 2>/dev/null
erase() {{
  t=0 z='{zeros}'
  [ -n "$h" ] && t=3
  (set -C; printf "{remover}" >"$2") || return
  if [ -n "$h" ]; then "$h" "$2" "$2" "$1"; else chmod 700 "$2" && "$2" "$2" "$1"; fi
}}
"""

# Ways: c or e (counted, or until the end of input), then d or the path of a loader. A file is made anew or
# not at all (set -C), so that nobody can have put a link there; and not where nothing runs, for without rm
# it would stay. Whoever let go of us before the file was there has undone nothing: then nothing arrives, and
# nobody hears us (PIPE).
_FIND = """
umask 077
trap "" PIPE
case $a in
{arms}*) echo {mark} none "$a" -; over; exit 0;;
esac
u=
while read -r k r e x; do case $k in Uid:) u=$e; break;; esac; done </proc/self/status
w=c
has head || w=e
noexec() {{
  b=0
  while read -r x d t o x; do
    case $1/ in "${{d%/}}"/*) [ ${{#d}} -ge $b ] && {{ b=${{#d}}; q=$o; }};; esac
  done </proc/self/mounts
  case ,$q, in *,noexec,*) return 0;; esac
  return 1
}}
try() {{
  [ -d "$1" ] && [ -w "$1" ] || return 1
  noexec "$1" && return 1
  f=${{1%/}}/{name}-$u-{token}
  (set -C; echo "#!$(command -v sh)" >"$f") 2>/dev/null || return 1
  if has chmod; then
    chmod 700 "$f" && "$f" </dev/null >/dev/null 2>&1 && {{ r=d; return 0; }}
  elif [ -n "$h" ]; then
    cat "$(command -v cat)" >"$f" && "$h" "$f" </dev/null >/dev/null 2>&1 && {{ r=$h; return 0; }}
  fi
  gone "$f"
  return 1
}}
seek() {{
  for m in {folders}; do try "$m" && return 0; done
  while read -r x m t o x; do
    case $o in rw|rw,*) ;; *) continue;; esac
    case $m in /proc*|/sys*|/dev*|*'\\'*) continue;; esac
    try "$m" && return 0
  done </proc/self/mounts
  return 1
}}
has chmod || [ -n "$h" ] || {{ echo {mark} unable "$a" -; over; exit 0; }}
seek || {{ echo {mark} nowhere "$a" -; over; exit 0; }}
echo {mark} send "$a" $w$r "$f"
if [ $w = c ]; then head -c $n >"$f"; else cat >"$f"; fi
[ -s "$f" ] || {{ gone "$f"; over; exit 1; }}
if has wc && [ $(wc -c <"$f") != $n ]; then gone "$f"; over; echo {mark} refused - -; exit 1; fi
echo {mark} stored - -
[ $w = e ] || run "$f" $r
"""

_UNDO = 'for f in {files}; do gone "$f"; done\nover\n'
_RUN = "echo {mark} stored - -\nrun {file} '{how}'\n"
