"""Keep the benchmark's artefacts bounded: profiles of old runs go, reports and results stay, pinned runs stay whole."""

from datetime import timedelta

from airflow.sdk import CronTriggerTimetable, Param, dag, get_current_context, task


@dag(
    # Half a day from the nightly run; never for a time that has passed.
    schedule=CronTriggerTimetable("30 12 * * *", timezone="UTC", run_immediately=timedelta(0)),
    catchup=False,
    max_active_runs=1,
    params={
        "keep_profiles": Param(14, type="integer", minimum=1, description="Newest finished runs that keep profiles."),
        "limit_gb": Param(
            50, type=["number", "null"], exclusiveMinimum=0, description="Remove more while all runs take more."
        ),
    },
    tags=["feedbench", "maintenance"],
    doc_md=__doc__,
)
def feedbench_maintenance():
    @task
    def prune() -> float:
        from feedbench.history.retention import prune
        from feedbench.store import Store

        params = get_current_context()["params"]
        limit_mb = params["limit_gb"] * 1000 if params["limit_gb"] is not None else None
        kept = prune(Store(), params["keep_profiles"], limit_mb)
        print(kept.sentence)
        return kept.total_mb

    prune()


maintenance = feedbench_maintenance()
