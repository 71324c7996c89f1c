"""The rules that stackcollapse-perf.pl documents: texts, options, and the folded lines."""

from __future__ import annotations

from textwrap import dedent
from typing import Any

import pytest

from hprofiler._flamegraph import Profile

KERNEL = """
    swapper     0 [000] 158665.570607: cpu-clock:
            ffffffff8103ce3b native_safe_halt ([kernel.kallsyms])
            ffffffff81aebbfe start_kernel ([kernel.kallsyms].init.text)

    java 24636/25607 [000] 4794564.109216: cpu-clock:
            7f722d142778 Ljava/io/PrintStream;::print (/tmp/perf-19982.map)
            7f722d142000 Interpreter (/tmp/perf-19982.map)

"""
RULES = """
    java 7 1.5: cycles:u:
            ffffffff8103ce3b leaf+0x1f ([kernel.kallsyms])
                         7f1 La/B;::c->La/B;::d (/tmp/perf-7.map)
                         7f0 Lorg/m/Box;.<init>(Ljava/lang/reflect/Method;)V (/tmp/perf-7.map)

    java 7 1.6: 0 cycles:u:
            ffffffff8103ce99 leaf+0x7d ([kernel.kallsyms])
                         7f1 La/B;::c->La/B;::d (/tmp/perf-7.map)
                         7f0 Lorg/m/Box;.<init>(Ljava/lang/reflect/Method;)V (/tmp/perf-7.map)

    V8 WorkerThread 24636/25607 [000] 94564.109216: 100 cycles:u:
                           1 std::function<void (int)>::operator()(int) const (/x)
                           2 (anonymous process) (/x)
                        12ab [unknown] (/usr/lib/a b/libx-1.so.2)
                        12ac [unknown] (/usr/lib/gone.so (deleted))
                7f53389994d0 [unknown] ([unknown])

    pool 12 3456 [001] 94564.2: 235 cycles:u:  4005d6 main+0x800047c022ec (/bin/x)

    sh 7 [001] 5.6: sched:sched_switch: prev_comm=sh prev_pid=7 ==> next_comm=x (y)
            1 schedule ([kernel.kallsyms])
            2 main (/bin/sh)
"""
FOLDED = [
    "V8_WorkerThread;[unknown];[gone.so (deleted)];[libx-1.so.2];std::function<void (int)>::operator 100",
    "java;org/m/Box:.<init>;a/B:::c;a/B:::d_[i];leaf 2",
    "pool_12;main 235",
]


@pytest.mark.parametrize(
    ("options", "java", "swapper"),
    [
        ({}, "java;Interpreter;java/io/PrintStream:::print", "swapper;start_kernel;native_safe_halt"),
        (
            {"kernel": True, "jit": True},
            "java;Interpreter_[j];java/io/PrintStream:::print_[j]",
            "swapper;start_kernel_[k];native_safe_halt_[k]",
        ),
        (
            {"pid": True},
            "java-24636;Interpreter;java/io/PrintStream:::print",
            "swapper-?;start_kernel;native_safe_halt",
        ),
        (
            {"threads": True},
            "[java tid=25607];java;Interpreter;java/io/PrintStream:::print",
            "[swapper tid=0];swapper;start_kernel;native_safe_halt",
        ),
    ],
    ids=str,
)
def test_options(options: dict[str, Any], java: str, swapper: str) -> None:
    profile = Profile.from_bytes(dedent(KERNEL).lstrip("\n").encode(), **options)
    assert profile.to_folded().decode().splitlines() == [f"{java} 1", f"{swapper} 1"]


@pytest.mark.parametrize(
    ("event_filter", "folded"),
    [
        (None, FOLDED),
        ("cycles", FOLDED),
        ("cycles:u", FOLDED),
        ("sched:sched_switch", ["sh;main;schedule 1"]),
    ],
)
def test_documented_behaviour(event_filter: str | None, folded: list[str]) -> None:
    profile = Profile.from_bytes(dedent(RULES).lstrip("\n").encode(), event_filter=event_filter)
    assert profile.to_folded().decode().splitlines() == folded
    assert profile.malformed_lines == 0


def test_what_is_no_line_of_it_is_counted() -> None:
    text = b"a 7 1.5: cycles:\n\t1 f (/x)\n\twhat is this\n\n???\n\na 7 1.6: cycles:\n\t1 f (/x)\n"
    profile = Profile.from_bytes(text)
    assert (profile.to_folded(), profile.malformed_lines) == (b"a;f 2\n", 2)


def test_errors_name_the_line() -> None:
    text = "".join(f"a 7 1.{number}: {2**56} cycles:\n\t1 f (/x)\n\n" for number in range(128))
    with pytest.raises(ValueError, match=r"perf script text, line 384: .*does not fit in 64 bits"):
        Profile.from_bytes(text.encode())
    with pytest.raises(ValueError, match="perf script text, line 1: no line of it begins a sample"):
        Profile.from_bytes(b"x\n", "perf-script")
