import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import matplotlib as mpl
import pytest

from feedbench.report.charts import draw, ratio_ticks
from feedbench.report.nights import night_by_night
from feedbench.report.series import Picture, pictures
from feedbench.report.svg import COLOUR
from planted.comparisons import comparison_of, variant

SVG = "{http://www.w3.org/2000/svg}"
ANCHORS = ("timelines", "step-parts", "speed-ups", "step-times", "what-if", "trend")
NIGHTS = night_by_night(
    [f"2026-03-{day:02d}" for day in range(1, 21)], [50.0] * 12 + [60.0] * 8, [49.0] * 20, [61.0] * 20, [12], [12]
)
TREND = Picture("trend", "Step time of naive by night", "", NIGHTS.in_words(), NIGHTS)


def drawings(comparison):
    return {it.anchor: draw(it) for it in (*pictures(comparison, comparison.variants), TREND)}


def texts(svg):
    return [node.text for node in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def test_a_full_record_and_many_nights_give_all_six_pictures_as_well_formed_svg(emulated):
    found = drawings(emulated)
    assert tuple(found) == ANCHORS
    assert all(ElementTree.fromstring(svg).tag == f"{SVG}svg" for svg in found.values())


def test_each_picture_has_a_title_and_a_description_that_its_role_points_at(emulated):
    for anchor, svg in drawings(emulated).items():
        root = ElementTree.fromstring(svg)
        assert root.get("role") == "img"
        assert root.get("aria-labelledby") == f"{anchor}-title {anchor}-description"
        assert len(root.find(f"{SVG}desc").text) > 40


def test_ids_are_unique_over_all_pictures_and_every_reference_resolves(emulated):
    joined = "".join(drawings(emulated).values())
    ids = re.findall(r' id="([^"]+)"', joined)
    assert len(ids) == len(set(ids))
    referred = set(re.findall(r'(?:url\(|href=")#([^")]+)', joined))
    assert referred
    assert referred <= set(ids)


def test_no_reserved_colour_is_left_and_no_other_colour_was_drawn(emulated):
    """Whatever is painted is a CSS variable of the page or nothing, so that dark mode reaches all of it."""
    for svg in drawings(emulated).values():
        assert not [colour for colour in COLOUR.values() if colour in svg]
        assert not re.findall(r"#[0-9a-f]{6}\b", svg)
        assert "var(--" in svg


def test_no_picture_brings_style_for_the_whole_page_or_anything_to_run(emulated):
    for svg in drawings(emulated).values():
        assert not re.search(r"<(style|script|image|metadata|foreignObject)\b", svg)


def test_names_with_dollars_braces_and_markup_are_drawn_as_they_are():
    """`$` is no formula and `<` no element; a very long name is cut."""
    names = (r"$\frac{1}{2}$", "<script>x</script>", 'id="step-parts-title"', "n" * 400)
    comparison = comparison_of(
        variant("naive", "", ("A",), 20.6, 21.0), *(variant(n, "", ("A",), 1.0, 5.0) for n in names)
    )
    shown = texts(drawings(comparison)["step-parts"])
    assert set(names[:3]) <= set(shown)
    assert max(map(len, shown)) < 40


@pytest.mark.filterwarnings("error")
def test_a_name_in_a_script_that_the_measuring_font_lacks_is_no_warning():
    comparison = comparison_of(variant("naive", "", ("A",), 20.6, 21.0), variant("先読み", "", ("A",), 1.0, 5.0))
    assert "先読み" in texts(drawings(comparison)["step-parts"])


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0.95, 1.47, [1.0, 1.1, 1.2, 1.3, 1.4]),
        (0.9, 3.2, [1.0, 1.5, 2.0, 3.0]),
        (0.4, 6, [0.5, 1.0, 2.0, 5.0]),
        (0.96, 6.3, [1.0, 1.5, 2.0, 3.0, 5.0]),
        (0.0008, 2, [0.001, 0.01, 0.1, 1.0]),
    ],
)
def test_speed_ups_have_round_ratios_on_their_axis_and_never_nought(low, high, ticks):
    assert ratio_ticks(low, high) == pytest.approx(ticks)


def test_the_users_own_matplotlib_settings_change_nothing(emulated):
    plain = drawings(emulated)
    with mpl.rc_context({"font.size": 30, "axes.facecolor": "red", "svg.fonttype": "path"}):
        assert drawings(emulated) == plain


def test_drawing_needs_no_pyplot():
    code = "import sys, feedbench.report.render; print('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"
