"""What a host is searched for, and which processes of the answer are meant."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches

from hprofiler.agent.messages import Ignored, Listed
from hprofiler.agent.requests import Find
from hprofiler.agent.session import Found
from hprofiler.base.text import some
from hprofiler.collect.containers import Contained, by_name, with_relatives
from hprofiler.model import Host, Outcome, Process, Selector

_HELPERS = frozenset(
    {"org.apache.hadoop.yarn.server.nodemanager.containermanager.localizer.ContainerLocalizer"}
)
"""Main classes of what YARN runs in a job's containers for itself."""
_MOST_CONTAINERS = 9000
"""An agent takes 10,000. The oldest ones have ended."""
_SHOWN = 3
_JAVA = re.compile(r"(?:\S*/)?java\b")
_WORD = re.compile(r"[A-Za-z_$][\w$]*")
# Least similarity of a word that may be meant, from 0 to 1.
_LIKE = 0.8


class Search:
    """The search of one host. `host` has the containers that are known now."""

    def __init__(self, host: Host, selector: Selector) -> None:
        self.selector = selector
        self.contained = Contained(host)
        self._host = host

    def request(self, own: str | None, pids: Sequence[int] | None = None) -> Find:
        """What the agent is asked for; `own` is the container that it is in, `pids` the result of a pipe."""
        selector = self.selector
        newest = list(self._host.containers)[-_MOST_CONTAINERS:]
        query = None if selector.kind == "containers" else selector.query
        return Find(
            selector=query if pids is None else {"kind": "pids", "pids": pids},
            native=selector.native,
            containers=[*newest, *(f"{one}*" for one in self._host.prefixes)] or None,
            own=own,
            owners=self.contained.owners(),
            manager_port=self.contained.manager_port(),
            children=selector.children,
            starters=selector.starters,
        )

    @property
    def pipe(self) -> str:
        return str(self.selector.query.get("pipe", self.selector.text))

    def sift(
        self, found: Found, overlooked: Sequence[Ignored] = (), earlier: Sequence[Process] = ()
    ) -> tuple[Found, list[Outcome]]:
        """The processes that are meant, named by what is known of them; and outcomes of doubtful ones.

        `overlooked` could not be looked at before. Relatives of `earlier` processes are meant too.
        """
        helpers = self._helpers(found.processes)
        meant = [one for one in found.processes if one.pid not in helpers]
        doubts = {one.pid: self.contained.doubt(one) for one in meant}
        outcomes = list(filter(None, doubts.values()))
        processes = tuple(self.contained.known(one) for one in meant if not doubts[one.pid])
        processes = with_relatives(processes, earlier)
        processes, others_named = by_name(processes, self.selector.name, earlier)
        told = {one.pid for one in found.ignored}
        helping = (Ignored(pid, f"{name}, a helper of YARN") for pid, name in helpers.items())
        ignored = (
            *others_named,
            *helping,
            *(one for one in overlooked if one.pid not in told),
            *found.ignored,
        )
        ignored = tuple(map(self.contained.named, ignored))
        return replace(found, processes=processes, ignored=ignored), outcomes

    def _helpers(self, processes: Sequence[Process]) -> dict[int, str]:
        """Names of the processes that YARN runs for the job, and that the job knows nothing of, by pid. A
        selector may name them."""
        if self.selector.kind != "containers":
            return {}
        helpers = (one for one in processes if one.main_class in _HELPERS)
        return {one.pid: one.main_class.rpartition(".")[2] for one in helpers}


def near_names(selector: Selector, listed: Sequence[Listed]) -> tuple[Ignored, ...]:
    """Processes whose command lines have a word like the selector's text: JVMs, unless others match too."""
    text = selector.text.rpartition(".")[2]
    for one in listed:
        if selector.native or _JAVA.match(one.command):
            near = get_close_matches(text, _WORD.findall(one.command), n=1, cutoff=_LIKE)
            if near and near[0] != text:
                return (Ignored(one.pid, f"did you mean {near[0]}?"),)
    return ()


def idle_reason(found: Found, host: Host, selector: Selector) -> str:
    """Why nothing on a host matches, with the first process that was left out, or those that were named."""
    if selector.kind == "pids" and found.ignored:
        return one_by_one(found.ignored)
    count = len(host.containers)
    where = f" in {'its container' if count == 1 else f'any of its {count} containers'}" if count else ""
    ignored = f"; left out: {found.ignored[0].pid} ({found.ignored[0].reason})" if found.ignored else ""
    looked = f"{found.searched} {'process' if found.searched == 1 else 'processes'} searched"
    if not found.searched:
        looked = "it has no other processes than those of this connection"
    return f"no process matches{where} ({looked}{ignored})"


def one_by_one(ignored: Sequence[Ignored]) -> str:
    """ "process 7: there is no such process"."""
    return some([f"process {one.pid}: {one.reason}" for one in ignored], _SHOWN, "processes")
