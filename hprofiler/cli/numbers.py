"""Numbers on the command line: within bounds, or an error that says which."""

from __future__ import annotations

import argparse


def whole_number(text: str, least: int, most: int, meaning: str) -> int:
    """`text` as a number from `least` to `most`; argparse reports the error with the option's name."""
    if not text.isdecimal() or not least <= int(text) <= most:
        raise argparse.ArgumentTypeError(f"{text!r} is not {meaning}")
    return int(text)
