"""What the benchmark adds to Airflow: reading the DAG's file, and the page that lists a thousand runs.

    python perf/airflow_perf.py [--runs-listed 1000] [--runs 7]

* importing the DAG in a fresh interpreter, in three parts: `airflow.sdk`, what any DAG makes Airflow load on top (one
  of two empty tasks is defined first), and ours;
* the first look at the runs page after Airflow's API server has started, which imports the page, and the looks after,
  asked of that server's own app with its own authentication.

Figures are medians with their extremes; seconds are of this machine. Asked are 0.1 s of ours, and 0.3 s for the page.
"""

import argparse
import os
import secrets
import subprocess
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from timing import spread

from feedbench.records import Accelerator, Machine, RunSummary
from feedbench.store import Store

ROOT = Path(__file__).resolve().parents[1]
IMPORT = """
import sys, time
start = time.perf_counter()
import airflow.sdk
imported = time.perf_counter()
exec(sys.argv[1])
defined = time.perf_counter()
import input_pipeline_benchmark
print(imported - start, defined - imported, time.perf_counter() - defined)
"""
ANY_DAG = """
from airflow.sdk import Asset, CronTriggerTimetable, dag, task
@dag(schedule=CronTriggerTimetable("30 2 * * *", timezone="UTC"), catchup=False)
def any_dag():
    @task
    def first() -> dict: ...
    @task(outlets=[Asset("any", uri="any://dag")])
    def last(found): ...
    last.expand(found=first())
any_dag()
"""
RUNS = """
import sys
from datetime import datetime
from airflow.models import DagRun
from airflow.utils.session import create_session
with create_session() as session:
    for run_id in sys.argv[1:]:
        due = datetime.fromisoformat(run_id.removeprefix("scheduled__"))
        session.add(DagRun("input_pipeline_benchmark", run_id, run_after=due, run_type="scheduled", state="success"))
"""
LOOK = """
import time
from airflow.api_fastapi.app import create_app, get_auth_manager
from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
from starlette.testclient import TestClient
client = TestClient(create_app(apps="core"))
token = get_auth_manager().generate_jwt(SimpleAuthManagerUser(username="reader", role="VIEWER"))
headers = {"Authorization": "Bearer " + token}
client.get("/api/v2/dags", headers=headers).raise_for_status()  # Airflow's own first request
for look in ("first", "next", "next", "next"):
    start = time.perf_counter()
    client.get("/benchmark/runs", headers=headers).raise_for_status()
    print(look, time.perf_counter() - start)  # between lines of the access log
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs-listed", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        environment = _environment(Path(folder))
        _python("-m", "airflow", "db", "migrate", env=environment)
        dag_import(environment, options.runs)
        runs_page(Store(environment["FEEDBENCH_ARTIFACTS"]), environment, options.runs_listed, options.runs)
    return 0


def dag_import(environment: dict[str, str], runs: int) -> None:
    told = [_python("-c", IMPORT, ANY_DAG, env=environment).split() for _ in range(runs + 1)]
    parts = [[float(seconds) for seconds in one] for one in told[1:]]  # the first compiled what was not compiled yet
    airflow, any_dag, ours = zip(*parts, strict=True)
    print(f"DAG import in a fresh interpreter: {spread([sum(one) for one in parts], 3)} s")
    print(f"  airflow.sdk {spread(airflow, 3)} s, what any DAG loads {spread(any_dag, 3)} s, ours {spread(ours, 3)} s")


def runs_page(store: Store, environment: dict[str, str], listed: int, starts: int) -> None:
    began = datetime(2024, 1, 1, 2, 30, tzinfo=UTC)
    _python("-c", RUNS, *[_finish(store, began + timedelta(days=day)) for day in range(listed)], env=environment)
    looks: dict[str, list[float]] = {"first": [], "next": []}
    for _ in range(starts):
        for line in _python("-c", LOOK, env=environment).splitlines():
            if (words := line.split()) and words[0] in looks:
                looks[words[0]].append(float(words[1]))
    first, then = (spread(looks[which], 3) for which in ("first", "next"))
    print(f"runs page of {listed:,} runs: {first} s the first time, {then} s then")


def _finish(store: Store, created: datetime) -> str:
    machine = Machine(
        machine_class="m", hostname="h", cpu_model="EPYC", cores=16, memory_mb=64_000, kernel="6.1", python="3.11",
        packages={},
    )  # fmt: skip
    summary = RunSummary(
        run_id=f"scheduled__{created.isoformat()}", created_at=created.isoformat(), machine=machine, variants=10,
        verdict="Ship prefetch: 1.30× as fast as naive (95 % CI 1.25–1.35).", fastest=("prefetch",), without_result=0,
        accelerator=Accelerator(kind="emulated", name="emulated", step_ms=45),
    )  # fmt: skip
    folder = store.run(summary.run_id)
    folder.write_summary(summary)
    folder.report_html.write_bytes(b"<!DOCTYPE html>")
    return summary.run_id


def _environment(folder: Path) -> dict[str, str]:
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "FEEDBENCH"))},
        "AIRFLOW_HOME": str(folder / "airflow"),
        "AIRFLOW__CORE__AUTH_MANAGER": "airflow.api_fastapi.auth.managers.simple.simple_auth_manager.SimpleAuthManager",
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
        "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_hex(64),
        "FEEDBENCH_ARTIFACTS": str(folder / "artifacts"),
        "PYTHONPATH": os.pathsep.join(str(ROOT / room) for room in ("include", "plugins", "dags")),
        "PYTHONWARNINGS": "ignore",
    }


def _python(*arguments: str, env: dict[str, str]) -> str:
    done = subprocess.run([sys.executable, *arguments], env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr[-3000:])
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
