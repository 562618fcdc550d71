"""The DAG is a table of contents: light to parse, typed, in the one right order."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = ("tensorflow", "keras", "pandas", "numpy", "scipy", "matplotlib", "pyarrow", "xprof")
OURS = {"feedbench", "feedbench.config", "feedbench.errors", "feedbench.form", "feedbench.pipelines",
        "feedbench.pipelines.steps", "feedbench.pipelines.variants"}  # fmt: skip
"""All of the package that reading the file loads: names, and what they accept."""

ASK = """
import json, sys
sys.path[:0] = {folders!r}  # as Airflow does
import input_pipeline_benchmark as module
dag = module.benchmark
ours = [name for name in sys.modules if name.split(".")[0] == "feedbench"]
heavy = [name for name in {heavy!r} if name in sys.modules]

from datetime import UTC, datetime
from airflow.serialization.serialized_objects import DagSerialization
from airflow.timetables import trigger
from airflow.timetables.base import TimeRestriction
trigger.utcnow = lambda: datetime(2026, 6, 1, 3, tzinfo=UTC)  # half an hour after the hour of the nightly run
timetable = DagSerialization.from_dict(DagSerialization.to_dict(dag)).timetable  # the scheduler's own
first = timetable.next_dagrun_info(last_automated_data_interval=None, restriction=TimeRestriction(None, None, False))
print(json.dumps({{
    "heavy": heavy,
    "ours": ours,
    "first_run": str(first.run_after),
    "downstream": {{task.task_id: sorted(task.downstream_task_ids) for task in dag.tasks}},
    "train": [dag.get_task("train").partial_kwargs[k] for k in ("pool", "queue")],
    "teardowns": {{task.task_id: task.on_failure_fail_dagrun for task in dag.tasks if task.is_teardown}},
    "schedule": str(dag.timetable),
    "catchup": dag.catchup, "max_active_runs": dag.max_active_runs, "start_date": str(dag.start_date),
    "params": sorted(dag.params),
}}))
"""


@pytest.fixture(scope="module")
def parsed(tmp_path_factory):
    """The DAG as a fresh interpreter sees it."""
    code = ASK.format(folders=[str(ROOT / "dags"), str(ROOT / "plugins")], heavy=HEAVY)
    env = {**os.environ, "AIRFLOW_HOME": str(tmp_path_factory.mktemp("airflow"))}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=env, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.airflow
def test_parsing_imports_nothing_heavy(parsed):
    assert parsed["heavy"] == []
    assert set(parsed["ours"]) == OURS


@pytest.mark.airflow
def test_tasks_follow_each_other_and_the_gate_is_last(parsed):
    assert parsed["downstream"] == {
        "download": ["index", "plan"], "index": ["plan"], "plan": ["train"], "train": ["compare"],
        "compare": ["gate"], "gate": [],
    }  # fmt: skip


@pytest.mark.airflow
def test_a_cancelled_run_is_reported_and_red(parsed):
    """Of a run that is marked as failed Airflow skips what is not done but for teardowns; the gate's failure is its."""
    assert parsed["teardowns"] == {"compare": False, "gate": True}


@pytest.mark.airflow
def test_trials_wait_for_their_turn_on_the_gpu_queue(parsed):
    assert parsed["train"] == ["gpu_benchmark", "gpu"]


@pytest.mark.airflow
def test_it_runs_nightly_one_at_a_time_and_never_for_the_past(parsed):
    """Unpaused at three in the morning, it waits for the next night."""
    assert (parsed["catchup"], parsed["max_active_runs"], parsed["start_date"]) == (False, 1, "None")
    assert parsed["first_run"].startswith("2026-06-02 02:30")


def test_the_file_stays_a_table_of_contents():
    lines = [line for line in (ROOT / "dags/input_pipeline_benchmark.py").read_text().splitlines() if line.strip()]
    assert len(lines) <= 90
