"""The cause in a message of Spark: the exception at the bottom of what wraps it."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import NamedTuple

from hprofiler.base.passwords import hide_in_word, hide_values
from hprofiler.base.text import printable, without_middle

MASK = "*********(redacted)"
_LONGEST = 20_000
_LONGEST_MESSAGE = 1000
_REMEMBERED = 500
_RECENT = re.compile(r"most recent failure(?: reason)?:\s*", re.IGNORECASE)
_BARRIER = re.compile(r"Stage failed because barrier task .{1,200}? finished unsuccessfully\.\n")
_LOST_TASK = re.compile(r"Lost task .{1,300}?\): ")
_FETCH = re.compile(r"FetchFailed\((?:null|BlockManagerId\([^)]{0,300}\)), .{1,200}?message=\s*")
_LOST_EXECUTOR = re.compile(r"ExecutorLostFailure \(executor (\S+) .{1,200}?\)\s*(?:Reason:\s*)?")
_ABORTED = re.compile(r"(?:[\w.$]+: )?Job aborted(?: due to stage failure)?: ")
_DRIVER_STACK = "\nDriver stacktrace:"
_CAUSED_BY = re.compile(r"^Caused by: ", re.MULTILINE)
_FRAME = re.compile(r"\n[ \t]+(?:at \S|\.\.\. \d+ (?:more|common))")
_TRACEBACK = "Traceback (most recent call last):"
_AFTER_PYTHON = re.compile(
    r"^(?:\tat |\t\.\.\. | ?SQLSTATE: |Driver stacktrace:|During handling of the|The above exception was)"
)
_SQL_STATE = re.compile(r"SQLSTATE: \w{5}[ \t]*$", re.MULTILINE)
_KIND = re.compile(r"([A-Za-z_][\w$]*(?:\.[\w$]+)*)(?::\s+|:?\s*$)")
_EXCEPTION = re.compile(r"\.|(?:Exception|Error|Exit|Interrupt|Iteration|Warning|Lost\w*)$")
_CONNECT = re.compile(r"\(([a-z_][\w$]*(?:\.[\w$]+)+)\) ")
_PY4J = re.compile(
    r"^(?:\w+\.)*Py4JJavaError: An error occurred while calling [^\n]{1,200}\n: ", re.MULTILINE
)
_CHAINED = (
    "The above exception was the direct cause of the following exception:",
    "During handling of the above exception, another exception occurred:",
)
_ERROR_CLASS = re.compile(r'^\{"errorClass":"([\w.]+)"')
_WORKER_DIED = re.compile(r"Python worker exited unexpectedly \([^)]{1,100}\)")
_CANCELLED = re.compile(
    r"(?:[\w.$]+: )?(?:\[\w+\] )?(?:Job|Stage)(?: \d+)? (?:was )?cancell?ed\b|\[?OPERATION_CANCELED\b"
)
_SHUT_DOWN = re.compile(r"SparkContext (?:was shut down|has been shutdown)")
_INTERRUPTED = ("InterruptedException", "InterruptedIOException", "ClosedByInterruptException")
EXECUTOR_LOST = "ExecutorLostFailure"
FETCH_FAILED = "FetchFailedException"


class Cause(NamedTuple):
    """`kind` is the exception's class, "" if none is named; `message` its text on one line, cut if long.

    `executor` is the one that was lost, "" for other causes; `within` the outermost exception that this one
    caused, which may say where it was.
    """

    kind: str
    message: str
    executor: str = ""
    within: str = ""

    @property
    def text(self) -> str:
        if self.executor:
            return f"executor {self.executor} was lost" + (f": {self.message}" if self.message else "")
        if self.within and not self.message:
            return f"{self.within}: caused by {self.kind}"
        return f"{self.kind}: {self.message}" if self.kind and self.message else self.kind or self.message


def cause_of(message: str) -> Cause:
    """What went wrong, by what Spark says of a task, stage, job, query or executor."""
    return _cause_of(without_middle(message, _LONGEST))  # the first cause of an exception stands at its end


@lru_cache(_REMEMBERED)
def _cause_of(text: str) -> Cause:
    found = list(_RECENT.finditer(text))
    if found:
        text = text[found[-1].end() :]
    text = text.partition(_DRIVER_STACK)[0].strip("\n")
    for wrapper in (_ABORTED, _BARRIER, _LOST_TASK, _FETCH):
        if begin := wrapper.match(text):
            text = text[begin.end() :]
    if lost := _LOST_EXECUTOR.match(text):
        return Cause(EXECUTOR_LOST, _line(text[lost.end() :]), lost.group(1))
    if of_java := list(_PY4J.finditer(text)):
        text = text[of_java[-1].end() :]
    if _TRACEBACK in text and (of_python := _python_exceptions(text)):
        first, *others = map(_exception, of_python)
        return first._replace(within=others[-1].text) if others else first
    if _ERROR_CLASS.match(text):
        return _of_error_class(text)
    if died := _WORKER_DIED.search(text):
        return Cause("org.apache.spark.SparkException", died.group())
    chain = [_FRAME.split(part, maxsplit=1)[0] for part in _CAUSED_BY.split(text)]
    chain = [part for part in chain if not part.startswith("[CIRCULAR REFERENCE")] or chain
    within = _exception(chain[0]).text if len(chain) > 1 else ""
    return _exception(chain[-1])._replace(within=within)


def is_cancelled(message: str) -> bool:
    """Whether somebody cancelled it, Spark's adaptive execution included; other exceptions may wrap that."""
    return bool(_CANCELLED.match(message) or _CANCELLED.match(cause_of(message).text))


def is_interrupted(cause: Cause) -> bool:
    """Whether a thread of the driver was interrupted, as those of streaming queries are to stop them."""
    return cause.kind.rpartition(".")[2] in _INTERRUPTED


def is_shut_down(message: str) -> bool:
    """Whether it ended only because the application did."""
    return bool(_SHUT_DOWN.search(message))


def _of_error_class(text: str) -> Cause:
    """What Spark logs of a query since 3.4: `{"errorClass":…,"messageParameters":…}`, without a sentence."""
    try:
        said = json.loads(text)
        values = said.get("messageParameters") or {}
        listed = ", ".join(f"{name}: {value}" for name, value in values.items())
        return Cause("", _line(f"[{said['errorClass']}] {listed}".strip()))
    except (ValueError, AttributeError):  # cut, or of another shape
        return Cause("", _line(text))


def _python_exceptions(text: str) -> list[str]:
    """The exception below the last Python traceback, after those that it was raised from; none if the first
    of them is cut."""
    tracebacks = text.split(_TRACEBACK)
    last = len(tracebacks) - 1
    first = last
    while first > 1 and tracebacks[first - 1].rstrip().endswith(_CHAINED):
        first -= 1
    found = [_python_exception(traceback) for traceback in tracebacks[first : last + 1]]
    return [one for one in found if one] if found[0] else []


def _python_exception(traceback: str) -> str:
    """The exception that stands below a traceback; "" if that is cut."""
    lines = iter(traceback.split("\n")[1:])
    kept: list[str] = []
    for line in lines:
        if kept and _AFTER_PYTHON.match(line):
            break
        if kept or (not line[:1].isspace() and line):
            kept.append(line)
    return "\n".join(kept)


def _exception(text: str) -> Cause:
    """Of `class: message`."""
    text = text.strip()
    kind, message = "", text
    if (found := _KIND.match(text)) and _EXCEPTION.search(found.group(1)):
        kind, message = found.group(1), text[found.end() :]
        if of_server := _CONNECT.match(message):  # Spark Connect's client names that of the server
            kind, message = of_server.group(1), message[of_server.end() :]
    return Cause(printable(kind), _line(message))


def _line(text: str) -> str:
    """On one line, without secrets."""
    kept = text[: 2 * _LONGEST_MESSAGE]  # more than is shown, for a secret whose mark comes after it
    before, _, word = kept.rpartition(" ") if kept != text else (kept, "", "")
    if kept != text:
        # Of a word that is cut, the mark of a secret may be missing.
        kept = f"{before}…" if "://" in word else f"{kept}…"
    lines = [_masked(line.strip()) for line in _SQL_STATE.sub("", kept).split("\n")]
    shown = printable(" ".join(line for line in lines if line.strip("^")))
    return shown if len(shown) <= _LONGEST_MESSAGE else f"{shown[:_LONGEST_MESSAGE]}…"


def without_secrets(message: str) -> str:
    """A message of Spark as it is, with secrets masked."""
    return "\n".join(map(_masked, message.split("\n")))


def _masked(line: str) -> str:
    shown = hide_in_word(hide_values(line), None)
    if "=" not in line:
        return shown
    same = next((at for at, (one, other) in enumerate(zip(shown, line, strict=False)) if one != other), None)
    return line if same is None and len(shown) == len(line) else f"{line[:same]}{MASK}"  # it may have blanks
