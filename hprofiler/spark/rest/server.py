"""Spark's REST interface, of a driver or a history server: `/api/v1/applications/ID/…`. Answers are not
trusted."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from hprofiler.base.answers import objects, text
from hprofiler.spark.application import Note, other_attempts
from hprofiler.spark.facts import DriverClock, SparkError

_CLOCK_SECONDS = 30.0
_DATE_PRECISE = 0.02
_DATE_TRIES = 8
_LONGEST = 1000


@dataclass(frozen=True)
class Answer:
    """JSON, and when it was asked for and came (seconds since 1970); `date` is what the server's clock said
    then, in whole seconds, if that is known."""

    content: Any
    sent: float
    received: float
    date: float | None = None


Ask = Callable[[str, Mapping[str, str]], Answer]
"""Asks for the JSON at a path below `/api/v1`. Raises HprofilerError."""


def driver_clock(ask: Ask, application: str) -> DriverClock | None:
    """The clock of an application's driver, as well as its answers allow. Raises HprofilerError."""
    server = Server(ask, time.monotonic() + _CLOCK_SECONDS)
    server.get(f"/applications/{application}")
    return server.clock.measured(lambda: server.get(f"/applications/{application}"))


class Server:
    """Asks until a deadline, and compares clocks."""

    def __init__(self, ask: Ask, deadline: float) -> None:
        self._ask = ask
        self._deadline = deadline
        self.clock = _DateClock()

    def get(self, path: str, parameters: Mapping[str, str] | None = None) -> Any:
        if time.monotonic() > self._deadline:
            raise SparkError("it answers too slowly", "read its event log: --spark FILE")
        answer = self._ask(path, parameters or {})
        self.clock.add(answer)
        return answer.content


class _DateClock:
    """The server's clock against ours, from the whole seconds of its answers.

    An answer says that the clock is ahead by more than `date - received` and less than `date + 1 - sent`.
    Answers at different moments of a second narrow that down.
    """

    def __init__(self) -> None:
        self._least, self._most = float("-inf"), float("inf")

    def add(self, answer: Answer) -> None:
        if answer.date is None:
            return
        least, most = answer.date - answer.received, answer.date + 1 - answer.sent
        if most < self._least or least > self._most:  # a clock was set, or another server answered
            self._least, self._most = least, most
        else:
            self._least, self._most = max(self._least, least), min(self._most, most)

    def now(self) -> float:
        """What the server's clock says, as well as that is known (seconds since 1970)."""
        known = self._most < float("inf")
        return time.time() + ((self._least + self._most) / 2 if known else 0.0)

    def measured(self, ask: Callable[[], object]) -> DriverClock | None:
        """Ask when the server's second is just about to change, which halves the doubt each time.

        None if the server does not say what time it is.
        """
        if self._most == float("inf"):
            return None
        for _ in range(_DATE_TRIES):
            doubt = self._most - self._least
            middle = (self._least + self._most) / 2
            time.sleep(1 - (time.time() + middle) % 1)
            ask()
            if self._most - self._least < _DATE_PRECISE:
                break
            if self._most - self._least > doubt * 0.9:  # the way there takes longer than this is precise
                break
        return DriverClock(
            round((self._least + self._most) / 2, 6),
            round((self._most - self._least) / 2, 6),
            "Date of the driver's answers",
        )


class FoundApplication(NamedTuple):
    """`attempt` is "" for an application without numbered attempts; `others` are its other ones, if the
    newest was chosen because none was named."""

    id: str
    attempt: str
    name: str
    version: str
    others: tuple[str, ...]

    @property
    def path(self) -> str:
        return f"/applications/{self.id}" + (f"/{self.attempt}" if self.attempt else "")

    @property
    def notes(self) -> list[Note]:
        return [other_attempts(self.attempt, self.others)] if self.others else []


def find_application(server: Server, wanted: str | None, attempt: str = "") -> FoundApplication:
    """The application that is wanted, or the only one; its newest attempt, if none is named."""
    listed = objects(server.get(f"/applications/{wanted}" if wanted else "/applications"))
    found = [one for one in listed if _is_safe(text(one, "id", limit=200))]
    if not found:
        raise SparkError("no Spark application is known there", "check the address")
    if len(found) > 1:
        some = ", ".join(text(one, "id", limit=200) for one in found[:5])
        raise SparkError(
            f"it knows {len(found)} applications ({some} …)", "name one: http://HOST:18080/history/ID"
        )
    attempts = objects(found[0], "attempts")
    known = {text(one, "attemptId", limit=20): one for one in reversed(attempts)}  # newest last
    identity = wanted or text(found[0], "id", limit=200)
    if attempt and attempt not in known and set(known) != {""}:
        raise SparkError(f"{identity} has no attempt {attempt}", f"its attempts are {', '.join(known)}")
    chosen = attempt if attempt in known else next(reversed(known), "")
    version = text(known.get(chosen, {}), "appSparkVersion", limit=100)
    name = text(found[0], "name", limit=_LONGEST)
    others = () if attempt else tuple(one for one in known if one != chosen)
    return FoundApplication(identity, chosen if _is_safe(chosen) else "", name, version, others)


def _is_safe(word: str) -> bool:
    """Whether it can be a part of a path."""
    return bool(word) and word.isascii() and all(letter.isalnum() or letter in "_-" for letter in word)


def moment(value: object, name: str) -> int:
    """Milliseconds since 1970 of a date such as `2015-02-03T16:42:59.720GMT`; 0 if it is none."""
    written = text(value, name, limit=40)
    try:
        parsed = datetime.fromisoformat(f"{written.removesuffix('GMT')}+00:00")
        return max(0, round(parsed.timestamp() * 1000))
    except (ValueError, OverflowError):
        return 0
