"""Options of `hprofiler archive`, and of a run that is archived."""

from __future__ import annotations

import argparse
import os

from hprofiler.cli.options.numbers import age_to_remove, named

VARIABLE = "HPROFILER_ARCHIVE"
_PLACE = "the archive: a folder, or an address such as s3://bucket/archive"

_ADD = """\
examples:
  hprofiler archive add results --to /srv/archive
  hprofiler archive add base-1 base-2 base-3 --to /srv/archive --app billing-base
  hprofiler archive add nightly-* --to s3://team/archive --pseudonymise

exit status:
  0  all runs are in the archive
  2  bad usage
  3  some runs, or some profiles of runs, could not be added
  4  no run could be added, or the archive cannot be written

docs/archive.md
"""
_COMPACT = """\
example:
  hprofiler archive compact /srv/archive

Do it once a day or week. Runs may be added and questions asked meanwhile.
"""
_PRUNE = "example:\n  hprofiler archive prune /srv/archive --older-than 90d\n"
_CHECK = """\
example:
  hprofiler archive check /srv/archive

exit status:
  0  all files can be read, and agree with each other
  2  bad usage
  3  something is damaged or missing
"""
_SQL = """\
examples:
  hprofiler archive sql                                print which tables there are
  hprofiler archive sql /srv/archive 'SELECT application, count(*) FROM runs GROUP BY ALL'
  hprofiler archive sql 'FROM processes LIMIT 5' --json         asks $HPROFILER_ARCHIVE

docs/reference/archive.md has all columns.
"""


def add_to(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True, title="verbs")

    def verb(name: str, summary: str, epilog: str) -> argparse.ArgumentParser:
        made: argparse.ArgumentParser = verbs.add_parser(
            name,
            help=summary,
            description=f"{summary[:1].upper()}{summary[1:]}.",
            epilog=epilog,
            add_help=False,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        made.add_argument("-h", "--help", action="help", help="print this help")
        return made

    add = verb("add", "add run folders to an archive, which is made if it is not there", _ADD)
    add.add_argument("folders", nargs="+", metavar="RUN", help="run folder")
    add.add_argument(
        "--to",
        dest="place",
        type=named,
        default=os.environ.get(VARIABLE) or None,
        metavar="PLACE",
        help=f"{_PLACE} (default: ${VARIABLE})",
    )
    _add_application(add)
    _add_pseudonymise(add)
    add.add_argument("--json", action="store_true", help="print the result as JSON")
    compact = verb("compact", "join the files of each month and application", _COMPACT)
    _add_place(compact)
    prune = verb("prune", "remove old runs from an archive", _PRUNE)
    _add_place(prune)
    prune.add_argument(
        "--older-than",
        type=age_to_remove,
        required=True,
        metavar="AGE",
        help="remove runs that started so long ago: 90d, 12w or 48h",
    )
    check = verb("check", "read all of an archive, and report what is damaged or missing", _CHECK)
    _add_place(check)
    sql = verb("sql", "ask an archive in SQL (of DuckDB)", _SQL)
    sql.add_argument("place", nargs="?", type=named, metavar="PLACE", help=f"{_PLACE} (default: ${VARIABLE})")
    sql.add_argument("query", nargs="?", metavar="QUERY", help="one statement; without it: print the tables")
    sql.add_argument("--json", action="store_true", help="print the rows as JSON")
    parser.epilog = "examples:\n  hprofiler archive add results --to /srv/archive\n" + "".join(
        f"  hprofiler archive {rest}\n"
        for rest in ("compact /srv/archive", "prune /srv/archive --older-than 90d", "check /srv/archive")
    )


def add_to_run(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("archive")
    group.add_argument(
        "--archive",
        type=named,
        metavar="PLACE",
        help=f"also add the run to {_PLACE} (docs/archive.md)",
    )
    _add_application(group)
    _add_pseudonymise(group)


def _add_place(parser: argparse.ArgumentParser) -> None:
    place = os.environ.get(VARIABLE) or None
    parser.add_argument(
        "place",
        nargs="?" if place else None,
        type=named,
        default=place,
        metavar="PLACE",
        help=f"{_PLACE} (default: ${VARIABLE})",
    )


def _add_application(group: argparse._ActionsContainer) -> None:
    group.add_argument(
        "--app",
        type=named,
        metavar="NAME",
        help="archive the run as one of this application (default: the name of the Spark application, the "
        "YARN application or pods, or the main class, or what -j says)",
    )


def _add_pseudonymise(group: argparse._ActionsContainer) -> None:
    group.add_argument(
        "--pseudonymise",
        action="store_true",
        help="archive hashes of the names of hosts and users; $HPROFILER_PSEUDONYM_KEY is a secret of yours",
    )
