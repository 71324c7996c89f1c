"""Starts the agent where nothing may stay, as in containers: it is sent each time.

The binary arrives over the stream of the later conversation; `head` counts its bytes. The agent deletes its
own file as soon as it runs, and keeps libraries in memory. The shell waits for its end, and deletes the file
if it never ran. A debug container ends with it ($HPROFILER_END). If the push fails, a second command removes
the file, because the shell may have ended.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Iterator

from hprofiler.agent.bootstrap import (
    MARK,
    AgentBinaries,
    Answer,
    Launched,
    agent_for,
    marked,
    pieces,
    plain,
)
from hprofiler.agent.wire import Wire
from hprofiler.base.errors import HostError
from hprofiler.base.resources import Blob
from hprofiler.base.text import printable
from hprofiler.transport.base import (
    CONTAINER_TOOLS,
    OTHER_WAYS_IN,
    Channel,
    NoShell,
    Transport,
)

_FOLDERS = ("/tmp", "/var/tmp", '"$HOME"', "/dev/shm")
_NAME = ".hprofiler-once"
_FULL = "free some space in the container's writable folders"


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
        blob = _wanted(binaries, answer)
    with _undone(transport, channel, _quoted(answer.folder)):
        enter("push")
        with contextlib.suppress(HostError):  # where there is no room head ends early; the answer says so
            for piece in pieces(blob.path):
                channel.write(piece)
        _expect_stored(channel, wire)
        greet(wire)
    return Launched(channel, wire, answer.arch, True)


@contextlib.contextmanager
def _undone(transport: Transport, channel: Channel, files: str) -> Iterator[None]:
    """On failure, removes the `files` (words of the script) and ends the debug container."""
    try:
        yield
    except NoShell:
        raise
    except BaseException:
        channel.close()
        transport.last(_UNDO.format(files=files))
        raise


def _wanted(binaries: AgentBinaries, answer: Answer) -> Blob:
    if answer.word == "unable":
        reason = f"the container has no {', no '.join(printable(answer.folder).split())}"
        raise NoShell("connect", f"{reason}, which hprofiler needs to start the agent", OTHER_WAYS_IN)
    if answer.word == "nowhere":
        raise HostError(
            "push",
            "the container has no writable folder without noexec: tried /tmp, /var/tmp, $HOME, /dev/shm and "
            "all writable mounts",
            "mount an emptyDir at /tmp; attaching to a JVM needs one too",
            code="no-writable-folder",
        )
    blob = agent_for(binaries, answer.arch)
    if answer.word != "send":
        raise HostError(
            "push",
            f"the container's shell gave an unexpected answer: {printable(answer.word[:100])!r}",
            code="shell-failed",
        )
    return blob


def _expect_stored(channel: Channel, wire: Wire) -> None:
    try:
        answer = marked(channel, wire)
    except HostError as error:
        reason = f"the agent could not be stored: {error.reason}"
        raise HostError("push", reason, _FULL, error.usual_code) from error
    if answer.word != "stored":
        said = printable(channel.stderr_tail()) or "it arrived incomplete"
        raise HostError("push", f"the agent could not be stored: {said}", _FULL)


def _find_command(binaries: AgentBinaries, token: str) -> str:
    sizes = {plain(arch): blob.path.stat().st_size for arch, blob in sorted(binaries.agents.items())}
    arms = "".join(f"{arch}) n={size};;\n" for arch, size in sizes.items())
    return _FIND.format(
        arms=arms,
        mark=MARK,
        name=_NAME,
        token=token,
        folders=" ".join(_FOLDERS),
        tools=" ".join(CONTAINER_TOOLS),
    )


def _quoted(file: str) -> str:
    """The file's name as a word of the script; it came from the container, so it is not trusted."""
    if not file.startswith("/") or "\0" in file:
        raise HostError("push", f"the container reports an unusable file: {printable(file)!r}")
    return "'" + file.replace("'", "'\\''") + "'"


_OVER = '[ -n "$HPROFILER_END" ] && read -r p <"$HPROFILER_END" && kill "$p"'
_UNDO = "rm -f {files}\n" + _OVER + "\n"

# Braces are doubled for str.format. A file is made anew or not at all (set -C), so that nobody can have put a
# link there. The coordinator may be gone before the file was there, and has undone nothing: then nothing
# arrives, the answer is heard by nobody (PIPE), and the shell deletes the file.
_FIND = (
    "over() {{ "
    + _OVER
    + """; }}
umask 077
trap "" PIPE
m=
for t in {tools}; do command -v $t >/dev/null 2>&1 || m="$m $t"; done
[ -z "$m" ] || {{ echo {mark} unable - "$m"; over; exit 0; }}
a=$(uname -m)
case $a in
{arms}*) echo {mark} none "$a" -; over; exit 0;;
esac
u=
while read -r k r e x; do case $k in Uid:) u=$e; break;; esac; done </proc/self/status
try() {{
  [ -d "$1" ] && [ -w "$1" ] || return 1
  f=${{1%/}}/{name}-$u-{token}
  (set -C; echo "#!$(command -v sh)" >"$f") 2>/dev/null || return 1
  chmod 700 "$f" && "$f" </dev/null >/dev/null 2>&1 && return 0
  rm -f "$f"
  return 1
}}
seek() {{
  for d in {folders}; do try "$d" && return 0; done
  while read -r x d t o x; do
    case $o in rw|rw,*) ;; *) continue;; esac
    case $d in /proc*|/sys*|/dev*|*'\\'*) continue;; esac
    try "$d" && return 0
  done </proc/self/mounts
  return 1
}}
seek || {{ echo {mark} nowhere "$a" -; over; exit 0; }}
echo {mark} send "$a" "$f"
head -c $n >"$f"
[ $(wc -c <"$f") = $n ] || {{ rm -f "$f"; over; echo {mark} refused - -; exit 1; }}
echo {mark} stored - -
"$f" --once "$f"
s=$?
rm -f "$f"
over
exit $s
"""
)
