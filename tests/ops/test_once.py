"""`make benchmark`: the whole DAG in one process."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from feedbench.store import Store

ROOT = Path(__file__).resolve().parents[2]
CONF = {
    "photos": 60, "image_size": 32, "batch_size": 8, "steps": 6, "profile_steps": 6, "warmup_steps": 2, "rounds": 2,
    "variants": ["naive", "prefetch"], "accelerator": "emulated", "emulated_step_ms": 5,
}  # fmt: skip


@pytest.mark.tensorflow
@pytest.mark.airflow
def test_the_dag_runs_its_trials_in_the_order_of_the_plan_and_ends_in_a_report(tmp_path):
    """Rounds interleaved as planned: else a machine that slows down is taken for a slow variant."""
    places = {"AIRFLOW_HOME": str(tmp_path / "airflow"), "FEEDBENCH_ARTIFACTS": str(tmp_path / "artifacts")}
    command = [sys.executable, ROOT / "ops" / "once.py", json.dumps(CONF)]
    done = subprocess.run(
        command, env={**os.environ, **places}, capture_output=True, text=True, check=False, timeout=550
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (run,) = Store(tmp_path / "artifacts").runs()
    planned = run.read_run().trials
    assert sorted(planned, key=lambda trial: run.trial(trial).read_trial().started_at) == list(planned)
    assert str(run.report_html) in done.stdout
    assert run.report_html.stat().st_size > 10_000


def test_settings_that_are_none_are_told_before_airflow_is_started(tmp_path):
    done = subprocess.run(
        [sys.executable, ROOT / "ops" / "once.py", "[1]"], capture_output=True, text=True, check=False,
        env={**os.environ, "AIRFLOW_HOME": str(tmp_path / "airflow")},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("feedbench: CONF=[1]: not a JSON object")
    assert not (tmp_path / "airflow").exists()
