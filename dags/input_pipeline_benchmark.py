"""Does the input pipeline feed the accelerator? Train once for each tf.data variant, compare, report.

    download -> index -> plan -> train[variant, round] -> compare -> gate

Every task calls one verb of `feedbench.flow`, imported when it runs: this file is read every few seconds.
Logs tell phase, step, rate and time left; the report is in the run's "Report" tab.
"""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from airflow.sdk import Asset, CronTriggerTimetable, Param, TriggerRule, dag, get_current_context, task
from airflow.sdk.exceptions import AirflowSkipException

from benchmark_link import reporting_task  # plugins/ is on Airflow's path
from feedbench.errors import FeedbenchError
from feedbench.form import form

REPORT = Asset("feedbench_report", uri="feedbench://report/input_pipeline_benchmark")


@contextmanager
def told() -> Iterator[None]:
    """An error that a person can mend ends the log with its one line, not with a stack of frames."""
    try:
        yield
    except FeedbenchError as error:
        logging.getLogger("airflow.task").error("%s", error)
        sys.exit(error.exit_code)


def this_run() -> tuple[Any, str, Any, Any]:
    """The store, this run's id, its settings, and progress into the log.

    Whether source, weights and variants are what they should be is for `download` to check: another worker need not
    see the folder that they came from.
    """
    from feedbench.config import Settings
    from feedbench.progress import Lines
    from feedbench.store import Store

    context = get_current_context()
    asked = {**context["params"], **(context["dag_run"].conf or {})}  # params alone would drop unknown keys
    return Store(), context["run_id"], Settings.parse(asked), Lines(sys.stdout)


@dag(
    schedule=CronTriggerTimetable("30 2 * * *", timezone="UTC"),
    catchup=False,
    max_active_runs=1,
    params={name: Param(**keywords) for name, keywords in form().items()},
    tags=["feedbench", "tf.data"],
    doc_md=__doc__,
)
def input_pipeline_benchmark():
    @task
    def download() -> dict:
        from feedbench import flow

        with told():
            store, _, settings, progress = this_run()
            flow.check(settings.model_dump(), trains_here=False)  # trials run elsewhere
            return flow.download(store, settings, progress)

    @task
    def index(fetched: dict) -> dict:
        from feedbench import flow

        with told():
            store, run_id, settings, progress = this_run()
            return flow.index(store, run_id, settings, fetched, progress)

    @task
    def plan(fetched: dict) -> list:
        from feedbench import flow

        with told():
            store, run_id, settings, _ = this_run()
            return flow.plan(store, run_id, settings, fetched)

    @task(
        pool="gpu_benchmark",
        queue="gpu",
        multiple_outputs=False,
        map_index_template="{{ task.op_kwargs['trial']['variant'] }} #{{ task.op_kwargs['trial']['round'] }}",
    )
    def train(trial: dict) -> dict:
        from feedbench import flow

        with told():
            store, run_id, _, progress = this_run()
            result = flow.train(store, run_id, trial, progress)
        if result is None:
            raise AirflowSkipException("the rounds before this one have settled the matter")
        print("{variant} #{round}: {step_time_ms:.1f} ms a step over {steps} steps".format(**result))
        return result

    @reporting_task(trigger_rule=TriggerRule.ALL_DONE, outlets=[REPORT])
    def compare() -> dict:
        from feedbench import flow

        with told():
            store, run_id, _, progress = this_run()
            result = flow.compare_run(store, run_id, progress)
        get_current_context()["outlet_events"][REPORT].extra = {"run_id": run_id, **result}
        print(result["verdict"])
        return result

    @task
    def gate() -> None:
        from feedbench import flow

        with told():
            store, run_id, _, _ = this_run()
            flow.gate(store, run_id)

    fetched = download()
    planned = plan(fetched)
    index(fetched) >> planned
    train.expand(trial=planned) >> compare() >> gate()


benchmark = input_pipeline_benchmark()
