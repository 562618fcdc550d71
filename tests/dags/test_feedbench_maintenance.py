"""The maintenance DAG: one task that keeps artefacts bounded, run here on a store of two runs."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from feedbench.store import Store

ROOT = Path(__file__).parents[2]
PROFILE = "trials/naive/1/train/plugins/profile/2026_06_01/worker.xplane.pb"
RUN = """
import json, sys
sys.path[:0] = {folders!r}
from feedbench_maintenance import maintenance
heavy = [name for name in ("tensorflow", "pandas", "numpy", "scipy") if name in sys.modules]
import feedbench_maintenance
feedbench_maintenance.get_current_context = lambda: {{"params": {{"keep_profiles": 1, "limit_gb": None}}}}
maintenance.get_task("prune").python_callable()
print(json.dumps({{
    "heavy": heavy, "tasks": list(maintenance.task_ids), "catchup": maintenance.catchup,
    "defaults": {{name: maintenance.params[name] for name in maintenance.params}},
}}))
"""


@pytest.mark.airflow
def test_the_one_task_removes_the_profiles_of_all_but_the_newest_runs(tmp_path):
    store = Store(tmp_path / "artifacts")
    for n in (1, 2):
        folder = store.run(f"n{n}")
        shutil.copytree(ROOT / "tests" / "golden" / "run_v1", folder.path)
        run = folder.read_run().model_copy(update={"run_id": f"n{n}", "created_at": f"2026-06-0{n}T02:30:00+00:00"})
        folder.write_run(run)
        folder.report_html.write_bytes(b"report")
        (folder.path / PROFILE).parent.mkdir(parents=True)
        (folder.path / PROFILE).write_bytes(b"x")
    env = {**os.environ, "AIRFLOW_HOME": str(tmp_path / "airflow"), "FEEDBENCH_ARTIFACTS": str(store.root)}
    code = RUN.format(folders=[str(ROOT / "dags"), str(ROOT / "plugins")])
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=env, check=False, timeout=200
    )
    assert done.returncode == 0, done.stderr[-2000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert (told["heavy"], told["tasks"], told["catchup"]) == ([], ["prune"], False)
    assert told["defaults"] == {"keep_profiles": 14, "limit_gb": 50}
    assert [(store.run(f"n{n}").path / PROFILE).exists() for n in (1, 2)] == [False, True]
