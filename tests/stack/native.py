"""The services of docker-compose.yaml as processes of this machine: same commands, same settings, other addresses.

What a container gives is given here by other means, and nothing else: the Dockerfile's environment, what the images of
PostgreSQL does at its first start, names of hosts, and the lack of TensorFlow where the image has none.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from stack.compose import ROOT, environment, health_command, image_environment, services

AIRFLOW = ("scheduler", "dag-processor", "triggerer", "worker", "worker-cpu", "tensorboard")
"""Started together once the API server answers; the GPU worker's stand-in is the same queue without a GPU."""
PORTS = ("5432", "6379", "8080", "6006")
FOLDERS = ("/opt/airflow", "/opt/matplotlib", "/artifacts", "/cache", "/scratch", "/data", "/variants")
BINARIES = Path(sys.executable).parent
START_S = 120


def missing() -> list[str]:
    """Commands that the stack needs and this machine lacks."""
    wanted = {"postgres": postgres_folder() / "postgres", "redis-server": "redis-server", "chromium": "chromium"}
    return [name for name, command in wanted.items() if not shutil.which(command)]


def postgres_folder() -> Path:
    """Debian keeps the server's programs out of PATH, a folder for each version."""
    return max(Path("/usr/lib/postgresql").glob("*/bin"), default=Path("/usr/bin"))


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def wait_for(what: str, check: Callable[[], Any], within_s: float = START_S, every_s: float = 0.5) -> Any:
    """The first true answer of `check`. Raises TimeoutError naming `what`."""
    end = time.monotonic() + within_s
    while not (answer := check()):
        if time.monotonic() > end:
            raise TimeoutError(f"not within {within_s:g} s: {what}")
        time.sleep(every_s)
    return answer


@dataclass
class NativeStack:
    """Start it, use it, stop it; `variables` are those of .env, and may be changed between starts of a service."""

    home: Path
    variables: dict[str, str]
    ports: dict[str, int] = field(default_factory=lambda: {port: free_port() for port in PORTS})
    running: dict[str, subprocess.Popen] = field(default_factory=dict)

    # ---- as a whole

    def start(self) -> None:
        self.home.chmod(0o711)  # PostgreSQL's user must get through
        for folder in FOLDERS:
            self.native(folder).mkdir(parents=True, exist_ok=True)
        self._hide_tensorflow()
        self.start_service("postgres", "redis")
        self.run("init")
        self.start_service("api-server")
        self.start_service(*AIRFLOW)

    def stop(self) -> list[int]:
        """Stop all; returns the ids of processes that were left over (and are killed now)."""
        for name in reversed(list(self.running)):
            self._signal(name, signal.SIGINT if name == "postgres" else signal.SIGTERM)
        for name in reversed(list(self.running)):
            self._wait_or_kill(name)
        left = self.processes()
        for process in left:
            process.kill()
        return [process.pid for process in left]

    def processes(self, words: str = "") -> list[psutil.Process]:
        """Living processes of this stack, by their environment: parents and sessions may be lost, that is not."""
        return [process for process in psutil.process_iter() if self._is_ours(process, words)]

    def _is_ours(self, process: psutil.Process, words: str) -> bool:
        try:
            mine = process.environ().get("AIRFLOW_HOME") == str(self.native("/opt/airflow"))
            return mine and process.status() != psutil.STATUS_ZOMBIE and words in " ".join(process.cmdline())
        except psutil.Error:
            return False

    # ---- one service

    def start_service(self, *names: str) -> None:
        """Start them at once, and wait until each is healthy by its own health check."""
        for name in names:
            prepare = self._prepare_postgres if name == "postgres" else None
            command, user = prepare() if prepare else (self.command(name), None)
            log = (self.home / f"{name}.log").open("ab")
            self.running[name] = subprocess.Popen(
                command, env=self.environment(name), stdout=log, stderr=log, cwd=self.home,
                start_new_session=True, user=user,
            )  # fmt: skip
        for name in names:
            wait_for(f"{name} healthy; see {self.home / name}.log", lambda name=name: self.is_healthy(name))
        if "postgres" in names:
            self._create_database()

    def stop_service(self, name: str) -> None:
        self._signal(name, signal.SIGTERM)
        self._wait_or_kill(name)

    def kill_service(self, name: str) -> None:
        """As when a container is killed: all its processes at once, however they are grouped."""
        top = psutil.Process(self.running[name].pid)
        for process in [top, *top.children(recursive=True)]:
            process.kill()
        self.running.pop(name).wait()

    def kill_parent(self, name: str) -> list[psutil.Process]:
        """Its first process alone. Returns the others: in a container they would end with it, here on their own."""
        process = self.running.pop(name)
        others = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        process.wait()
        return others

    def is_healthy(self, name: str) -> bool:
        if self.running[name].poll() is not None:
            raise RuntimeError(f"{name} ended with code {self.running[name].returncode}; see {self.home / name}.log")
        command = self.replaced(health_command(self.services[name]))
        return not subprocess.run(command, env=self.environment(name), capture_output=True, check=False).returncode

    def run(self, name: str) -> None:
        """A service that ends. Raises CalledProcessError with its words in the log."""
        with (self.home / f"{name}.log").open("ab") as log:
            subprocess.run(self.command(name), env=self.environment(name), stdout=log, stderr=log, check=True)

    def _signal(self, name: str, number: int) -> None:
        if self.running[name].poll() is None:
            os.killpg(self.running[name].pid, number)

    def _wait_or_kill(self, name: str) -> None:
        process = self.running.pop(name)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    # ---- from the file to this machine

    @property
    def services(self) -> dict[str, dict[str, Any]]:
        return services(self.variables)

    def command(self, name: str) -> list[str]:
        return self.replaced(self.services[name]["command"])

    def environment(self, name: str) -> dict[str, str]:
        """The container's environment: the Dockerfile's, the service's, and what a process needs here."""
        service = self.services[name]
        given = {**image_environment(), **environment(service, self.variables)}
        here = {key: self._text(value) for key, value in given.items()}
        if service["image"] == "feedbench/airflow":
            here["PYTHONPATH"] = f"{self.home / 'slim'}:{here['PYTHONPATH']}"
        path = f"{BINARIES}:{postgres_folder()}:{os.environ['PATH']}"
        return {"PATH": path, "HOME": str(self.home), "LANG": "C.UTF-8", **here}

    def replaced(self, command: list[str]) -> list[str]:
        return [self._text(word) for word in command]

    def native(self, folder: str) -> Path:
        return self.home / folder.strip("/").replace("opt/", "")

    def _text(self, text: str) -> str:
        text = text.replace("/opt/feedbench", str(ROOT))
        for folder in FOLDERS:
            text = re.sub(rf"(?<![\w/.-]){folder}\b", str(self.native(folder)), text)
        text = re.sub(r"(?<=[@/])(postgres|redis|api-server)(?=:\d)", "127.0.0.1", text).replace("0.0.0.0", "127.0.0.1")
        return re.sub(r"\b(5432|6379|8080|6006)\b", lambda found: str(self.ports[found[0]]), text)

    def address(self, port: str) -> str:
        return f"http://127.0.0.1:{self.ports[port]}"

    # ---- what images do

    def _hide_tensorflow(self) -> None:
        """Python runs a sitecustomize at its start; None in sys.modules is a package that is not installed."""
        hide = self.home / "slim" / "sitecustomize.py"
        hide.parent.mkdir()
        hide.write_text("import sys\n\nsys.modules.update(tensorflow=None, keras=None)\n")

    def _prepare_postgres(self) -> tuple[list[str], str | None]:
        """What the image's entry point does: a cluster with the user and password of the environment."""
        user = "postgres" if os.geteuid() == 0 else None
        data = self.home / "postgres"
        given = self.environment("postgres")
        if not data.exists():
            data.mkdir(mode=0o700)
            password = self.home / "postgres.password"
            password.write_text(given["POSTGRES_PASSWORD"])
            if user:
                shutil.chown(data, user)
                shutil.chown(password, user)
            login = ["--username", given["POSTGRES_USER"], "--pwfile", password, "--auth", "scram-sha-256"]
            subprocess.run(
                ["initdb", "--pgdata", data, *login], env=given, user=user, check=True, capture_output=True, cwd=data
            )
        port = str(self.ports["5432"])
        return [shutil.which("postgres", path=given["PATH"]), "-D", str(data), "-p", port, "-h", "127.0.0.1",
                "-k", str(data), "-c", "fsync=off"], user  # fmt: skip

    def _create_database(self) -> None:
        given: Mapping[str, str] = self.environment("postgres")
        where = ["--host", "127.0.0.1", "--port", str(self.ports["5432"]), "--username", given["POSTGRES_USER"]]
        subprocess.run(
            ["createdb", *where, given["POSTGRES_DB"]],
            env={**given, "PGPASSWORD": given["POSTGRES_PASSWORD"]},
            check=True,
        )
