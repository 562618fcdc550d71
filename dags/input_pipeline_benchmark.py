"""Does the input pipeline feed the accelerator? Train once for each tf.data variant, compare, report.

    download -> index -> plan -> train[variant, round] -> compare -> gate

Every task calls one verb of `feedbench.flow`, imported when it runs: this file is read every few seconds.
Logs tell phase, step, rate and time left; the report is in the run's "Report" tab.
"""

from datetime import timedelta

from airflow.sdk import Asset, CronTriggerTimetable, Param, dag, get_current_context, task
from airflow.sdk.exceptions import AirflowSkipException

from benchmark_link import reporting_task  # plugins/ is on Airflow's path
from benchmark_notice import on_failure
from benchmark_task import this_run, told
from feedbench.form import form

REPORT = Asset("feedbench_report", uri="feedbench://report/input_pipeline_benchmark")


@dag(
    # Unpaused soon after half past two, it would else train at once, whatever time of day its owner had in mind.
    schedule=CronTriggerTimetable("30 2 * * *", timezone="UTC", run_immediately=timedelta(0)),
    catchup=False,
    max_active_runs=1,
    params={name: Param(**keywords) for name, keywords in form().items()},
    on_failure_callback=on_failure(),
    tags=["feedbench", "tf.data"],
    doc_md=__doc__,
)
def input_pipeline_benchmark():
    @task
    def download() -> dict:
        from feedbench.flow.checks import check
        from feedbench.flow.preparation import download

        with told():
            run = this_run()
            check(run.settings.model_dump(), trains_here=False)  # trials run elsewhere
            return download(run.store, run.settings, run.progress)

    @task
    def index(fetched: dict) -> dict:
        from feedbench.flow.preparation import index

        with told():
            run = this_run()
            return index(run.store, run.run_id, run.settings, fetched, run.progress)

    @task
    def plan(fetched: dict) -> list:
        from feedbench.flow.preparation import plan

        with told():
            run = this_run()
            return plan(run.store, run.run_id, run.settings, fetched)

    @task(
        pool="gpu_benchmark",
        queue="gpu",
        multiple_outputs=False,
        map_index_template="{{ task.op_kwargs['trial']['variant'] }} #{{ task.op_kwargs['trial']['round'] }}",
    )
    def train(trial: dict) -> dict:
        from feedbench.flow.trials import train

        with told():
            run = this_run()
            result = train(run.store, run.run_id, trial, run.progress)
        if result is None:
            raise AirflowSkipException("the rounds before this one have settled the matter")
        print("{variant} #{round}: {step_time_ms:.1f} ms a step over {steps} steps".format(**result))
        return result

    @reporting_task(outlets=[REPORT])
    def compare() -> dict:
        from feedbench.flow.results import compare_run

        with told():
            run = this_run()
            result = compare_run(run.store, run.run_id, run.progress)
        get_current_context()["outlet_events"][REPORT].extra = {"run_id": run.run_id, **result}
        print(result["verdict"])
        return result

    @task
    def gate(reported: dict | None) -> None:
        from feedbench.errors import OutputError
        from feedbench.flow.gate import gate

        with told():
            if reported is None:  # a teardown's own failure would leave the run green
                raise OutputError("there is no comparison of this run: see the log of the task compare")
            run = this_run()
            gate(run.store, run.run_id)

    fetched = download()
    planned = plan(fetched)
    index(fetched) >> planned
    # Teardowns run whatever became of the trials, also of a run that somebody cancelled: it has a report, and is red.
    reported = compare().as_teardown()
    train.expand(trial=planned) >> reported
    gate(reported).as_teardown(on_failure_fail_dagrun=True)


benchmark = input_pipeline_benchmark()
