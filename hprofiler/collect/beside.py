"""Small works beside the visits, of which each may block: also where no thread can be started any more."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable

from hprofiler.base.errors import HostError

_SPARE = 4  # so many may block before the next one waits
_REMEDY = (
    "allow this user more of them (`ulimit -u`, the limits `pids.max` and TasksMax of the control group), "
    "or visit fewer hosts in one run"
)

_log = logging.getLogger(__name__)


class Beside:
    """A context manager; its spare threads, which are there before the first host, end with the block."""

    def __init__(self) -> None:
        self._left: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()

    def do(self, action: Callable[[], None], name: str) -> None:
        """Have it done, on a thread of its own where there is one to be had. From any thread."""
        try:
            threading.Thread(target=action, name=name, daemon=True).start()
        except RuntimeError:
            self._left.put(action)

    def _work(self) -> None:
        for action in iter(self._left.get, None):
            try:
                action()
            except Exception:  # the next one has to be done
                _log.exception("beside the visits")

    def __enter__(self) -> Beside:
        for _ in range(_SPARE):
            threading.Thread(target=self._work, name="hprofiler-spare", daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        for _ in range(_SPARE):
            self._left.put(None)


def no_thread(error: RuntimeError, stage: str) -> HostError:
    """What there is to tell of a host for which this machine has no thread. Another error is raised again."""
    if "can't start new thread" not in str(error):
        raise error
    return HostError(stage, "no more threads can be started on this machine", _REMEDY)
