"""README.md's recipes in `sh` blocks, run in order against executors in the lab. They record for two seconds.

The recipe for YARN, in a `bash` block, is tested in test_lab_yarn.py, that for pods in test_lab_k8s.py, the
one for CI here. Some are a user's with sudo. Pages in a browser, or served, are tested in
unit/test_serving.py.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.burners.burner import Burner
from tests.lab import cache
from tests.lab.conftest import Burn, StartNative
from tests.lab.coordinator import Coordinator
from tests.lab.hosts import Lab

EXECUTOR = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
HOSTS = ("host1", "host2", "host3")


def recipes(shell: str = "sh") -> list[str]:
    """The command lines of README's blocks for that shell."""
    text = (cache.CHECKOUT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(rf"^```{shell}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


def expanded(recipe: str, folder: Path) -> list[str]:
    """A recipe's words after `hprofiler`, with file patterns expanded as a shell would."""
    words: list[str] = []
    for word in shlex.split(re.sub(r" -t \d+ ", " -t 2 ", recipe))[1:]:
        words += sorted(str(p) for p in folder.glob(word)) if "*" in word else [word]
    return words


def written(recipe: str) -> tuple[str, ...]:
    """The files that a recipe writes to the working folder."""
    output = re.search(r" -o (\S+)", recipe)
    if not output:
        return ()
    name = output.group(1)
    if "." in name:
        return (name,)
    events = re.search(r" -e (\S+)", recipe)
    first = events.group(1).split(",")[0] if events else "offcpu" if " -i " in recipe else "cpu"
    return (f"{name}/report.html", f"{name}/cluster/{first}.svg")


def test_readme_has_its_recipes() -> None:
    assert len(recipes()) >= 5
    assert all(recipe.startswith("hprofiler ") for recipe in recipes())


@pytest.mark.timeout(300)
def test_recipes_work_as_they_stand(
    lab: Lab,
    coordinator: Coordinator,
    burn: Burn,
    native: StartNative,
    keep_program: Callable[[Burner], Burner],
) -> None:
    for number, name in enumerate(HOSTS, 1):
        burn(lab.hosts[name], main=EXECUTOR, load=0.3, extra=["--executor-id", str(number)])
        native(lab.hosts[name], "impalad")
    alone = keep_program(Burner(load=0.3))
    folder = coordinator.new_folder()
    (folder / "nodes.txt").write_text("# the workers\nhost1\nhost2\nhost3\n")
    for recipe in recipes():
        words = expanded(recipe.replace("pid:4242", f"pid:{alone.pid}"), folder)
        result = coordinator.run(*words, folder=folder)
        assert result.code == 0, f"{recipe}\n{result}"
        for file in written(recipe):
            assert (folder / file).stat().st_size > 0, recipe
        if " ps " in recipe and "spark-executor" in recipe:
            assert all(f"executor {number}" in result.out for number in (1, 2, 3)), str(result)
        if " ps -j java" in recipe:
            assert str(alone.pid) in result.out, str(result)
    for_ci = [recipe for recipe in recipes("bash") if "--fail-over" in recipe]
    for recipe in for_ci:
        for side in ",".join(shlex.split(recipe)[2:4]).split(","):
            if side != "results":
                shutil.copytree(folder / "results", folder / side)
        unchanged = coordinator.run(*expanded(recipe, folder), folder=folder)
        assert unchanged.code == 0, f"{recipe}\n{unchanged}"
    assert len(for_ci) == 2
