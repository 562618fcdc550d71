"""Airflow's REST API, as far as these tests need it."""

from typing import Any
from urllib.parse import quote

import httpx

from stack.native import wait_for

DAG = "input_pipeline_benchmark"
ENDED = ("success", "failed")
SMALL = {
    "source": "synthetic", "photos": 60, "weights": "none", "variants": ["naive", "prefetch"], "rounds": 1,
    "image_size": 64, "batch_size": 8, "steps": 5, "warmup_steps": 2, "profile_steps": 5,
    "accelerator": "emulated", "emulated_step_ms": 20,
}  # fmt: skip
"""Two variants and the ceiling: three trials of a few seconds."""
LONG = {**SMALL, "variants": ["naive"], "steps": 200, "emulated_step_ms": 50}
"""Trials that take at least ten seconds once they train: time to hurt one."""


class AirflowClient:
    def __init__(self, address: str, user: str, password: str) -> None:
        answer = httpx.post(f"{address}/auth/token", json={"username": user, "password": password}, timeout=30)
        token = answer.raise_for_status().json()["access_token"]
        self.address = address
        self.http = httpx.Client(base_url=f"{address}/api/v2", headers={"Authorization": f"Bearer {token}"}, timeout=30)

    def get(self, path: str, **query: Any) -> dict[str, Any]:
        return self.http.get(path, params=query).raise_for_status().json()

    def add_user(self, name: str, role: str, password: str) -> None:
        user = {
            "username": name, "first_name": name, "last_name": name, "email": f"{name}@example.org",
            "password": password, "roles": [{"name": role}],
        }  # fmt: skip
        self.http.post(f"{self.address}/auth/fab/v1/users", json=user).raise_for_status()

    def unpause(self) -> None:
        wait_for("the DAG is parsed", lambda: self.http.get(f"/dags/{DAG}").is_success)
        self.http.patch(f"/dags/{DAG}", json={"is_paused": False}).raise_for_status()

    def trigger(self, conf: dict[str, Any]) -> str:
        """Starts a run; returns its id."""
        answer = self.http.post(f"/dags/{DAG}/dagRuns", json={"logical_date": None, "conf": conf})
        return answer.raise_for_status().json()["dag_run_id"]

    def mark_failed(self, run_id: str) -> None:
        """What "mark as failed" in the UI does: the way to cancel a run."""
        self.http.patch(_run(run_id), json={"state": "failed"}).raise_for_status()

    def state(self, run_id: str) -> str:
        return self.get(_run(run_id))["state"]

    def tasks(self, run_id: str) -> dict[str, dict[str, Any]]:
        """Task instances by name; mapped ones as `train[naive #1]`."""
        found = self.get(f"{_run(run_id)}/taskInstances", limit=200)["task_instances"]
        return {_name(task): task for task in found}

    def states(self, run_id: str) -> dict[str, str | None]:
        return {name: task["state"] for name, task in self.tasks(run_id).items()}

    def log(self, run_id: str, name: str) -> list[dict[str, Any]]:
        """The lines of a task's log, as the UI is given them."""
        task = self.tasks(run_id)[name]
        path = f"{_run(run_id)}/taskInstances/{task['task_id']}/logs/{task['try_number']}"
        return self.get(path, map_index=task["map_index"], full_content=True)["content"]

    def wait(self, run_id: str, within_s: float = 240) -> str:
        """The final state of a run."""
        wait_for(f"{run_id} ends", lambda: self.state(run_id) in ENDED, within_s, every_s=2)
        return self.state(run_id)


def _run(run_id: str) -> str:
    return f"/dags/{DAG}/dagRuns/{quote(run_id, safe='')}"


def _name(task: dict[str, Any]) -> str:
    mapped = task["map_index"] >= 0
    return f"{task['task_id']}[{task['rendered_map_index'] or task['map_index']}]" if mapped else task["task_id"]
