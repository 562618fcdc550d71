"""One stack for all of these tests; see native.py for what is real about it.

It starts on an object store, and moves to a local folder with the first test that asks for that (`on_local_disk`).
"""

import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from feedbench.store import Store
from stack.airflow_client import AirflowClient
from stack.artifacts import Watcher
from stack.compose import read_env
from stack.inbox import Inbox, open_inbox
from stack.native import NativeStack, free_port, missing, wait_for
from stack.screens import chromium, open_page

ROOT = Path(__file__).parents[2]
LOGS = ROOT / "build" / "stack-logs"
BUCKET = "s3://benchmarks/nightly"


@pytest.fixture(scope="session")
def object_store(tmp_path_factory) -> Iterator[dict[str, str]]:
    """A server of the S3 protocol with one bucket; yields the variables that lead to it."""
    port = free_port()
    log = (tmp_path_factory.mktemp("s3") / "moto.log").open("wb")
    command = [str(Path(sys.executable).with_name("moto_server")), "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    variables = {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": "stack",
        "AWS_SECRET_ACCESS_KEY": "stack",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    try:
        wait_for("the S3 server answers", lambda: _make_bucket(variables))
        yield variables
    finally:
        server.terminate()
        server.wait(10)


def _make_bucket(variables: dict[str, str]) -> bool:
    import botocore.exceptions
    import botocore.session

    client = botocore.session.Session().create_client(
        "s3",
        endpoint_url=variables["AWS_ENDPOINT_URL"],
        region_name=variables["AWS_DEFAULT_REGION"],
        aws_access_key_id=variables["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=variables["AWS_SECRET_ACCESS_KEY"],
    )
    try:
        client.create_bucket(Bucket=BUCKET.split("/")[2])
    except botocore.exceptions.EndpointConnectionError:
        return False
    return True


@pytest.fixture(scope="session")
def inbox() -> Iterator[Inbox]:
    """Of the team that is told of every red run."""
    with open_inbox() as inbox:
        yield inbox


@pytest.fixture(scope="session")
def stack(object_store, inbox) -> Iterator[NativeStack]:
    """The running stack, its artefacts on the object store. What is left of it at the end fails the session."""
    if lacking := missing():
        pytest.fail(f"not on this machine: {', '.join(lacking)}; ops/system-packages.sh installs them on Debian")
    home = Path(tempfile.mkdtemp(prefix="feedbench-stack-"))  # pytest's folders are closed to PostgreSQL's user
    env_file = home / ".env"
    subprocess.run([sys.executable, ROOT / "ops" / "env.py", env_file], check=True)
    given = {**read_env(env_file), **object_store, **inbox.variables, "FEEDBENCH_ARTIFACTS": BUCKET}
    stack = NativeStack(home, given)
    stack.variables["AIRFLOW_URL"] = stack.address("8080")
    try:
        stack.start()
        yield stack
    finally:
        left = stack.stop()
        keep_logs(home)
        shutil.rmtree(home)
    assert not left, f"processes {left} outlived the stack"


def keep_logs(home: Path) -> None:
    LOGS.mkdir(parents=True, exist_ok=True)
    for log in home.glob("*.log"):
        shutil.copy(log, LOGS)


@pytest.fixture(scope="session")
def airflow(stack) -> AirflowClient:
    client = AirflowClient(stack.address("8080"), "admin", stack.variables["AIRFLOW_ADMIN_PASSWORD"])
    client.unpause()
    return client


@pytest.fixture
def remote_store(stack, object_store, monkeypatch) -> Store:
    """The artefacts on the object store, as this process sees them."""
    assert stack.variables.get("FEEDBENCH_ARTIFACTS") == BUCKET, "these tests come before those on a local disk"
    for name, value in object_store.items():
        monkeypatch.setenv(name, value)
    return Store(BUCKET)


@pytest.fixture(scope="session")
def on_local_disk(stack) -> Store:
    """From here to the end of the session the services that touch artefacts use the volume's folder."""
    del stack.variables["FEEDBENCH_ARTIFACTS"]
    touching = ("api-server", "dag-processor", "worker", "worker-cpu")
    for name in touching:
        stack.stop_service(name)
    stack.start_service(*touching)
    return Store(stack.native("/artifacts"))


@pytest.fixture
def watched(on_local_disk) -> Iterator[Watcher]:
    """Reads every JSON file over and over while the test goes on; fails it for one that was seen half written."""
    watcher = Watcher(Path(on_local_disk.root))
    thread = threading.Thread(target=watcher.watch, daemon=True)
    thread.start()
    yield watcher
    watcher.stop.set()
    thread.join()
    assert watcher.reads, "nothing was watched"
    assert not watcher.broken


@pytest.fixture(scope="session")
def browser() -> Iterator:
    with chromium() as browser:
        yield browser


@pytest.fixture
def page(browser, stack) -> Iterator:
    """A page whose relative addresses are Airflow's. Its last look is kept when the test fails half way."""
    with open_page(browser, stack.address("8080"), "last") as page:
        yield page
