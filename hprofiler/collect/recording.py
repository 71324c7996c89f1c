"""Recording: all hosts at the same time, and those that join them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from hprofiler.collect.canaries import Canaries
from hprofiler.collect.fetching import ProfileSink
from hprofiler.collect.following import WITHOUT_JOINING, Following, RecordingFollower
from hprofiler.collect.limits import USUAL, Care
from hprofiler.collect.recording_visit import RecordingVisit
from hprofiler.collect.stop import AT_ONCE, Stop
from hprofiler.collect.visit_group import HostProgress, Listener, Reach, StartGate, VisitGroup, silent
from hprofiler.model import Host, HostRecord, Sampling, Selector

_log = logging.getLogger(__name__)

_KEPT_EVERY = 10.0  # seconds
_REST = 20.0
"""As many times as long as it took."""
_ENDING = "the recording is over; fetching the recordings; press Ctrl-C to end at once"
_STOPPING = "stopping and fetching the recordings; press Ctrl-C again to end at once"


def collect(
    hosts: Sequence[Host],
    selector: Selector,
    sampling: Sampling,
    reach: Reach,
    sink: ProfileSink,
    listener: Listener = silent,
    stop: Stop | None = None,
    care: Care = USUAL,
    following: Following | None = None,
    keep: Callable[[list[HostRecord]], None] | None = None,
) -> list[HostRecord]:
    """Record the selector's processes on all hosts at the same time; one result per host, in order.

    `listener` is called on this thread. The first `stop.request()` ends the recording and keeps the results,
    the second ends everything at once. With `following`, processes that start during the recording join it;
    the results of hosts that joined it come last. `keep` gets the results so far, again and again, on a
    thread of its own.
    """
    gate = StartGate(len(hosts), 2 * reach.timeout)
    group = VisitGroup(reach, listener, stop, gate.connecting)
    flock = Canaries() if care.canary else None
    follows = following is not None and selector.kind not in WITHOUT_JOINING

    def visit_of(host: Host) -> RecordingVisit:
        return RecordingVisit(host, group, selector, longest, sink, gate, care, flock, follows)

    def on_stop(level: int) -> None:
        gate.open()
        words = _ENDING if group.stop.finished else _STOPPING
        group.report(HostProgress("", "stop", words if level < AT_ONCE else "ending at once"))

    wait = following.wait if following else 0.0
    longest = replace(sampling, duration=sampling.duration + wait)
    visits = [visit_of(host) for host in hosts]
    gate.found = wait > 0
    if following and follows:
        follower = RecordingFollower(following, sampling.duration, gate, group, visits, visit_of)
        follower.begin()
        visits = follower.visits
    if keep is not None:
        group.in_background(partial(_keep_often, keep, group, visits))
    group.run(visits, on_stop)
    return [visit.result() for visit in visits]


def _keep_often(
    keep: Callable[[list[HostRecord]], None], group: VisitGroup, visits: Sequence[RecordingVisit]
) -> None:
    """So that little is lost if this process is killed."""
    rest = _KEPT_EVERY
    while not group.wait(rest):
        began = time.monotonic()
        try:
            keep([visit.result() for visit in tuple(visits)])
        except Exception:  # the end, where it matters, says what is wrong
            _log.exception("keeping the results so far")
        rest = max(_KEPT_EVERY, _REST * (time.monotonic() - began))
