"""Profiles of old runs go; everything else stays."""

from pathlib import Path

import pytest

from feedbench.errors import SettingsError
from feedbench.history.retention import pin, prune
from feedbench.store import upload, write_bytes

RUN_V1 = Path(__file__).parents[1] / "golden" / "run_v1"
PROFILE = "trials/naive/1/train/plugins/profile/2026_06_01/worker.xplane.pb"
MB = 1_000_000


@pytest.fixture
def store(anywhere):
    """Runs n1 (oldest) to n4, each with a profile of 2 MB, and one that is not finished."""
    store = anywhere
    for n in (1, 2, 3, 4):
        folder = store.run(f"n{n}")
        upload(RUN_V1, folder.path, last="comparison.json")
        run = folder.read_run().model_copy(update={"run_id": f"n{n}", "created_at": f"2026-06-0{n}T02:30:00+00:00"})
        folder.write_run(run)
        folder.report_html.write_bytes(b"report")
    upload(RUN_V1, store.run("going_on").path, last="comparison.json")
    for folder in store.runs():
        write_bytes(folder.path / PROFILE, b"x" * 2 * MB)
    return store


def with_profiles(store):
    return {folder.run_id for folder in store.runs() if (folder.path / PROFILE).exists()}


def test_profiles_of_the_newest_runs_and_of_unfinished_ones_are_kept(store):
    kept = prune(store, keep_profiles=2)
    assert with_profiles(store) == {"n3", "n4", "going_on"}
    assert (kept.runs, kept.freed_mb) == (("n1", "n2"), 4.0)
    assert all((store.run(f"n{n}").path / "comparison.json").exists() for n in (1, 2, 3, 4))


def test_the_total_is_what_is_left(store):
    kept = prune(store, keep_profiles=1)
    assert kept.total_mb == pytest.approx(sum(folder.size() for folder in store.runs()) / MB)
    assert "3 runs removed, 6.00 MB freed" in kept.sentence


def test_a_pinned_run_is_kept_whole_until_it_is_not(store):
    pin(store, "n1")
    prune(store, keep_profiles=1)
    assert with_profiles(store) == {"n1", "n4", "going_on"}
    pin(store, "n1", pinned=False)
    prune(store, keep_profiles=1)
    assert with_profiles(store) == {"n4", "going_on"}


def test_more_goes_while_the_total_is_over_the_limit_oldest_first(store):
    """Five profiles of 2 MB: two must go for less than 7 MB."""
    kept = prune(store, keep_profiles=4, limit_mb=7)
    assert kept.runs == ("n1", "n2")
    assert kept.total_mb < 7


def test_the_newest_run_stays_and_an_unreachable_limit_is_said(store):
    kept = prune(store, keep_profiles=4, limit_mb=1)
    assert with_profiles(store) == {"n4", "going_on"}
    assert "over the limit" in kept.sentence


def test_a_second_time_there_is_nothing_to_do(store):
    prune(store, keep_profiles=2)
    assert prune(store, keep_profiles=2).sentence.startswith("nothing to do")


@pytest.mark.parametrize("limit_mb", [-1000, 0, float("nan"), float("inf")])
def test_a_limit_that_is_no_amount_is_refused_and_nothing_goes(store, limit_mb):
    with pytest.raises(SettingsError, match=f"limit of {limit_mb / 1000:g} GB"):
        prune(store, keep_profiles=4, limit_mb=limit_mb)
    assert len(with_profiles(store)) == 5


def test_keeping_none_is_refused(store):
    with pytest.raises(SettingsError, match="keep_profiles=0"):
        prune(store, keep_profiles=0)
