"""A folder of runs, and real Airflow API servers that show it."""

import http.client
import json
import os
import secrets
import subprocess
import sys
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

import pytest

from feedbench.store import Store
from planted.run_folders import BROKEN, DAG_ID, FINISHED, LINKED, PROFILE, RUNNING, SECRET, finish, plan

PROJECT = Path(__file__).parents[2]


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "artifacts")


@pytest.fixture(scope="session")
def artifacts(tmp_path_factory):
    """One run in each state there is, and links that lead out."""
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret").write_bytes(SECRET)
    store = Store(tmp_path_factory.mktemp("artifacts"))
    finished = finish(store, FINISHED)
    plan(store, RUNNING)
    broken = finish(store, BROKEN)
    (broken.path / "summary.json").write_bytes(b'{"schema_version": 1, "verdict"')
    broken.report_html.unlink()
    broken.report_html.symlink_to(outside / "secret")
    elsewhere = finish(Store(outside), LINKED)
    elsewhere.report_html.write_bytes(SECRET)
    store.run(LINKED).path.symlink_to(elsewhere.path)
    profile = finished.path / PROFILE
    (profile.parent / "linked.xplane.pb").symlink_to(outside / "secret")
    (profile.parents[1] / "linked").symlink_to(outside)
    (outside / "worker.xplane.pb").write_bytes(SECRET)
    return store.root


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self):
        return self.body.decode()


@dataclass(frozen=True)
class Airflow:
    """A running API server. Targets go over the wire as they are given, not tidied up by a client."""

    port: int
    tokens: dict[str, str] = field(repr=False)
    addresses: list[str]

    def ask(self, target, who=None, method="GET", headers=()):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        sent = dict(headers)
        if who is not None:
            sent["Authorization"] = f"Bearer {self.tokens[who]}"
        try:
            connection.request(method, target, headers=sent)
            got = connection.getresponse()
            return Answer(got.status, {name.lower(): value for name, value in got.getheaders()}, got.read())
        finally:
            connection.close()

    def api(self, path):
        return json.loads(self.ask(f"/api/v2{path}", "admin").body)


MANAGERS = {
    "simple": "airflow.api_fastapi.auth.managers.simple.simple_auth_manager.SimpleAuthManager",
    "fab": "airflow.providers.fab.auth_manager.fab_auth_manager.FabAuthManager",
}


def environment(home, manager, artifacts):
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")},
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__AUTH_MANAGER": MANAGERS[manager],
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(home / "dags"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(PROJECT / "plugins"),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home}/airflow.db",
        "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_hex(64),
        "FEEDBENCH_ARTIFACTS": str(artifacts),
        "PYTHONPATH": f"{PROJECT}/include:{PROJECT}/plugins",
        "PYTHONWARNINGS": "ignore",
    }


@pytest.fixture(scope="session", params=["simple", "fab"])
def airflow(request, tmp_path_factory, artifacts):
    """One process for each auth manager, since Airflow's settings belong to the process."""
    package = {"simple": "apache-airflow", "fab": "apache-airflow-providers-fab"}[request.param]
    if not any(metadata.distributions(name=package)):  # importing it would set up Airflow in this process
        pytest.skip(f"{package} is not installed")
    home = tmp_path_factory.mktemp(f"airflow_{request.param}")
    variables = environment(home, request.param, artifacts)
    with (home / "server.log").open("w") as log:
        migrate = [sys.executable, "-m", "airflow", "db", "migrate"]
        subprocess.run(migrate, env=variables, stdout=log, stderr=log, check=True)
        read, write = os.pipe()
        script = Path(__file__).parent / "airflow_server.py"
        command = [sys.executable, str(script), request.param, DAG_ID, str(write)]
        server = subprocess.Popen(command, env=variables, stdout=log, stderr=log, pass_fds=[write])
        os.close(write)
    try:
        with os.fdopen(read) as pipe:
            hello = pipe.read()  # ends when the server has written it, or is dead
        assert hello, (home / "server.log").read_text()[-5000:]
        yield Airflow(**json.loads(hello))
    finally:
        server.terminate()
        server.wait(30)
