"""Modules of native functions, in tooltip and status, never as markup."""

from __future__ import annotations

from pathlib import Path

import pytest

from hprofiler._flamegraph import Profile
from hprofiler.report import make_report, write_page
from tests.viewer.block import carried
from tests.viewer.browser import Viewer
from tests.viewer.made_run import MadeHost, make_run

HOSTILE = "<img src=x onerror=window.intruder=1>\u202e.so"


def script(*stacks: str) -> bytes:
    """What `perf script` prints of these stacks: frames, leaf first, with their files."""
    header = "app 7/7 1.000000: 1 cpu-clock:\n"
    samples = (header + "".join(f"\t7f01 {line}\n" for line in stack.split("\n")) for stack in stacks)
    return "\n".join([*samples, ""]).encode()


MIXED = script(
    "ext4_read+0x1 ([ext4])\nread+0x1 (/usr/lib/libc.so.6)\nJob.run+0x1 (/tmp/perf-7.map)",
    f"odd+0x1 ({HOSTILE})",
)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    page = tmp_path_factory.mktemp("modules") / "modules.html"
    write_page(Profile.from_bytes(MIXED, "perf-script", kernel=True, jit=True), page, "modules")
    return page


def test_a_page_carries_modules_of_native_and_kernel_functions_alone(page: Path) -> None:
    block = carried(page)
    assert block.modules == {"read": "libc.so.6", "odd": HOSTILE}
    assert block.kernel == {"ext4_read": "[ext4]"}


def test_tooltip_and_status_show_modules(viewer: Viewer, page: Path) -> None:
    viewer.open(page)
    assert viewer.hover(0.25, 3).splitlines()[-1] == "Native · libc.so.6"
    assert viewer.hover(0.25, 4).splitlines()[-1] == "Kernel · [ext4]"
    assert viewer.hover(0.25, 2).splitlines()[-1] == "Java, JIT-compiled"
    viewer.click(0.25, 3)
    assert viewer.text("frame-cost").endswith(" · in libc.so.6")


def test_hostile_names_of_modules(viewer: Viewer, page: Path) -> None:
    viewer.open(page)
    assert viewer.hover(0.75, 2).splitlines()[-1] == f"Native · {HOSTILE}"
    viewer.click(0.75, 2)
    assert viewer.text("frame-cost").endswith(f" · in {HOSTILE}")
    assert viewer.driver.execute_script("return window.intruder") is None


def test_functions_of_one_name_in_several_modules(viewer: Viewer, tmp_path: Path) -> None:
    alike = script(
        "decompress+0x1 ([zstd])",
        "decompress+0x1 (/usr/lib/libzstd-jni.so)",
        "run+0x1 (/usr/lib/libx.so)",
        "run+0x1 (/tmp/perf-7.map)",
    )
    page = tmp_path / "alike.html"
    write_page(Profile.from_bytes(alike, "perf-script", kernel=True, jit=True), page, "alike")
    viewer.open(page)
    found = {viewer.hover(share, 2).splitlines()[-1] for share in (0.125, 0.375, 0.625, 0.875)}
    assert found == {"Kernel · [zstd]", "Native · libzstd-jni.so", "Native · libx.so", "Java, JIT-compiled"}


def test_hosts_with_other_libraries_are_one_tree(tmp_path: Path) -> None:
    hosts = []
    for number, library in enumerate(["libssl.so.1.1", "libssl.so.3", "libssl.so.3"]):
        profile = Profile.from_bytes(script(f"SSL_read+0x1 (/usr/lib/{library})"), "perf-script")
        hosts.append(MadeHost(f"h{number}", events={"samples": {number + 1: profile.to_pprof()}}))
    run = make_run(tmp_path / "run", hosts, events=("samples",))
    page = make_report(run.path).page
    assert carried(page).modules == {"SSL_read": "libssl.so.1.1, libssl.so.3"}
