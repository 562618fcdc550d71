"""`make benchmark`: the whole DAG once, in this process, on a SQLite of its own; no scheduler, no UI.

    python ops/once.py ['{"source": "...", ...}']     params over the embedded ones

Trials are processes of their own here too, so what is measured is what a worker measures.
"""

import contextlib
import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "dags"))

SETTINGS = {
    "AIRFLOW_HOME": str(ROOT / "airflow_home"),
    "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "dags"),
    "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "plugins"),
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    "AIRFLOW__LOGGING__LOGGING_LEVEL": "WARNING",
    "FEEDBENCH_ARTIFACTS": str(ROOT / "artifacts"),
}

SET_UP = (["db", "migrate"], ["pools", "set", "gpu_benchmark", "1", "one trial at a time"])
"""Of Airflow, before its first run. One slot: nothing keeps two trials of one machine on different GPUs."""


def main(conf: str = "{}") -> int:
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    params = _params(conf)
    if params is None:
        return 2
    log = Path(os.environ["AIRFLOW_HOME"]) / "once.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    if not _set_up(log):
        return 1
    _in_the_order_of_the_plan()
    run = importlib.import_module("input_pipeline_benchmark").benchmark.test(run_conf=params)
    return _tell(run.run_id, str(run.state))


def _in_the_order_of_the_plan() -> None:
    """`DAG.test` runs what is ready in the order of a set, so at random; a scheduler takes mapped tasks as they come.

    Rounds that are not interleaved take a machine's drift for a difference. A set of small whole numbers is in order,
    and so is one of task instances that are hashed as theirs.
    """
    from airflow.models import TaskInstance

    TaskInstance.__hash__ = lambda instance: instance.map_index + 1


def _params(conf: str) -> dict | None:
    """The embedded params with the person's own over them, checked before Airflow is started."""
    from feedbench.errors import SettingsError
    from feedbench.flow.checks import check
    from feedbench.form import EMBEDDED

    try:
        own = json.loads(conf)
    except json.JSONDecodeError:
        own = None
    try:
        if not isinstance(own, dict):
            raise SettingsError(f'CONF={conf}: not a JSON object; for example CONF=\'{{"source": "my/photos"}}\'')
        check({**EMBEDDED, **own})
    except SettingsError as error:
        print(f"feedbench: {error}", file=sys.stderr)
        return None
    return {**EMBEDDED, **own}


def _set_up(log: Path) -> bool:
    """Airflow's database and the pool that lets one trial run at a time; quiet unless it fails."""
    airflow = [sys.executable, "-m", "airflow"]
    with log.open("w") as output:
        for step in SET_UP:
            if subprocess.run([*airflow, *step], stdout=output, stderr=subprocess.STDOUT, check=False).returncode:
                print(f"feedbench: airflow {' '.join(step)} failed; see {log}", file=sys.stderr)
                return False
    return True


def _tell(run_id: str, state: str) -> int:
    from feedbench.errors import InputError
    from feedbench.report.terminal import summary
    from feedbench.store import Store

    folder = Store().run(run_id)
    with contextlib.suppress(InputError):
        print(summary(folder.read_comparison()))
        print(f"report: {folder.report_html}")
    print(f"run {run_id}: {state}")
    return 0 if state == "success" else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
