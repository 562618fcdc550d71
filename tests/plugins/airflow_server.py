"""A real Airflow API server with the project's plugins, for the tests: python airflow_server.py simple|fab DAG_ID FD

Wants AIRFLOW_HOME and the settings of `conftest.environment`. Writes JSON to the file descriptor FD,
{"port", "tokens": {who: token}, "addresses": [of the plugin]}, then serves until it is ended.
Who there is: admin, viewer, stranger (signed in, without rights on the DAG).
"""

import json
import os
import socket
import sys
from datetime import UTC, datetime

import uvicorn
from airflow.api_fastapi.app import create_app, get_auth_manager
from airflow.models import DagModel
from airflow.models.dagbundle import DagBundleModel
from airflow.models.serialized_dag import SerializedDagModel
from airflow.sdk import DAG, task
from airflow.serialization.definitions.dag import SerializedDAG
from airflow.serialization.serialized_objects import DagSerialization, LazyDeserializedDAG
from airflow.utils.session import create_session
from airflow.utils.state import DagRunState
from airflow.utils.types import DagRunTriggeredByType, DagRunType

from benchmark_link import reporting_task
from benchmark_pages.app import site

RUNS = {
    "scheduled__2026-03-04T02:30:00+00:00": ("2026-03-04T02:30:00", DagRunState.SUCCESS),
    "manual__2026-03-05T09:00:00+00:00": ("2026-03-05T09:00:00", DagRunState.RUNNING),
    "manual__2026-03-05T10:00:00+00:00": ("2026-03-05T10:00:00", DagRunState.QUEUED),
    "by_hand": ("2026-03-04T08:00:00", DagRunState.FAILED),
}


def nothing() -> None:
    """What the tasks of the DAG do here."""


def add_runs(dag_id: str) -> None:
    """The DAG as its file would bring it in, with a task that reports and one that does not, and its runs."""
    with DAG(dag_id, schedule=None) as dag:
        compare, gate = reporting_task(task_id="compare")(nothing), task(task_id="gate")(nothing)
        compare() >> gate()
    with create_session() as session:
        session.add(DagBundleModel(name="tests"))
        session.flush()
        lazy = LazyDeserializedDAG.from_dag(dag)
        SerializedDAG.bulk_write_to_db("tests", None, [lazy], session=session)
        SerializedDagModel.write_dag(lazy, "tests", session=session)
        session.add(DagModel(dag_id="other", bundle_name="tests", fileloc="tests"))
    with create_session() as session:
        stored = DagSerialization.from_dict(DagSerialization.to_dict(dag))
        for run_id, (when, state) in RUNS.items():
            stored.create_dagrun(
                run_id=run_id,
                run_after=datetime.fromisoformat(when).replace(tzinfo=UTC),
                run_type=DagRunType.from_run_id(run_id),
                triggered_by=DagRunTriggeredByType.TEST,
                state=state,
                session=session,
            )


def simple_users() -> dict:
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

    roles = {"admin": "ADMIN", "viewer": "VIEWER", "stranger": None}
    return {who: SimpleAuthManagerUser(username=who, role=role) for who, role in roles.items()}


def fab_users(dag_id: str) -> dict:
    """The viewer may read runs of this DAG alone, the stranger those of another DAG alone."""
    from airflow.providers.fab.auth_manager.cli_commands.utils import get_application_builder

    reading = {
        "viewer": [("can_read", f"DAG:{dag_id}"), ("can_read", "DAG Runs")],
        "stranger": [("can_read", "DAG:other"), ("can_read", "DAG Runs")],
    }
    with get_application_builder() as builder:
        security = builder.sm
        security.sync_roles()
        for who, permissions in reading.items():
            role = security.add_role(who)
            for permission in permissions:
                security.add_permission_to_role(role, security.create_permission(*permission))
        roles = {"admin": "Admin", "viewer": "viewer", "stranger": "stranger"}
        for who, role in roles.items():
            security.add_user(who, who, who, f"{who}@example.org", security.find_role(role), password=who)
        return {who: security.find_user(who) for who in roles}


def main(manager: str, dag_id: str, hello: str) -> None:
    add_runs(dag_id)
    app = create_app(apps="core")
    users = fab_users(dag_id) if manager == "fab" else simple_users()
    tokens = {who: get_auth_manager().generate_jwt(user) for who, user in users.items()}
    listener = socket.create_server(("127.0.0.1", 0))
    addresses = [route.path for route in site.routes]
    with os.fdopen(int(hello), "w") as pipe:
        json.dump({"port": listener.getsockname()[1], "tokens": tokens, "addresses": addresses}, pipe)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])


main(*sys.argv[1:])
