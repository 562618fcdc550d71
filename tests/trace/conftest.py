"""Profiles for tests: drawn event by event, made by TensorFlow in a child process, or real ones of other people."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from feedbench.trace.xplane_pb2 import XPlane, XSpace

PS_PER_MS = 1_000_000_000
Event = tuple
"""(name, start_ms, end_ms) or (name, start_ms, end_ms, {stat: value})"""


class Drawing:
    """A capture under construction: `thread` and `stream` add lines of events in milliseconds."""

    def __init__(self) -> None:
        self.space = XSpace(hostnames=["drawn"])
        self.planes: dict[str, XPlane] = {}
        self.ids: dict[tuple[str, str, str], int] = {}

    def thread(self, name: str, events: Iterable[Event], plane: str = "/host:CPU", timestamp_ns: int = 1000) -> None:
        holder = self.plane(plane)
        line = holder.lines.add(id=len(holder.lines) + 1, name=name, timestamp_ns=timestamp_ns)
        for event_name, start, end, *stats in sorted(events, key=lambda event: (event[1], -event[2])):
            event = line.events.add(metadata_id=self._id(plane, "event", event_name))
            event.offset_ps, event.duration_ps = round(start * PS_PER_MS), round((end - start) * PS_PER_MS)
            for stat_name, value in (stats[0] if stats else {}).items():
                stat = event.stats.add(metadata_id=self._id(plane, "stat", stat_name))
                if isinstance(value, str):
                    stat.ref_value = self._id(plane, "stat", value)
                else:
                    stat.int64_value = value

    def plane(self, name: str, **stats: int | str) -> XPlane:
        if name not in self.planes:
            self.planes[name] = self.space.planes.add(id=len(self.planes), name=name)
        for stat_name, value in stats.items():
            stat = self.planes[name].stats.add(metadata_id=self._id(name, "stat", stat_name))
            setattr(stat, "str_value" if isinstance(value, str) else "uint64_value", value)
        return self.planes[name]

    def save(self, path: Path) -> Path:
        path.write_bytes(self.space.SerializeToString())
        return path

    def _id(self, plane: str, kind: str, name: str) -> int:
        if (plane, kind, name) not in self.ids:
            self.ids[plane, kind, name] = len(self.ids) + 1
            table = self.plane(plane).event_metadata if kind == "event" else self.plane(plane).stat_metadata
            entry = table[len(self.ids)]
            entry.id, entry.name = len(self.ids), name
        return self.ids[plane, kind, name]


@pytest.fixture
def drawing() -> Drawing:
    return Drawing()


@pytest.fixture
def steps() -> Callable[..., list[Event]]:
    """Markers of `count` steps of `step_ms`, each with a wait of `wait_ms` at its start, on one thread."""

    def make(count: int, step_ms: float, wait_ms: float, name: str = "train") -> list[Event]:
        events: list[Event] = []
        for number in range(count):
            start = number * step_ms
            events.append((name, start, start + step_ms, {"step_num": number, "_r": 1}))
            if wait_ms:
                events.append(("IteratorGetNextOp::DoCompute", start, start + wait_ms, {"id": 7}))
        return events

    return make


@pytest.fixture(scope="session")
def real_data() -> Path:
    folder = os.environ.get("FEEDBENCH_REAL_DATA")
    if not folder:
        pytest.skip("FEEDBENCH_REAL_DATA is not set")
    return Path(folder)


@pytest.fixture(scope="session")
def tensorflow_profiles(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Profiles by pipeline, as `tensorflow_profiles.py` beside this file makes them, in a process of its own."""
    folder = tmp_path_factory.mktemp("profiles")
    script = Path(__file__).with_name("tensorflow_profiles.py")
    done = subprocess.run([sys.executable, script, folder], capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return {path.name: next(path.rglob("*.xplane.pb")) for path in folder.iterdir()}
