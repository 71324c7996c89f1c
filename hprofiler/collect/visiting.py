"""All visits of a command, each on its own thread, until they have ended or nobody waits for them."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Sequence

from hprofiler.collect import open_files
from hprofiler.collect.beside import no_thread
from hprofiler.collect.crew import Crew
from hprofiler.collect.stop import AT_ONCE, on_interrupt
from hprofiler.collect.visit import Visit

_LAST_STEPS = 3.0

_log = logging.getLogger(__name__)


def visit_all(
    visits: Sequence[Visit], crew: Crew, on_stop: Callable[[int], None] = lambda level: None
) -> None:
    """Run all visits to their ends, each on its own thread. Ctrl-C counts as a request to stop.

    Each visit is told of such a request, then `on_stop`. After the second one nobody is waited for any
    longer than a few seconds.
    """
    open_files.allow_many()
    crew.expect(len(visits))

    def stopped(level: int) -> None:
        for visit in visits:
            _stop(visit, level)
        on_stop(level)
        if level >= AT_ONCE:
            crew.finished.wait(_LAST_STEPS)
            crew.finished.set()

    with contextlib.ExitStack() as around:
        try:
            for each in (crew.teller, crew.beside, crew.watchdog, crew.stop.telling(stopped)):
                around.enter_context(each)
            around.enter_context(on_interrupt(crew.stop.request))
        except RuntimeError as error:  # nothing has begun
            raise no_thread(error, "connect") from error
        for visit in visits:
            _begin(visit)
        crew.finished.wait()
        for visit in visits:
            visit.left_behind()


def _begin(visit: Visit) -> None:
    try:
        threading.Thread(target=visit.run, name=f"hprofiler-{visit.host.name}", daemon=True).start()
    except RuntimeError as error:
        visit.left_out(no_thread(error, visit.ledger_stage))


def _stop(visit: Visit, level: int) -> None:
    try:
        visit.stop(level)
    except Exception:  # the others must hear of it
        _log.exception("stopping %s", visit.host.name)
