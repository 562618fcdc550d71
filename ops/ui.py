"""`make ui`: Airflow's UI for one person on this machine, with the DAG, the reports and TensorBoard; Ctrl-C ends all.

    PORT=8080 TENSORBOARD_PORT=6006 python ops/ui.py

SQLite, LocalExecutor, and nothing that another machine could reach. It shows the runs of `make benchmark` too.
"""

import ctypes
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import psutil
from once import SET_UP, SETTINGS

LOOPBACK = "127.0.0.1"
USER = "admin"
READY_S = 180
STOP_S = 15


def main() -> int:
    port, board_port = free_port("PORT", 8080), free_port("TENSORBOARD_PORT", 6006)
    home = Path(os.environ.get("AIRFLOW_HOME", SETTINGS["AIRFLOW_HOME"])).absolute()
    logs = home / "logs" / "ui"
    logs.mkdir(parents=True, exist_ok=True)
    password_file = home / "ui_password.json"
    password = new_password(password_file)
    os.environ.update(settings(home, port, password_file))
    adopt_orphans()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    print("starting Airflow; this takes about a minute", file=sys.stderr, flush=True)
    try:
        set_up(logs / "set-up.log")
        children = {name: start(command, logs / f"{name}.log") for name, command in services(port, board_port).items()}
        wait_until_ready(port, children)
        print(welcome(port, board_port, password, password_file), flush=True)
        name = first_to_end(children)
    except KeyboardInterrupt:
        print("\nstopping", file=sys.stderr)
        return 0
    except subprocess.CalledProcessError as error:
        print(f"feedbench: {' '.join(error.cmd[1:])} failed; see {logs / 'set-up.log'}", file=sys.stderr)
        return 1
    else:
        print(f"feedbench: {name} ended with code {children[name].returncode}; see {logs / name}.log", file=sys.stderr)
        return 1
    finally:
        stop_all()


def settings(home: Path, port: int, password_file: Path) -> dict[str, str]:
    """What the services see. Keys that sign logins live as long as this process: stopping it signs everybody out."""
    given = {**SETTINGS, "AIRFLOW__LOGGING__LOGGING_LEVEL": "INFO"}
    return {
        **{name: os.environ.get(name, value) for name, value in given.items()},
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__CORE__AUTH_MANAGER": "airflow.api_fastapi.auth.managers.simple.simple_auth_manager.SimpleAuthManager",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USER}:admin",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(password_file),
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://{LOOPBACK}:{port}/execution/",
        "AIRFLOW__API__BASE_URL": f"http://{LOOPBACK}:{port}",
        "AIRFLOW__API__SECRET_KEY": secrets.token_urlsafe(64),
        "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_urlsafe(64),
    }


def services(port: int, board_port: int) -> dict[str, list[str]]:
    """Without the servers of logs: those listen on all addresses, and the files lie here anyway."""
    airflow = [sys.executable, "-m", "airflow"]
    runs = f"{os.environ['FEEDBENCH_ARTIFACTS']}/runs"
    tensorboard = [str(Path(sys.executable).with_name("tensorboard")), "--logdir", runs]
    return {
        "api-server": [*airflow, "api-server", "--host", LOOPBACK, "--port", str(port), "--workers", "1"],
        "scheduler": [*airflow, "scheduler", "--skip-serve-logs"],
        "dag-processor": [*airflow, "dag-processor"],
        "triggerer": [*airflow, "triggerer", "--skip-serve-logs"],
        "tensorboard": [*tensorboard, "--host", LOOPBACK, "--port", str(board_port)],
    }


def free_port(variable: str, usual: int) -> int:
    """The port asked for, else the usual one, else any. Ends with code 2 when the one asked for is taken."""
    asked = os.environ.get(variable)
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, int(asked or usual)))
        except OSError as error:
            if asked:
                print(f"feedbench: {variable}={asked}: {error.strerror}; choose another one", file=sys.stderr)
                sys.exit(2)
            probe.bind((LOOPBACK, 0))
        return probe.getsockname()[1]


def new_password(file: Path) -> str | None:
    """A random password, written where Airflow looks for it; None when there has been one before."""
    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return None
    password = secrets.token_urlsafe(12)
    with os.fdopen(handle, "w") as output:
        json.dump({USER: password}, output)
    return password


def set_up(log: Path) -> None:
    """The database, and the pool."""
    airflow = [sys.executable, "-m", "airflow"]
    with log.open("w") as output:
        for step in SET_UP:
            subprocess.run([*airflow, *step], stdout=output, stderr=output, check=True)


def start(command: list[str], log: Path) -> subprocess.Popen:
    """In a session of its own: Ctrl-C reaches this process alone, which then stops the others in order."""
    with log.open("w") as output:
        return subprocess.Popen(command, stdout=output, stderr=output, stdin=subprocess.DEVNULL, start_new_session=True)


def wait_until_ready(port: int, children: dict[str, subprocess.Popen]) -> None:
    end = time.monotonic() + READY_S
    while time.monotonic() < end and all(child.poll() is None for child in children.values()):
        try:
            urllib.request.urlopen(f"http://{LOOPBACK}:{port}/api/v2/monitor/health", timeout=5).close()
        except (urllib.error.URLError, TimeoutError):
            time.sleep(0.5)
        else:
            return


def first_to_end(children: dict[str, subprocess.Popen]) -> str:
    while True:
        for name, child in children.items():
            if child.poll() is not None:
                return name
        time.sleep(1)


def welcome(port: int, board_port: int, password: str | None, password_file: Path) -> str:
    known = f"the one told at the first start; for a new one, delete {password_file} and start again"
    return f"""
Airflow       http://{LOOPBACK}:{port}/dags/input_pipeline_benchmark
user          {USER}
password      {f"{password}   (told this once)" if password else known}
TensorBoard   http://{LOOPBACK}:{board_port}
artefacts     {os.environ["FEEDBENCH_ARTIFACTS"]}

The DAG is paused, so that no night starts a download of 229 MB by itself. "Trigger" offers to unpause it; from then
on it runs every night at 02:30 UTC while this runs. Ctrl-C stops everything.
"""


def adopt_orphans() -> None:
    """Whatever the services leave behind becomes this process's child, so that `stop_all` finds it."""
    pr_set_child_subreaper = 36
    ctypes.CDLL(None).prctl(pr_set_child_subreaper, 1)


def stop_all() -> None:
    """End every descendant: politely, then not."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    for end_it in (psutil.Process.terminate, psutil.Process.kill):
        descendants = psutil.Process().children(recursive=True)
        for process in descendants:
            try:
                end_it(process)
            except psutil.NoSuchProcess:
                continue
        psutil.wait_procs(descendants, timeout=STOP_S)


if __name__ == "__main__":
    sys.exit(main())
