"""The link from the task that writes a report to the report, for those to whom Airflow shows no tabs.

    @reporting_task
    def compare(): ...

is `@task` with that link. Airflow attaches a plugin's link to a class of operators, so the task has a class of its own;
on `@task` itself the link would stand on every task of every DAG.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from airflow.configuration import conf
from airflow.providers.standard.decorators.python import _PythonDecoratedOperator
from airflow.sdk import BaseOperatorLink
from airflow.sdk.bases.decorator import TaskDecorator, task_decorator_factory

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey

URL_PREFIX = "/benchmark"


class ReportingOperator(_PythonDecoratedOperator):
    """`@task`, told apart by its class alone."""


def reporting_task(python_callable: Callable | None = None, **keywords: Any) -> TaskDecorator:
    """`@task` for the task that writes the report of its run; takes what `@task` takes."""
    return task_decorator_factory(python_callable, decorated_operator_class=ReportingOperator, **keywords)


class ReportLink(BaseOperatorLink):
    """Made by the API server when the task is looked at, before, while and after it runs: nothing is stored."""

    name = "Benchmark report"
    operators = [ReportingOperator]  # noqa: RUF012

    def get_link(self, operator: "BaseOperator", *, ti_key: "TaskInstanceKey") -> str:
        return report_path(ti_key.run_id)


def report_path(run_id: str, *, with_host: bool = False) -> str:
    """Where the report of a run is to be read; `with_host` for those who are not in Airflow's pages."""
    base = conf.get("api", "base_url", fallback="")
    root = base if with_host else urlsplit(base).path
    return f"{root.rstrip('/')}{URL_PREFIX}/runs/{quote(run_id, safe='')}/report"
