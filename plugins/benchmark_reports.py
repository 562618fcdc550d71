"""The reports inside Airflow: a list of runs, a tab on each run, a link on the task that wrote it."""

from collections.abc import Callable
from typing import Any

from airflow.plugins_manager import AirflowPlugin

from benchmark_link import URL_PREFIX, ReportLink


async def pages(scope: dict[str, Any], receive: Callable, send: Callable) -> None:
    """The pages as an ASGI app, imported by the first request.

    Every process that runs a task loads all plugins; only the API server has use for FastAPI and these pages.
    """
    from benchmark_pages.app import app

    await app(scope, receive, send)


class BenchmarkReports(AirflowPlugin):
    name = "benchmark_reports"
    fastapi_apps = [{"app": pages, "url_prefix": URL_PREFIX, "name": "Benchmark reports"}]  # noqa: RUF012
    # Addresses without a leading slash: relative to Airflow's own base URL, whatever prefix that has.
    external_views = [  # noqa: RUF012
        {
            "name": "Benchmark runs",
            "destination": "nav",
            "category": "browse",
            "url_route": "benchmark-runs",
            "href": f"{URL_PREFIX[1:]}/runs",
        },
        {
            "name": "Report",
            "destination": "dag_run",
            "url_route": "benchmark-report",
            "href": f"{URL_PREFIX[1:]}/dags/{{DAG_ID}}/runs/{{RUN_ID}}/report",
        },
    ]
    operator_extra_links = [ReportLink()]  # noqa: RUF012
