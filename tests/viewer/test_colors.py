"""Colours of categories and waits can be told apart, also without red or green; text on them is read."""

from __future__ import annotations

import colorsys
import itertools
import json
import math
import shutil
import subprocess

import pytest

from tests.fuzz.targets import copy_viewer
from tests.needed import lacking

Color = tuple[float, float, float]

# Linear light as it is seen with all cones, without the red and without the green ones (Machado, Oliveira and
# Fernandes 2009, severity 1).
SIGHTS = {
    "all": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
}
TO_XYZ = (
    (0.4124564, 0.3575761, 0.1804375),
    (0.2126729, 0.7151522, 0.0721750),
    (0.0193339, 0.1191920, 0.9503041),
)
WHITE = (0.95047, 1.0, 1.08883)
SCRIPT = """
const { CATEGORY_COLORS, NEUTRALS, Coloring } = await import(process.argv[1]);
const { WAIT_COLORS } = await import(process.argv[1].replace("colors.js", "wait_colors.js"));
const { LINE_COLORS } = await import(process.argv[1].replace("graph/colors.js", "views/axes.js"));
const themes = [0, 1].map((theme) => {
  const colors = CATEGORY_COLORS.map((one) => one[theme]);
  const neutrals = NEUTRALS.map((one) => one[theme]);
  const coloring = new Coloring(theme === 1, "category");
  const waits = Object.values(WAIT_COLORS).map((one) => one[theme]);
  const inks = [...colors, ...neutrals].map((fill) => [fill, coloring.inkOn(fill)]);
  return { colors, neutrals, waits, inks, lines: LINE_COLORS[theme] };
});
console.log(JSON.stringify(themes));
"""


def times(matrix: tuple[tuple[float, ...], ...], color: Color) -> Color:
    x, y, z = (sum(a * b for a, b in zip(row, color, strict=True)) for row in matrix)
    return x, y, z


def linear(color: str) -> Color:
    def light(part: str) -> float:
        value = int(part, 16) / 255
        return value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4

    return light(color[1:3]), light(color[3:5]), light(color[5:7])


def lab(color: Color) -> Color:
    def bent(value: float) -> float:
        return value ** (1 / 3) if value > 0.008856 else 7.787 * value + 16 / 116

    x, y, z = (
        bent(one / white)
        for one, white in zip(
            times(TO_XYZ, (_within(color[0]), _within(color[1]), _within(color[2]))), WHITE, strict=True
        )
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def _within(value: float) -> float:
    return max(0.0, min(1.0, value))


def distance(one: Color, other: Color) -> float:
    """CIEDE2000."""
    (l1, a1, b1), (l2, a2, b2) = one, other
    mean = (math.hypot(a1, b1) + math.hypot(a2, b2)) / 2
    stretch = 1.5 - 0.5 * math.sqrt(mean**7 / (mean**7 + 25.0**7))
    c1, c2 = math.hypot(a1 * stretch, b1), math.hypot(a2 * stretch, b2)
    h1, h2 = (math.degrees(math.atan2(b, a * stretch)) % 360 for a, b in ((a1, b1), (a2, b2)))
    turn = (h2 - h1 + 180) % 360 - 180
    hue = (h1 + turn / 2) % 360
    light, chroma = (l1 + l2) / 2, (c1 + c2) / 2
    wave = 1.0
    for part, times_, shift in ((-0.17, 1, -30), (0.24, 2, 0), (0.32, 3, 6), (-0.2, 4, -63)):
        wave += part * math.cos(math.radians(times_ * hue + shift))
    in_light = (l2 - l1) / (1 + 0.015 * (light - 50) ** 2 / math.sqrt(20 + (light - 50) ** 2))
    in_chroma = (c2 - c1) / (1 + 0.045 * chroma)
    in_hue = 2 * math.sqrt(c1 * c2) * math.sin(math.radians(turn / 2)) / (1 + 0.015 * chroma * wave)
    blue = 60 * math.exp(-(((hue - 275) / 25) ** 2))
    rotation = -math.sin(math.radians(blue)) * 2 * math.sqrt(chroma**7 / (chroma**7 + 25.0**7))
    return math.sqrt(in_light**2 + in_chroma**2 + in_hue**2 + rotation * in_chroma * in_hue)


def contrast(one: str, other: str) -> float:
    low, high = sorted(times(TO_XYZ, linear(color))[1] for color in (one, other))
    return (high + 0.05) / (low + 0.05)


@pytest.fixture(scope="module")
def themes(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, list[object]]]:
    """The colours in light and in dark mode, and the text on them."""
    if shutil.which("node") is None:
        lacking("the viewer's modules run in node here, and there is none")
    viewer = tmp_path_factory.mktemp("viewer") / "viewer"
    copy_viewer(viewer)
    module = (viewer / "graph/colors.js").as_uri()
    command = ["node", "--input-type=module", "-e", SCRIPT, module]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return list(json.loads(done.stdout))


def hexadecimal(hue: float, saturation: float, lightness: float) -> str:
    parts = colorsys.hls_to_rgb(hue / 360, lightness / 100, saturation / 100)
    return "#" + "".join(f"{round(255 * part):02x}" for part in parts)


def least(colors: list[str], sight: str) -> float:
    seen = [lab(times(SIGHTS[sight], linear(color))) for color in colors]
    return min(distance(one, other) for one, other in itertools.combinations(seen, 2))


def test_the_distance_is_that_of_its_authors() -> None:
    """Three pairs of the table of Sharma, Wu and Dalal."""
    pairs = (
        ((50.0, 2.6772, -79.7751), (50.0, 0.0, -82.7485), 2.0425),
        ((50.0, 2.5, 0.0), (73.0, 25.0, -18.0), 27.1492),
        ((6.7747, -0.2908, -2.4247), (5.8714, -0.0985, -2.2286), 0.6377),
    )
    for one, other, expected in pairs:
        assert distance(one, other) == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize(
    ("sight", "of_ten", "of_all"), [("all", 13, 10), ("protanopia", 6, 6), ("deuteranopia", 6, 6)]
)
def test_categories_are_told_apart(
    themes: list[dict[str, list[str]]], theme: int, sight: str, of_ten: float, of_all: float
) -> None:
    colors, neutrals = themes[theme]["colors"], themes[theme]["neutrals"]
    assert len(colors) == 10
    assert least(colors, sight) >= of_ten
    assert least(colors + neutrals, sight) >= of_all


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize(("sight", "apart"), [("all", 10), ("protanopia", 8), ("deuteranopia", 8)])
def test_kinds_of_waits_are_told_apart(
    themes: list[dict[str, list[tuple[float, float, float]]]], theme: int, sight: str, apart: float
) -> None:
    colors = [hexadecimal(*one) for one in themes[theme]["waits"]]
    assert len(colors) == 11
    assert least(colors, sight) >= apart
    # All but idle threads and what is too small stand out; in light mode they are pale for their names.
    ground, enough = (("#ffffff", 1.7), ("#15181c", 3))[theme]
    assert min(contrast(one, ground) for one in colors[:9]) >= enough


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_lines_of_machines_stand_out(themes: list[dict[str, dict[str, str]]], theme: int) -> None:
    """From the page, and from the area below the line of the only host."""
    lines, ground = themes[theme]["lines"], ("#ffffff", "#15181c")[theme]
    assert min(contrast(lines[line], ground) for line in ("line", "chosen")) >= 3
    assert contrast(lines["line"], lines["area"]) >= 3
    assert contrast(lines["text"], ground) >= 4.5


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_names_and_packages_can_be_read_on_every_colour(
    themes: list[dict[str, list[tuple[str, dict[str, str]]]]], theme: int
) -> None:
    for fill, ink in themes[theme]["inks"]:
        assert min(contrast(fill, ink["text"]), contrast(fill, ink["soft"])) >= 4.5, (fill, ink)
