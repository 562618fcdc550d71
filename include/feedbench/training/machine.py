"""The machine's fingerprint: what a step time depends on besides the code, as really allowed to this process."""

import hashlib
import importlib.metadata
import platform
import re
import subprocess
from pathlib import Path

import psutil

from feedbench.dataset.cores import allowed_cores
from feedbench.records import Machine
from feedbench.units import BYTES_PER_MB

_CGROUP = Path("/sys/fs/cgroup")
_NAMED_PACKAGES = (
    "tensorflow",
    "tensorflow-cpu",
    "keras",
    "numpy",
    "xprof",
    "tensorboard-plugin-profile",
    "apache-airflow",
    "pandas",
    "protobuf",
)


def fingerprint() -> Machine:
    """This process's machine. Asks nvidia-smi where it exists; imports no TensorFlow."""
    gpus, driver, cuda = _nvidia()
    packages = {
        _normal(d.metadata["Name"]): d.version for d in importlib.metadata.distributions() if d.metadata["Name"]
    }
    hardware = {
        "cpu_model": _cpu_model(),
        "cores": allowed_cores(),
        "memory_mb": allowed_memory_mb(),
        "gpus": gpus,
    }
    return Machine(
        machine_class=_machine_class(**hardware),
        hostname=platform.node(),
        driver=driver,
        cuda=cuda,
        kernel=platform.release(),
        python=platform.python_version(),
        packages={name: packages[name] for name in _NAMED_PACKAGES if name in packages},
        lock_hash=_digest("\n".join(f"{name}=={packages[name]}" for name in sorted(packages))),
        **hardware,
    )


def _normal(name: str) -> str:
    """One spelling for each package, by PEP 503: wheels write tensorflow_cpu, where people write tensorflow-cpu."""
    return re.sub(r"[-_.]+", "-", name).lower()


def allowed_memory_mb() -> int:
    """Memory this process may use: physical, cut by a cgroup v2 limit."""
    total = psutil.virtual_memory().total
    limit = _read(_CGROUP / "memory.max")
    if limit and limit != "max":
        total = min(total, int(limit))
    return total // BYTES_PER_MB


def oom_kills() -> int | None:
    """How often the kernel killed a process of this cgroup for memory; None where it does not say."""
    for line in (_read(_CGROUP / "memory.events") or "").splitlines():
        name, _, count = line.partition(" ")
        if name == "oom_kill":
            return int(count)
    return None


def _machine_class(cpu_model: str, cores: int, memory_mb: int, gpus: tuple[str, ...]) -> str:
    """Memory counts in whole GB: the same machine reports a few MB more or less after a kernel update."""
    return _digest(f"{cpu_model}|{cores}|{round(memory_mb / 1000)}|{gpus}")


def _cpu_model() -> str:
    for line in (_read(Path("/proc/cpuinfo")) or "").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _nvidia() -> tuple[tuple[str, ...], str | None, str | None]:
    """GPU names, driver version, CUDA version that the driver supports; empty without nvidia-smi or a driver.

    One that does not answer in time raises: a trial must not be taken for one of a machine without a GPU.
    """
    query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        listed = subprocess.run(query, capture_output=True, text=True, timeout=20, check=True).stdout
        header = subprocess.run(["nvidia-smi"], capture_output=True, text=True, timeout=20, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return (), None, None
    rows = [row.split(", ") for row in listed.strip().splitlines()]
    cuda = header.partition("CUDA Version:")[2].split("|")[0].strip() or None
    return tuple(row[0] for row in rows), (rows[0][1] if rows else None), cuda


def _read(path: Path) -> str | None:
    try:
        return path.read_text().strip()
    except OSError:
        return None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
