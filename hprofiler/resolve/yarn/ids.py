"""Ids as YARN writes them: application_1700000000000_0042, container_e17_1700000000000_0042_01_000003."""

from __future__ import annotations

import re

_APPLICATION = re.compile(r"application_([0-9]{1,19})_([0-9]{1,10})")
_CONTAINER = re.compile(
    r"container_(?:e[0-9]{1,10}_)?([0-9]{1,19}_[0-9]{1,10})_([0-9]{1,10})_[0-9]{1,19}(?![0-9])"
)
_LIKE_ID = re.compile(
    r"(?:(?:application|job|container|appattempt|attempt|task)_e?|[a-z]*_?[0-9]{10,19}_)[0-9]\S*$"
)


def is_application_id(words: str) -> bool:
    return _APPLICATION.fullmatch(words) is not None


def application_id(words: str) -> str:
    """An application's id as YARN writes it: the number has at least four digits."""
    match = _APPLICATION.fullmatch(words)
    return f"application_{int(match.group(1))}_{int(match.group(2)):04}" if match else words


def application_of(words: str) -> str | None:
    """The application of an application id or a MapReduce job id (`job_…`); else None."""
    told = f"application_{words[4:]}" if words.startswith("job_") else words
    return told if is_application_id(told) else None


def looks_like_id(words: str) -> bool:
    """Whether it looks like an id, also a malformed one."""
    return _LIKE_ID.match(words) is not None


def container_id(words: str) -> str | None:
    """The container id in a text such as the address of a log."""
    match = _CONTAINER.search(words)
    return match.group() if match else None


def prefix_of(container: str) -> str:
    """How the ids of all containers of an application begin, of all its attempts; "" of no container."""
    match = _CONTAINER.fullmatch(container)
    return container[: match.end(1) + 1] if match else ""


def belongs(container: str, application: str) -> bool:
    """Whether it is the id of a container of this application."""
    match = _CONTAINER.fullmatch(container)
    return match is not None and f"application_{match.group(1)}" == application


def attempt_of(container: str) -> str:
    """The attempt number in a container id; "" if it is not one."""
    match = _CONTAINER.fullmatch(container)
    return str(int(match.group(2))) if match else ""
