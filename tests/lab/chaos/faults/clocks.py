"""Clocks that are off."""

from __future__ import annotations

from typing import List, Type

from tests.lab.chaos.fault import Fault

FAULTS: List[Type[Fault]] = []
