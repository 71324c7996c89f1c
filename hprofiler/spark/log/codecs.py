"""Files of event logs, unpacked: plain, gzip, Zstandard, and Java's own framings of LZ4, Snappy and LZF.

The first bytes say what a file is, since names get lost on the way. Every block is bounded before it is
unpacked. A file that is still written, or was cut, gives all blocks that are whole.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Protocol

_BLOCK = 1 << 20
_LARGEST_BLOCK = 1 << 25
"""LZ4Block's largest; the others are smaller by default."""
_WIDEST_WINDOW = 1 << 27
_PIECE = 1 << 10
"""Packed bytes that are unpacked at once: they may be a thousand times as many plain ones, or many members of
a file, after each of which the others are copied."""
_LZ4 = b"LZ4Block"
_SNAPPY = b"\x82SNAPPY\x00"


class Stream(Protocol):
    def read(self, size: int, /) -> bytes: ...


class _Cut(Exception):
    """The stream ended in the middle of a block."""


class _Damaged(Exception):
    """What follows cannot be unpacked."""


class Decoded:
    """The plain bytes of a stream, block by block. Once they are read, `cut` says whether the last block was
    not whole, and `damage` why the rest of the file cannot be read, "" if it was."""

    def __init__(self, stream: Stream) -> None:
        self.cut = False
        self.damage = ""
        self._source = _Peeked(stream)

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._blocks()
        except _Cut:
            self.cut = True
        except _Damaged as error:
            self.damage = str(error)

    def _blocks(self) -> Iterator[bytes]:
        start = self._source.peek(len(_LZ4))
        if start.startswith(b"\x28\xb5\x2f\xfd") or _is_skippable(start):
            return _zstd(self._source)
        if start.startswith(b"\x1f\x8b"):
            return _gzip(self._source)
        if start == _LZ4:
            return _lz4_blocks(self._source)
        if start == _SNAPPY:
            return _snappy_java(self._source)
        if start[:2] == b"ZV" and start[2:3] in (b"\x00", b"\x01"):
            return _lzf(self._source)
        return iter(lambda: self._source.read(_BLOCK), b"")


class _Peeked:
    """A stream whose first bytes can be looked at, and which gives as many bytes as asked for."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._ahead = b""

    def peek(self, size: int) -> bytes:
        while len(self._ahead) < size and (more := self._stream.read(size - len(self._ahead))):
            self._ahead += more
        return self._ahead

    def read(self, size: int = _BLOCK) -> bytes:
        if self._ahead:
            found, self._ahead = self._ahead[:size], self._ahead[size:]
            return found
        return self._stream.read(size)

    def exactly(self, size: int) -> bytes:
        """So many bytes. Raises _Cut if there are fewer."""
        found = self.read(size)
        if len(found) < size:
            pieces = [found]
            missing = size - len(found)
            while missing:
                piece = self.read(min(missing, _BLOCK))
                if not piece:
                    raise _Cut
                pieces.append(piece)
                missing -= len(piece)
            found = b"".join(pieces)
        return found


def _is_skippable(start: bytes) -> bool:
    return start[1:4] == b"\x2a\x4d\x18" and start[:1] >= b"\x50" and start[:1] < b"\x60"


def _gzip(source: _Peeked) -> Iterator[bytes]:
    """Members follow each other; the last one may be open."""
    unpacker = None
    packed = source.read(_PIECE)
    while packed:
        unpacker = unpacker or zlib.decompressobj(wbits=31)
        try:
            plain = unpacker.decompress(packed, _BLOCK)
        except zlib.error as error:
            raise _Damaged(f"gzip: {error}") from error
        if plain:
            yield plain
        packed = unpacker.unconsumed_tail
        if unpacker.eof:
            packed = unpacker.unused_data.lstrip(b"\0")
            unpacker = None
        packed = packed or source.read(_PIECE)
    if unpacker is not None:
        yield unpacker.flush()
        raise _Cut


def _zstd(source: _Peeked) -> Iterator[bytes]:
    """Frames follow each other, one for each time that Spark flushed; the last one may be open."""
    import zstandard

    frames = zstandard.ZstdDecompressor(max_window_size=_WIDEST_WINDOW)
    unpacker = None
    while packed := source.read(_PIECE):
        while packed:
            unpacker = unpacker or frames.decompressobj()
            try:
                yield unpacker.decompress(packed)
            except zstandard.ZstdError as error:
                raise _Damaged(f"zstd: {error}") from error
            packed = b""
            if unpacker.eof:
                packed, unpacker = unpacker.unused_data, None
    if unpacker is not None:
        raise _Cut


def _lz4_blocks(source: _Peeked) -> Iterator[bytes]:
    """LZ4Block of lz4-java. A block of no bytes ends a stream, and another stream may follow."""
    from cramjam import DecompressionError, lz4

    while source.peek(1):
        head = source.exactly(21)
        packed_size, size = (int.from_bytes(head[at : at + 4], "little") for at in (9, 13))
        if head[:8] != _LZ4 or packed_size > _LARGEST_BLOCK or size > _LARGEST_BLOCK:
            raise _Damaged("lz4: not a block")
        packed = source.exactly(packed_size)
        if not size:
            continue
        if head[8] >> 4 == 1:
            yield packed
            continue
        try:
            plain = bytes(lz4.decompress_block(packed, output_len=size))
        except DecompressionError as error:
            raise _Damaged(f"lz4: {error}") from error
        yield plain


def _snappy_java(source: _Peeked) -> Iterator[bytes]:
    """The stream of snappy-java: its header, which may come again, and raw chunks with their lengths."""
    from cramjam import DecompressionError, snappy

    while source.peek(1):
        head = source.exactly(4)
        if head == _SNAPPY[:4]:
            source.exactly(12)
            continue
        size = int.from_bytes(head, "big")
        if size > _LARGEST_BLOCK:
            raise _Damaged("snappy: not a chunk")
        packed = source.exactly(size)
        try:
            if snappy.decompress_raw_len(packed) > _LARGEST_BLOCK:
                raise _Damaged("snappy: a chunk is too large")
            plain = bytes(snappy.decompress_raw(packed))
        except DecompressionError as error:
            raise _Damaged(f"snappy: {error}") from error
        yield plain


def _lzf(source: _Peeked) -> Iterator[bytes]:
    """Chunks of compress-lzf, of at most 64 KiB."""
    while source.peek(1):
        head = source.exactly(5)
        if head[:2] != b"ZV" or head[2] > 1:
            raise _Damaged("lzf: not a chunk")
        size = int.from_bytes(head[3:], "big")
        if head[2] == 0:
            yield source.exactly(size)
            continue
        plain_size = int.from_bytes(source.exactly(2), "big")
        yield _lzf_chunk(source.exactly(size), plain_size)


def _lzf_chunk(packed: bytes, size: int) -> bytes:
    """Runs of literal bytes, and references to what came before. No maintained library reads this format."""
    plain = bytearray()
    at, end = 0, len(packed)
    try:
        while at < end:
            control = packed[at]
            at += 1
            if control < 32:
                plain += packed[at : at + control + 1]
                at += control + 1
                continue
            length = control >> 5
            if length == 7:
                length += packed[at]
                at += 1
            since = len(plain) - ((control & 31) << 8) - packed[at] - 1
            at += 1
            length += 2
            if since < 0:
                raise _Damaged("lzf: a reference to nothing")
            piece = plain[since : since + length]
            while len(piece) < length:  # it overlaps what it writes
                piece *= 2
            plain += piece[:length]
    except IndexError:
        raise _Damaged("lzf: a chunk ends too early") from None
    if len(plain) != size:
        raise _Damaged("lzf: a chunk has another length")
    return bytes(plain)
