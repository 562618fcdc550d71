"""What the pages about many nights say, without Airflow: thirty nights of two variants, one slower from the 21st."""

import re
import shutil
from pathlib import Path

import pytest

from benchmark_pages.trends import SPARK_HEIGHT, SPARK_WIDTH, overview, trend_page
from feedbench.store import Store
from planted.nights import night

TESTS = Path(__file__).parents[2]


@pytest.fixture
def store(tmp_path):
    """A night's line for each run; of the runs themselves only the folders."""
    store = Store(tmp_path)
    lines = []
    for n in range(30):
        slow = 1.2 if n >= 20 else 1.0
        step_ms = {"naive": 60 * slow + n % 3 / 10, "prefetch": 50 + n % 2 / 10}
        one = night(1, step_ms, run_id=f"night_{n:02}", created_at=f"2026-06-{n + 1:02d}T02:30:00+00:00")
        told = {"change": 0.2} if n >= 21 else {}
        results = one.results | {"naive": one.results["naive"].model_copy(update=told)}
        lines.append(one.model_copy(update={"results": results}).model_dump_json())
        store.run(f"night_{n:02}").path.mkdir(parents=True)
    store.history.write_text("\n".join(lines))
    return store


def test_the_overview_has_a_line_for_each_variant_the_slowest_first(store):
    [group] = overview(store)
    assert "EPYC, 16 cores" in group.title
    naive, prefetch = group.lines
    assert (naive.variant, naive.nights, naive.told, naive.tone) == ("naive", 30, "20 % slower", "bad")
    assert (prefetch.variant, prefetch.told, prefetch.tone) == ("prefetch", "", "muted")
    assert naive.spark_words == "30 nights from 60.0 to 72.2 ms, the last 72.2 ms"


def test_a_sparkline_stays_in_its_box_and_noise_is_no_mountain(store):
    """naive steps up by a fifth and fills the height; prefetch moves by 0.2 % and stays within a tenth of it."""
    lines = {line.variant: line for line in overview(store)[0].lines}
    heights = {}
    for name, line in lines.items():
        points = [tuple(map(float, point.split(","))) for point in line.spark.split()]
        assert all(0 <= x <= SPARK_WIDTH and 0 <= y <= SPARK_HEIGHT for x, y in points)
        heights[name] = max(y for _, y in points) - min(y for _, y in points)
    assert heights["naive"] > SPARK_HEIGHT / 3
    assert heights["prefetch"] < SPARK_HEIGHT / 10
    assert points[0][0] < points[-1][0]


def test_a_trend_has_its_nights_newest_first_with_what_was_told_and_where_a_level_begins(store):
    it = trend_page(store, "naive on sixteen")
    assert [row.point.run_id for row in it.rows[:2]] == ["night_29", "night_28"]
    assert [row.point.run_id for row in it.rows if row.new_level] == ["night_20"]
    assert (it.rows[0].told, it.rows[-1].told) == ("20 % slower", "")


def test_the_picture_says_the_levels_in_words_and_runs_no_script(store):
    picture = trend_page(store, "naive on sixteen").picture
    assert "from 2026-06-21 +20 %: 72.1 ms" in re.sub(r"\s+", " ", picture)
    assert "<script" not in picture


def test_a_series_that_is_not_there_has_no_page(store):
    assert trend_page(store, "../../etc/passwd") is None


def test_a_single_night_is_a_trend_too(store):
    for folder in (store.root / "runs").iterdir():
        if folder.name != "night_00":
            shutil.rmtree(folder)
    assert overview(store)[0].lines[0].nights == 1
    assert "one level throughout" in trend_page(store, "naive on sixteen").picture


def test_no_night_is_an_empty_overview(tmp_path):
    assert overview(Store(tmp_path)) == ()


def test_who_may_only_read_is_shown_the_trend_of_runs_that_no_line_was_kept_of(tmp_path, monkeypatch):
    """The API server's artefacts are mounted read-only, and the nights' file may be lost or of an older schema."""
    shutil.copytree(TESTS / "golden" / "run_v1", tmp_path / "runs" / "run_v1")
    tmp_path.chmod(0o555)
    monkeypatch.setattr("feedbench.store._write_whole", lambda *_: pytest.fail("somebody who looks has written"))
    try:
        assert {line.nights for line in overview(Store(tmp_path))[0].lines} == {1}
    finally:
        tmp_path.chmod(0o755)


@pytest.mark.parametrize("step_ms", [1e-6, 1e12])
def test_the_pages_stand_at_the_limits_of_what_a_night_may_hold(tmp_path, step_ms):
    store, one = Store(tmp_path), night(1, {"naive": step_ms})
    widest = one.results["naive"].model_copy(update={"error": 1e100})
    store.history.write_text(one.model_copy(update={"results": {"naive": widest}}).model_dump_json())
    store.run(one.run_id).path.mkdir(parents=True)
    assert overview(store)[0].lines[0].nights == 1
    assert trend_page(store, "naive on sixteen").picture
