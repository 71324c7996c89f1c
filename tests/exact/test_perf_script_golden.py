"""The cases that stackcollapse-perf.pl documents: a text, options, and the folded lines."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import dedent
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from hprofiler._flamegraph import Profile


class Case(NamedTuple):
    desc: str
    text: str
    folded: list[str]
    options: Mapping[str, Any] = MappingProxyType({})


KERNEL = """
    swapper     0 [000] 158665.570607: cpu-clock:
            ffffffff8103ce3b native_safe_halt ([kernel.kallsyms])
            ffffffff81aebbfe start_kernel ([kernel.kallsyms].init.text)

    java 24636/25607 [000] 4794564.109216: cpu-clock:
            7f722d142778 Ljava/io/PrintStream;::print (/tmp/perf-19982.map)
            7f722d142000 Interpreter (/tmp/perf-19982.map)

"""
CASES = [
    Case(
        "offsets go, the leaf is last, equal stacks add up",
        """
        java 25607 4794564.109216: cycles:
                ffffffff8103ce3b leaf+0x1f ([kernel.kallsyms])
                          4005d6 main+0x800047c022ec (/bin/x)

        java 25607 4794564.109217: cycles:
                ffffffff8103ce99 leaf+0x7d ([kernel.kallsyms])
                          4005d6 main+0x2 (/bin/x)
        """,
        ["java;main;leaf 2"],
    ),
    Case(
        "a period weighs a sample",
        """
        a 7 1.5: 235 cycles:
                1 f (/x)

        a 7 1.6: cycles:
                1 f (/x)

        a 7 1.7: 0 cycles:
                1 f (/x)
        """,
        ["a;f 237"],
    ),
    Case(
        "spaces of a command are underscores, its numbers its own",
        """
        V8 WorkerThread 24636/25607 [000] 94564.109216: 100 cycles:
                1 f (/x)

        pool 12 3456 [001] 94564.2: 1 cycles:
                1 f (/x)
        """,
        ["V8_WorkerThread;f 100", "pool_12;f 1"],
    ),
    Case(
        "unknown frames are named by their module",
        """
        a 7 1.5: cycles:
                7f53389994d0 [unknown] ([unknown])
                        12ab [unknown] (/usr/lib/a b/libx-1.so.2)
                        12ac [unknown] (/usr/lib/gone.so (deleted))
                        12ad known+0x5 (/usr/lib/gone.so (deleted))
        """,
        ["a;known;[gone.so (deleted)];[libx-1.so.2];[unknown] 1"],
    ),
    Case(
        "inlined frames stand behind their caller",
        """
        java 7 1.5: cycles:
                7f1 La/B;::c->La/B;::d->La/B;::e (/tmp/perf-7.map)
        """,
        ["java;a/B:::c_[j];a/B:::d_[i];a/B:::e_[i] 1"],
        {"jit": True},
    ),
    Case(
        "signatures are condensed, Java's only in java",
        """
        java 7 1.5: cycles:
                1 Lorg/m/Context;.call(Lorg/m/Action;)Ljava/lang/Object; (/tmp/perf-7.map)
                2 Lorg/m/MemberBox;.<init>(Ljava/lang/reflect/Method;)V (/tmp/perf-7.map)

        node 8 1.6: cycles:
                3 net/http.(*Client).Do (/x)
                4 std::function<void (int)>::operator()(int) const (/x)
                5 (anonymous process) (/x)
                6 LazyCompile:~f/g a;b (/x)
        """,
        [
            "java;org/m/MemberBox:.<init>;org/m/Context:.call 1",
            "node;LazyCompile:~f/g a:b;std::function<void (int)>::operator;net/http.(*Client).Do 1",
        ],
    ),
    Case(
        "one frame on the sample's own line",
        """
        false 64414 20110.539270:      34467 cycles:u:  ffffffff9aa3c8de [unknown] ([unknown])
        false 64414 20110.539271:      10 cycles:u:  ffffffff9aa3c8de f+0x1 (/x)
        """,
        ["false;[unknown] 34467", "false;f 10"],
    ),
    Case(
        "--event-filter",
        """
        a 7 1.5: 5 cycles:uppp:
                1 f (/x)

        a 7 1.5: 7 instructions:u:
                1 g (/x)
        """,
        ["a;g 7"],
        {"event_filter": "instructions:u"},
    ),
    Case(
        "a trace point's own words are no stack",
        """
        sh 7 [001] 5.6: sched:sched_switch: prev_comm=sh prev_pid=7 ==> next_comm=x (y)
                1 schedule ([kernel.kallsyms])
                2 main (/bin/sh)
        """,
        ["sh;main;schedule 1"],
    ),
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


@pytest.mark.parametrize("case", CASES, ids=[case.desc for case in CASES])
def test_documented_behaviour(case: Case) -> None:
    profile = Profile.from_bytes(dedent(case.text).lstrip("\n").encode(), **case.options)
    assert profile.to_folded().decode().splitlines() == case.folded
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
