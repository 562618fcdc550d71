"""As many threads as the process may use."""

import os

import pytest

from feedbench.dataset import cores


@pytest.mark.parametrize(
    ("quota", "allowed"), [("max 100000", 8), ("150000 100000", 2), ("50000 100000", 1), (None, 8)]
)
def test_cores_are_cut_by_a_cgroup_quota(tmp_path, monkeypatch, quota, allowed):
    if quota:
        (tmp_path / "cpu.max").write_text(quota + "\n")
    monkeypatch.setattr(cores, "_CPU_MAX", tmp_path / "cpu.max")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    assert cores.allowed_cores() == allowed
