"""The fingerprint says what is really allowed, not what the machine has."""

import os
import subprocess
import sys
from types import SimpleNamespace

from feedbench.training import machine


def test_cores_follow_the_affinity():
    code = "from feedbench.training.machine import fingerprint; f = fingerprint(); print(f.cores, f.machine_class)"
    ask = [sys.executable, "-c", code]
    whole = subprocess.run(ask, capture_output=True, text=True, check=True).stdout.split()
    one = next(iter(os.sched_getaffinity(0)))
    pinned = subprocess.run(
        ["taskset", "-c", str(one), *ask], capture_output=True, text=True, check=True
    ).stdout.split()
    assert pinned[0] == "1"
    if whole[0] != "1":
        assert pinned[1] != whole[1]  # another class: their times are not compared


def test_memory_is_cut_by_a_cgroup_limit(tmp_path, monkeypatch):
    (tmp_path / "memory.max").write_text("2000000000\n")
    monkeypatch.setattr(machine, "_CGROUP", tmp_path)
    assert machine.allowed_memory_mb() == 2000


def test_tensorflow_is_named_whatever_its_wheel_calls_itself(monkeypatch):
    """tensorflow_cpu is what the wheel writes; a regression is told with the version that came with it."""
    written = [{"Name": "tensorflow_cpu"}, {"Name": "tensorboard_plugin_profile"}, {"Name": "Other"}]
    found = [SimpleNamespace(metadata=metadata, version="2.0") for metadata in written]
    monkeypatch.setattr("importlib.metadata.distributions", lambda: found)
    assert machine.fingerprint().packages == {"tensorflow-cpu": "2.0", "tensorboard-plugin-profile": "2.0"}


def test_equal_hardware_is_one_class_whatever_a_kernel_update_changes():
    a = machine._machine_class("cpu", 8, 25_276, ())
    assert a == machine._machine_class("cpu", 8, 25_310, ())
    assert a != machine._machine_class("cpu", 4, 25_276, ())
    assert a != machine._machine_class("cpu", 8, 25_276, ("Tesla T4",))
