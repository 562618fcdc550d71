"""A trial runs the variant that it was told to, or none."""

import json
import os

import pytest

from feedbench.config import A_A_TWIN, BASELINE, CEILING, Settings
from feedbench.errors import SettingsError
from feedbench.training.job import Job
from feedbench.training.trial import Measurement, Reporter, _variant


def job(variant: str) -> Job:
    return Job(
        run_id="r", variant=variant, round=1, settings=Settings(), index="/i", photos_root="/p", out="/o", scratch="/s",
        weights=None, parent_pid=1,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("variant", "runs"),
    [(BASELINE, BASELINE), ("combined", "combined"), (A_A_TWIN, A_A_TWIN), (CEILING, BASELINE)],
)
def test_a_trial_runs_the_variant_of_its_name(variant, runs):
    assert _variant(job(variant)).name == runs


def test_a_variant_that_this_worker_lacks_is_refused_not_replaced_by_the_baseline():
    with pytest.raises(SettingsError, match="prefetsch: no such variant; did you mean 'prefetch'"):
        _variant(job("prefetsch"))


def test_a_loss_that_diverged_is_told_and_costs_no_trial():
    read_end, write_end = os.pipe()
    measurement = Measurement(job(BASELINE), Reporter(write_end))
    measurement._keep_scores(loss=float("nan"), accuracy=0.5)
    assert measurement.found == {"loss": None, "accuracy": 0.5}
    assert "loss is nan" in json.loads(os.read(read_end, 1000))["note"]
