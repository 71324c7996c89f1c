"""Sentences on what could be better in queries and streaming queries, by the codes of findings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hprofiler.model.measures import counted, duration, size

TEXTS = {
    "small-files-read": "{operator} in {where} reads {files:,} files of {mean} each{cost}",
    "small-files-written": "{operator} in {where} makes {files:,} files of {mean} each{cost}",
    "tiny-partitions": "stage {stage} in {where} reads {bytes} of shuffle in {tasks:,} partitions{cost}",
    "join-multiplies": "{operator} in {where} makes {rows:,} rows of {left:,} and {right:,}{cost}",
    "compares-all-rows": "{operator} in {where} compares each of {left:,} rows with each of {right:,}{cost}",
    "filter-keeps-little": "a filter in {where} keeps {rows:,} of {read:,} rows of {scan}{cost}",
    "broadcast-fits": "{operator} in {where} shuffles {other} to join {bytes}{table}{cost}",
    "operator-spills": "{operator} in {where} spills {bytes}{cost}",
    "batches-late": "{late:,} of {batches:,} batches of {stream} took longer than its trigger interval, "
    "{interval} by the times at which batches begin (median {median}{cost}){mostly}",
    "batches-back-to-back": "batches of {stream} take longer than its trigger interval: {busy:.0%} of "
    "{batches:,} begin as soon as the one before has ended (median {median}){mostly}",
    "input-exceeds-processing": "in {behind:.0%} of {batches:,} batches of {stream} more rows came than were "
    "processed (median {input} and {processed} a second){mostly}",
    "keeps-up": "{stream} keeps up: {batches:,} batches took {median} each{every}",
    "barely-keeps-up": "{stream} barely keeps up: {batches:,} batches took {median} each{every}{mostly}",
    "batches-without-pause": "{batches:,} batches of {stream} ran without a pause, {median} each{mostly}",
    "batches-slow-down": "batches of {stream} became slower, from {first} to {last} each{mostly}",
    "state-grows": "the state of {stream} grew from {first:,} to {last:,} rows ({bytes}) in {batches:,} "
    "batches{why}",
}
"""The text of each code."""
_KINDS = {
    "source": "to ask the source what is new (latestOffset)",
    "planning": "to plan (queryPlanning)",
    "checkpoint": "to write checkpoints (walCommit, commitOffsets)",
    "run": "to run (addBatch)",
}
_MOSTLY = 0.5
_SIZES = ("bytes", "other", "threshold")
_TIMES = ("median", "interval")


def query_text(code: str, parameters: Mapping[str, Any], seconds: float) -> str:
    shown = dict(parameters)
    if "files" in shown:
        shown["mean"] = size(shown["bytes"] / shown["files"])
    if "query" in shown:
        more = shown["queries"] - 1
        shown["where"] = f"query {shown['query']}" + (f" and {counted(more, 'others')}" if more else "")
    if "table" in shown:
        shown["table"] = f" of {shown['table']}" if shown["table"] else ""
    if "stream" in shown:
        shown["stream"] = f"streaming query {shown['stream']}"
    if "kind" in shown:
        much = shown["kindShare"] >= _MOSTLY
        shown["mostly"] = f", {shown['kindShare']:.0%} of their time {_KINDS[shown['kind']]}" if much else ""
    if code == "batches-slow-down":
        shown.update(first=duration(shown["first"]), last=duration(shown["last"]))
    if code.endswith("keeps-up"):
        shown["every"] = f", one every {duration(shown['interval'])}" if shown["interval"] else ""
    if "watermark" in shown:
        shown["why"] = "" if shown["watermark"] else ", without a watermark"
    for name in ("input", "processed"):
        if name in shown:
            shown[name] = f"{shown[name]:,.0f}"
    shown.update({name: size(shown[name]) for name in _SIZES if name in shown})
    shown.update({name: duration(shown[name]) for name in _TIMES if name in shown})
    behind = "; {} in all" if "stream" in shown else " (costs up to {})"
    shown["cost"] = behind.format(duration(seconds)) if seconds else ""
    return TEXTS[code].format_map(shown)
