"""The log of `--audit`: its first and its last line."""

from __future__ import annotations

import argparse
import os
import pwd
import shlex
import sys
from typing import TYPE_CHECKING

from hprofiler.base.passwords import hide_in_word, hide_values
from hprofiler.base.paths import at_home

if TYPE_CHECKING:
    from hprofiler.collect.audit import Audit
    from hprofiler.resolve import Located


def begin(options: argparse.Namespace, located: Located) -> Audit | None:
    """The log, if `--audit` is given; kept in the options for `end`."""
    from hprofiler.collect.audit import Audit

    name = getattr(options, "audit", None)
    if not name:
        return None

    def lost(why: str) -> None:
        told = f"hprofiler: --audit {name}: {why}: further actions are not logged\n"
        sys.stderr.write(told)

    typed = shlex.join(["hprofiler", *(_harmless(word, options) for word in options.words)])
    begun = Audit.append_to(at_home(name), lost, typed, _who(options, located))
    options.begun_audit = begun
    return begun


def end(options: argparse.Namespace, exit_code: int | None, why: str) -> None:
    """Write the last line, if the log was started."""
    begun: Audit | None = getattr(options, "begun_audit", None)
    if begun:
        begun.end(exit_code, _harmless(why, options))


def _harmless(word: str, options: argparse.Namespace) -> str:
    return hide_values(hide_in_word(word, getattr(options, "yarn", None)))


def _who(options: argparse.Namespace, located: Located) -> dict[str, object]:
    """User, machine, version, target and number of hosts."""
    from hprofiler.base.version import __version__

    uid = os.geteuid()
    try:
        user = pwd.getpwuid(uid).pw_name
    except KeyError:
        user = ""
    return {
        "user": user,
        "uid": uid,
        "sudo_user": os.environ.get("SUDO_USER"),
        "machine": os.uname().nodename,
        "version": __version__,
        "target": _harmless(f"{located.target.kind} {located.target.name}".strip(), options),
        "hosts": len(located.hosts),
    }
