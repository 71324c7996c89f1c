"""A program that deletes files, small enough to be written by a shell: for containers without rm.

A file that was made in such a container can be deleted by no shell. But where the shell has printf it can
write this program, which then deletes that file and the one it is in itself. x86-64 only.
"""

from __future__ import annotations

import struct

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")  # type, flags, offset, address, physical address, sizes, alignment
_ENTRY = struct.Struct("<QQ")
_LOAD, _DYNAMIC, _INTERPRETER, _STACK, _NONE = 1, 2, 3, 0x6474E551, 0
_STRINGS, _SYMBOLS = 5, 6  # what glibc's loader looks up whether or not it needs them
_ALL_RIGHTS, _PAGE = 7, 4096
_POSITION_INDEPENDENT, _X86_64 = 3, 62
_SEGMENTS = 4
# The stack begins with the number of arguments, then they come, then a zero.
_CODE = bytes.fromhex(
    "5b"  # pop rbx                 the number
    "5f"  # pop rdi                 our own name
    "31db"  # xor ebx, ebx
    "5f"  # pop rdi                 the next one, or zero
    "4885ff"  # test rdi, rdi
    "7409"  # jz to the end
    "6a57"  # push 87
    "58"  # pop rax                 unlink
    "0f05"  # syscall
    "09c3"  # or ebx, eax           what went wrong stays in its low bits
    "ebf1"  # jmp to the next one
    "89df"  # mov edi, ebx
    "6a3c"  # push 60
    "58"  # pop rax                 exit
    "0f05"  # syscall
)
ZEROS = r"\0" * 6
"""What `printed` calls $z."""


def remover(by_loader: bool) -> bytes:
    """The program; it exits with 0 where all are deleted.

    Run by the kernel it may name no interpreter, run by glibc's loader it has to.
    """
    interpreter = b"-\0"
    dynamic = _ENTRY.pack(_STRINGS, 0) + _ENTRY.pack(_SYMBOLS, 0) + _ENTRY.pack(0, 0)
    at_dynamic = _HEADER.size + _SEGMENTS * _SEGMENT.size
    at_interpreter = at_dynamic + len(dynamic)
    entry = at_interpreter + len(interpreter)
    end = entry + len(_CODE)
    header = _HEADER.pack(
        b"\x7fELF\x02\x01\x01",
        _POSITION_INDEPENDENT,
        _X86_64,
        1,
        entry,
        _HEADER.size,
        0,
        0,
        _HEADER.size,
        _SEGMENT.size,
        _SEGMENTS,
        0,
        0,
        0,
    )
    named = _INTERPRETER if by_loader else _NONE
    segments = [
        (named, 4, at_interpreter, at_interpreter, at_interpreter, len(interpreter), len(interpreter), 1),
        (_LOAD, _ALL_RIGHTS, 0, 0, 0, end, end, _PAGE),
        (_DYNAMIC, 6, at_dynamic, at_dynamic, at_dynamic, len(dynamic), len(dynamic), 8),
        (_STACK, 6, 0, 0, 0, 0, 0, 0),  # without it the loader makes the stack executable
    ]
    return header + b"".join(_SEGMENT.pack(*one) for one in segments) + dynamic + interpreter + _CODE


def printed() -> str:
    """The program as printf takes it, in double quotes. $t is 3 for the loader, else 0; $z are ZEROS."""
    program = remover(by_loader=False)
    written = [f"\\{byte:o}" for byte in program]
    written[_HEADER.size] = "\\0$t"
    return "".join(written).replace(ZEROS, "$z")
