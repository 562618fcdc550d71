import pytest

from feedbench import units
from feedbench.records import Device, Interval
from feedbench.report import wording


def test_characters_that_turn_or_hide_text_are_written_out():
    """U+202E makes `gpj.exe` of `exe.jpg`; a report shows the character instead. Newlines and Hebrew stay."""
    device = Device(kind="gpu", name="exe\u202egpj\x1b[31m\nשלום")
    assert wording.visible(device).name == "exe\\u202egpj\\u001b[31m\nשלום"


def test_visible_leaves_a_healthy_record_as_it_is(emulated):
    assert wording.visible(emulated) == emulated


@pytest.mark.parametrize(
    ("value", "text"), [(0.18, "+18 %"), (-0.048, "−4.8 %"), (0.0, "+0.0 %")], ids=["up", "down", "none"]
)
def test_a_difference_always_has_its_sign(value, text):
    assert units.signed_share(value) == text


def test_no_number_fills_the_page():
    assert [units.ms(value) for value in (1234.0, 1e14, 1e300)] == ["1,234", "100,000,000,000,000", "1e+300"]


def test_intervals_keep_the_decimals_of_their_unit():
    assert wording.interval_ms(66.12, 101.4) == "[66.1 – 101]"
    assert wording.interval_times(Interval(value=1.4, ci_low=1.386, ci_high=1.5)) == "[1.39 – 1.50]"
    assert wording.interval_share(Interval(value=0.0, ci_low=-0.012, ci_high=0.2)) == "[−1.2 % – +20 %]"


@pytest.mark.parametrize(("seconds", "text"), [(None, "–"), (0.42, "0.42 s"), (9.3, "9.30 s"), (125, "2 min 05 s")])
def test_short_phases_are_never_rounded_to_zero_seconds(seconds, text):
    assert wording.duration(seconds) == text


@pytest.mark.parametrize(("number", "text"), [(None, "–"), (8, "8 B"), (602_112, "602 KB"), (19_267_584, "19.3 MB")])
def test_sizes_of_elements_go_from_bytes_to_megabytes(number, text):
    assert wording.size(number) == text


def test_shortened_text_is_one_line_of_the_length_asked_for():
    assert wording.shortened("a\n b", 10) == "a b"
    assert wording.shortened("x" * 100, 10) == "x" * 9 + "…"
