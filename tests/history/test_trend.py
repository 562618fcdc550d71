"""A series as a whole, from nights with planted step times."""

from feedbench.history.trend import Trends
from planted.machines import machine
from planted.nights import night


def test_a_series_is_one_variant_on_one_machine_with_its_nights_in_order(week):
    elsewhere = night(9, {"naive": 90}, machine=machine(machine_class="other", cpu_model="Xeon"))
    found = list(Trends([*week, elsewhere]).all())
    assert [(trend.variant, len(trend.points)) for trend in found] == [("naive", 1), ("naive", 7), ("prefetch", 7)]
    assert [point.run_id for point in found[1].points] == [f"night_{n}" for n in range(1, 8)]


def test_a_level_begins_where_the_step_time_changed_for_good(week):
    """60 ms for seven nights, then 72 ms for six."""
    slow = [night(n, {"naive": 72 + n % 2 / 10, "prefetch": 50}) for n in range(8, 14)]
    naive, prefetch = sorted(Trends([*week, *slow]).all(), key=lambda trend: trend.variant)
    assert naive.levels() == (7,)
    assert prefetch.levels() == ()


def test_what_was_told_on_a_night_stands_at_that_night(week):
    told = night(8, {"naive": 90})
    result = told.results["naive"].model_copy(update={"change": 0.5})
    [trend] = Trends([*week, told.model_copy(update={"results": {"naive": result}})]).all("naive")
    assert [point.change for point in trend.points] == [None] * 7 + [0.5]


def test_what_differs_around_a_night_is_told_once_at_that_night(week):
    newer = machine(packages={"tensorflow": "2.22.0"})
    later = [night(n, {"naive": 60}, machine=newer) for n in (8, 9)]
    [trend] = Trends([*week, *later]).all("naive")
    assert [point.around for point in trend.points[-3:]] == [(), ("tensorflow 2.21.0 → 2.22.0",), ()]


def test_the_interval_is_that_of_the_run(week):
    """0.2 % of 60 ms, 1.96 times to each side."""
    point = next(Trends(week).all("naive")).points[0]
    assert round(point.high_ms - point.step_time_ms, 3) == round(1.96 * 0.002 * 60, 3)
