"""What findings say of well-known code, by its category in `flamegraph/rules/frames.yaml`."""

from __future__ import annotations

from dataclasses import dataclass

from hprofiler._flamegraph import frame_category
from hprofiler.analysis.words import package_length


@dataclass(frozen=True)
class Family:
    """Methods that do one thing: words that end "47 points …", and words that end "31 % goes to …"."""

    category: str
    points: str
    doing: str


FAMILIES = {
    category: Family(category, points, doing)
    for category, points, doing in (
        ("regex-compile", "compile regular expressions", "compiling regular expressions"),
        ("regex-match", "match regular expressions", "matching regular expressions"),
        ("stack-traces", "fill in stack traces of exceptions", "stack traces of exceptions"),
        ("dates", "format or parse dates", "formatting and parsing dates"),
        ("formatting", "format text", "formatting text"),
        ("serialization", "serialize or deserialize objects", "serializing and deserializing objects"),
        (
            "records",
            "encode or decode Avro, Protocol Buffers or Thrift",
            "encoding and decoding Avro, Protocol Buffers or Thrift",
        ),
        ("json", "read or write JSON", "reading and writing JSON"),
        ("xml", "read or write XML", "reading and writing XML"),
        ("compression", "compress or decompress", "compressing and decompressing"),
        ("hashes", "compute checksums and digests", "checksums and digests"),
        ("crypto", "encrypt, decrypt or sign", "encrypting, decrypting and signing"),
        ("logging", "write logs", "writing logs"),
        ("class-loading", "load classes", "loading classes"),
        ("big-numbers", "compute with BigDecimal and BigInteger", "arithmetic of BigDecimal and BigInteger"),
    )
}
# Code of the application, and what an engine does itself, such as Spark: a finding may name its methods.
_APPLICATION = "application"
_ENGINES = frozenset(
    ("codegen", "write", "scan", "join", "aggregate", "sort", "shuffle", "network", "python-work")
)
_JDK = ("java.", "java/", "sun.", "sun/", "jdk.", "jdk/")
_JAVA = ("interpreted", "c1", "jit", "inlined")


def family_of(name: str) -> Family | None:
    """The family of a method, by its name; None for one of none."""
    return FAMILIES.get(frame_category(name) or "")


def is_own(name: str, kind: str) -> bool:
    """Whether a frame is of the application, or of what an engine does itself."""
    java = "." in name if kind in _JAVA else kind == "plain" and package_length(name) > 0
    category = frame_category(name) if java else None
    return category == _APPLICATION or (category in _ENGINES and not name.startswith(_JDK))
