"""`make ui` serves one person on this machine, keeps its password, and leaves nothing behind."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil
import pytest
import ui as ui_script

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [pytest.mark.stack, pytest.mark.timeout(300)]
READY_S = 180


@dataclass
class Ui:
    """A running `make ui` in a home of its own, and what it said when it was ready."""

    process: subprocess.Popen
    home: Path
    port: int
    said: str

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def password(self) -> str | None:
        told = re.search(r"^password +(\S+)   \(told this once\)$", self.said, re.MULTILINE)
        return told[1] if told else None

    def family(self) -> list[psutil.Process]:
        top = psutil.Process(self.process.pid)
        return [top, *top.children(recursive=True)]

    def interrupt(self) -> int:
        """Ctrl-C; returns the exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(60)


def start(home: Path) -> Ui:
    """Raises TimeoutExpired with what it said when it does not get ready."""
    port, board_port = free_port(), free_port()
    env = {
        **os.environ,
        "AIRFLOW_HOME": str(home),
        "FEEDBENCH_ARTIFACTS": str(home / "artifacts"),
        "PORT": str(port),
        "TENSORBOARD_PORT": str(board_port),
    }
    command = [sys.executable, ROOT / "ops" / "ui.py"]
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said = []
    too_late = threading.Timer(READY_S, process.terminate)
    too_late.start()
    for line in process.stdout:
        said.append(line)
        if "Ctrl-C" in line:
            break
    too_late.cancel()
    return Ui(process, home, port, "".join(said))


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@pytest.fixture(scope="module")
def ui(tmp_path_factory) -> Iterator[Ui]:
    ui = start(tmp_path_factory.mktemp("ui"))
    assert ui.process.poll() is None, ui.said
    yield ui
    if ui.process.poll() is None:
        ui.interrupt()


@pytest.fixture(scope="module")
def api(ui) -> httpx.Client:
    login = httpx.post(f"{ui.address}/auth/token", json={"username": "admin", "password": ui.password}, timeout=30)
    token = login.raise_for_status().json()["access_token"]
    return httpx.Client(base_url=f"{ui.address}/api/v2", headers={"Authorization": f"Bearer {token}"}, timeout=30)


class TestUi:
    def test_nothing_listens_to_other_machines(self, ui):
        addresses = {
            socket.laddr.ip for process in ui.family() for socket in process.net_connections() if not socket.raddr
        }
        assert addresses == {"127.0.0.1"}

    def test_only_the_password_that_was_told_opens_it(self, ui, api):
        assert api.get("/dags").status_code == 200
        wrong = {"username": "admin", "password": "admin"}
        assert httpx.post(f"{ui.address}/auth/token", json=wrong, timeout=30).status_code == 401
        assert httpx.get(f"{ui.address}/api/v2/dags", timeout=30).status_code == 401
        assert (ui.home / "ui_password.json").stat().st_mode & 0o077 == 0

    def test_trials_have_a_pool_of_one_slot(self, api):
        assert api.get("/pools/gpu_benchmark").json()["slots"] == 1

    def test_the_dag_waits_to_be_unpaused(self, ui, api):
        dag = api.get("/dags/input_pipeline_benchmark").json()
        assert dag["is_paused"]
        assert "The DAG is paused" in ui.said

    def test_tensorboard_is_there(self, ui):
        address = re.search(r"^TensorBoard +(\S+)$", ui.said, re.MULTILINE)[1]
        assert "profile" in httpx.get(f"{address}/data/plugins_listing", timeout=60).json()

    def test_a_port_that_is_taken_is_refused_by_name(self, ui):
        env = {**os.environ, "PORT": str(ui.port)}
        command = [sys.executable, ROOT / "ops" / "ui.py"]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert f"PORT={ui.port}" in done.stderr

    def test_ctrl_c_ends_every_process(self, ui):
        """Those too whose parents are gone or that have sessions of their own. The last test: it ends the fixture."""
        family = ui.family()
        assert len(family) > 5
        assert ui.interrupt() == 0
        assert [process for process in family if process.is_running()] == []


class TestPassword:
    def test_it_is_told_once(self, tmp_path, monkeypatch):
        """A second start finds the file of the first, and tells where it is instead of what is in it."""
        monkeypatch.setenv("FEEDBENCH_ARTIFACTS", "anywhere")
        file = tmp_path / "password.json"
        first, second = ui_script.new_password(file), ui_script.new_password(file)
        assert first == json.loads(file.read_text())["admin"]
        assert second is None
        assert f"{first}   (told this once)" in ui_script.welcome(1, 2, first, file)
        assert f"delete {file} and start again" in ui_script.welcome(1, 2, second, file)
