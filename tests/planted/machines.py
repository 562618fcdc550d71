"""Machines that trials ran on."""

from feedbench.records import Machine


def machine(**changes: object) -> Machine:
    values = {
        "machine_class": "sixteen", "hostname": "worker-1", "cpu_model": "EPYC", "cores": 16, "memory_mb": 64_000,
        "kernel": "6.1.0", "python": "3.11.9", "packages": {"tensorflow": "2.21.0"}, "lock_hash": "77ab01",
    }  # fmt: skip
    return Machine(**values | changes)
