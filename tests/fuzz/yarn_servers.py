"""A fake ResourceManager, its nodes and a Spark driver, for fuzzing the HTTP clients."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from typing import Any
from unittest import mock
from urllib.parse import urlsplit

import requests
from urllib3.response import HTTPResponse

from hprofiler.resolve.yarn import rest
from hprofiler.resolve.yarn.applications import application, running
from hprofiler.resolve.yarn.containers import containers
from hprofiler.resolve.yarn.ids import belongs
from hprofiler.resolve.yarn.spark import spark_facts
from tests.fuzz.invariants import check_text, check_texts, ours

APPLICATION = "application_1700000000000_0042"
BETWEEN = b"\0"
"""Separates answers in the input."""
_QUESTIONS = ("apps", "appattempts", "containers", "nodes", "executors", "stages")
_STATUS = re.compile(rb"([1-5][0-9]{2}) ?([\x20-\x7e]*)\n")
_HEADERS = ("Location", "Refresh", "WWW-Authenticate", "Content-Encoding")
_MOST_ASKED = 50


class _Servers(requests.adapters.BaseAdapter):
    """All servers. Each kind of request has its answer; if there are too few, some share one.

    An answer is a body. A line before it may have a status and the value of all headers.
    """

    def __init__(self, answers: list[bytes]) -> None:
        super().__init__()
        self._answers = answers
        self._asked = 0

    def send(self, request: requests.PreparedRequest, *_: Any, **__: Any) -> requests.Response:
        self._asked += 1
        assert self._asked <= _MOST_ASKED, request.url
        words = urlsplit(request.url or "").path.split("/")
        number = next((_QUESTIONS.index(word) for word in reversed(words) if word in _QUESTIONS), 0)
        status, headers, body = _answer(self._answers[number % len(self._answers)])
        answer = requests.Response()
        answer.status_code, answer.url, answer.request = status, str(request.url), request
        answer.headers.update(headers)
        answer.raw = HTTPResponse(io.BytesIO(body), headers, status, preload_content=False)
        return answer

    def close(self) -> None:
        pass


def _answer(data: bytes) -> tuple[int, Mapping[str, str], bytes]:
    told = _STATUS.match(data)
    if not told:
        return 200, {}, data
    words = told[2].decode()
    return int(told[1]), dict.fromkeys(_HEADERS, words) if words else {}, data[told.end() :]


def yarn(data: bytes) -> None:
    """Fuzzes their answers and redirects."""
    asking = rest.Rest()
    for scheme in ("http://", "https://"):
        asking._session.mount(scheme, _Servers(data.split(BETWEEN)))
    manager = rest.ResourceManager(asking, ["http://rm:8088"])
    with mock.patch.object(rest, "within", lambda seconds, work: work()):
        ours(lambda: check_texts(_told(application, manager, APPLICATION)))
        ours(lambda: check_texts(_told(running, manager, {"name": "a*", "queue": "b", "tag": "c"})))
        ours(lambda: _check_labels(spark_facts(manager, APPLICATION).labels))
        ours(lambda: _check_containers(*_told(containers, manager, APPLICATION)))


def _told(ask: Any, *words: object) -> Any:
    """The answer; checks that an error has no control characters."""
    try:
        return ask(*words)
    except rest.YarnError as error:
        check_text(error.reason)
        raise


def _check_labels(labels: Mapping[str, Mapping[str, str]]) -> None:
    for container, own in labels.items():
        assert container.isprintable() and all(value.isprintable() for value in own.values())


def _check_containers(found: Any, unknown: Any) -> None:
    check_texts(unknown)
    assert all(belongs(one.id, APPLICATION) and one.node.isprintable() for one in found)
