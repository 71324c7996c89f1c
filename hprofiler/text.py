"""Text from elsewhere, made safe to show."""

from __future__ import annotations

import re

# What could move a terminal's cursor, reorder the text around it, or fail to encode (lone surrogates).
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """`text` with everything replaced that could do more than be read."""
    return _UNPRINTABLE.sub("\ufffd", text.replace("\n", " ").replace("\t", " "))
