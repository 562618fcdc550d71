"""Makes a profile of any size, as a long EfficientNetB0 training with a naive tf.data pipeline would leave it.

    python perf/make_profile.py PATH MEGABYTES

One step is encoded once (about 5,000 events on seven threads: the marker, the wait, tf.data calls for eight photos with
their functions on two pool threads, 1,200 ops on two compute threads, and the thread pools' own small events, which
are most of a real capture); it is written again and again with its times, step number and run ids moved on. The numbers
that move are encoded as varints of fixed width, so that numpy can rewrite them in place.
"""

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np

from feedbench.trace.xplane_pb2 import XLine, XPlane, XSpace

STEP_MS = 45
PHOTOS = 8
OPS = 1200
_PS_PER_US = 1_000_000
_STEP_PS = STEP_MS * 1000 * _PS_PER_US
_TIME_BYTES, _NUMBER_BYTES, _ID_BYTES = 8, 4, 8
_CHAIN = ("Iterator", "Root", "BatchV2", "ForeverRepeat[0]", "Shuffle", "Map", "TensorSlice")
_CALLS = ["::".join(_CHAIN[:depth]) for depth in range(2, len(_CHAIN) + 1)]
_DATASETS = (
    "OptionsDataset:5",
    "BatchDatasetV2:4",
    "RepeatDataset:3",
    "ShuffleDatasetV3:2",
    "MapDataset:1",
    "TensorSliceDataset:0",
)
_BLOCK_OPS = (
    "depthwise",
    "batchnorm/mul",
    "batchnorm/add_1",
    "Sigmoid",
    "mul_1",
    "convolution",
    "convolution/ReadVariableOp",
)
_OP_TYPES = ("DepthwiseConv2dNative", "Mul", "AddV2", "Sigmoid", "Mul", "Conv2D", "ReadVariableOp")


@dataclass
class Moving:
    """A number that moves on with each step: where its bytes are, its first value, by how much it moves."""

    at: int
    width: int
    first: int
    by: int


@dataclass
class Thread:
    """The events of one step on one thread."""

    name: str
    content: bytearray = field(default_factory=bytearray)
    moving: list[Moving] = field(default_factory=list)
    events: int = 0


class Names:
    """Ids for the names of events and stats, in order of first use."""

    def __init__(self) -> None:
        self.ids: dict[str, int] = {}

    def __getitem__(self, name: str) -> int:
        return self.ids.setdefault(name, len(self.ids) + 1)


class Step:
    """One step's events on all threads."""

    def __init__(self) -> None:
        self.threads: list[Thread] = []
        self.names, self.stats = Names(), Names()

    def thread(self, name: str) -> Thread:
        self.threads.append(Thread(name))
        return self.threads[-1]

    def event(self, thread: Thread, event: str, start_us: float, us: float, /, **stats: int | str) -> None:
        """One event; stats `id` and `step_num` move on with the steps."""
        body = bytearray(b"\x08" + _varint(self.names[event]) + b"\x10")
        moving = [Moving(len(body), _TIME_BYTES, int(start_us * _PS_PER_US), _STEP_PS)]
        body += bytes(_TIME_BYTES) + b"\x18" + _varint(int(us * _PS_PER_US))
        for stat, value in stats.items():
            inner = bytearray(b"\x08" + _varint(self.stats[stat]))
            width = {"id": _ID_BYTES, "step_num": _NUMBER_BYTES}.get(stat)
            if width:
                inner += b"\x20"
                moving.append(Moving(len(body) + 2 + len(inner), width, int(value), PHOTOS + 1 if stat == "id" else 1))
                inner += bytes(width)
            elif isinstance(value, str):
                inner += b"\x38" + _varint(self.stats[value])
            else:
                inner += b"\x20" + _varint(value)
            body += b"\x22" + _varint(len(inner)) + inner
        head = b"\x22" + _varint(len(body))
        start = len(thread.content) + len(head)
        thread.moving += [Moving(start + part.at, part.width, part.first, part.by) for part in moving]
        thread.content += head + body
        thread.events += 1


def one_step() -> Step:
    step = Step()
    _model_thread(step)
    waits, pools = (
        step.thread("tf_data_iterator_get_next/3"),
        [step.thread(f"tf_data_private_threadpool/{n}") for n in (4, 5)],
    )
    _input_threads(step, waits, pools)
    for number in (1, 2):
        _compute_thread(step, step.thread(f"tf_Compute/{number}"), number)
    for number in (6, 7):
        _pool_noise(step, step.thread(f"tf_numa_-1_Eigen/{number}"), 10_000, 30_000, 900)
    return step


def _model_thread(step: Step) -> None:
    python = step.thread("python")
    step.event(python, "train", 100, STEP_MS * 1000 - 300, step_num=20, _r=1)
    step.event(python, "EagerLocalExecute: __inference_multi_step_on_iterator", 160, STEP_MS * 1000 - 500)
    step.event(python, "FunctionRun", 170, 50, id=1, _r=1)
    for at in range(20):
        step.event(python, "TFE_DeleteTensorHandle", 44_850 + at, 0.5)


def _input_threads(step: Step, waits: Thread, pools: list[Thread]) -> None:
    step.event(waits, "IteratorGetNextOp::DoCompute", 300, 8_400, id=1, element_size=393_248)
    step.event(waits, _CALLS[0], 310, 8_380, name=_DATASETS[0], cpu_budget=2)
    step.event(waits, _CALLS[1], 320, 8_350, name=_DATASETS[1], batch_size=PHOTOS)
    for photo in range(PHOTOS):
        start = 330 + photo * 1_000
        for depth, us in ((2, 980), (3, 975), (4, 970)):
            step.event(waits, _CALLS[depth], start + depth, us, name=_DATASETS[depth], buffer_size=100)
        step.event(waits, _CALLS[5], start + 6, 5, name=_DATASETS[5])
        step.event(waits, "InstantiatedCapturedFunction::Run", start + 14, 950, id=2 + photo)
        pool = pools[photo % 2]
        step.event(pool, "ThreadpoolListener::StartRegion", start + 15, 0, _ct=15, _c=photo)
        step.event(pool, "ExecutorState::Process", start + 20, 900, id=2 + photo, iter_num=0)
        for op, at, us in (("ReadFile", 25, 50), ("DecodeJpeg", 80, 600), ("ResizeBilinear", 690, 220)):
            step.event(pool, f"{op}:{op}", start + at, us)
        step.event(pool, "ThreadpoolListener::StopRegion", start + 940, 0)


def _compute_thread(step: Step, thread: Thread, number: int) -> None:
    us = 35_000 / OPS
    for op in range(OPS // 2):
        start = 9_000 + op * 2 * us
        block, part = divmod(op, len(_OP_TYPES))
        layer = f"sequential_1/efficientnetb0_1/block{block}{'ab'[number - 1]}"
        name = f"StatefulPartitionedCall/{layer}/{_BLOCK_OPS[part]}:{_OP_TYPES[part]}"
        step.event(thread, "ThreadpoolListener::StartRegion", start, 0, _ct=15, _c=op)
        step.event(thread, "ExecutorState::Process", start + 0.1, 2 * us - 0.6, id=1, iter_num=0)
        step.event(thread, name, start + 0.2, 2 * us - 0.8)
        step.event(thread, "ThreadpoolListener::Record", start + 2 * us - 0.4, 0, _pt=15, _p=op)
        step.event(thread, "ThreadpoolListener::StopRegion", start + 2 * us - 0.3, 0)


def _pool_noise(step: Step, thread: Thread, start_us: float, us: float, regions: int) -> None:
    for region in range(regions):
        at = start_us + region * us / regions
        step.event(thread, "ThreadpoolListener::StartRegion", at, 0, _ct=15, _c=region)
        step.event(thread, "ThreadpoolListener::Record", at + 1, 0, _pt=15, _p=region)
        step.event(thread, "ThreadpoolListener::StopRegion", at + 2, 0)


def make_profile(path: Path, megabytes: float | None = None, steps: int | None = None) -> int:
    """Writes a profile of about `megabytes` (10**6 bytes), or of `steps` steps; returns its number of events."""
    step = one_step()
    if steps is None:
        steps = max(1, round((megabytes or 1) * 1e6 / sum(len(thread.content) for thread in step.threads)))
    names = _names(step)
    heads = [
        XLine(id=at, name=thread.name, timestamp_ns=1).SerializeToString() for at, thread in enumerate(step.threads)
    ]
    lines = [len(head) + len(thread.content) * steps for head, thread in zip(heads, step.threads, strict=True)]
    size = len(names) + sum(1 + len(_varint(line)) + line for line in lines)
    with path.open("wb") as file:
        file.write(b"\x0a" + _varint(size))
        for head, line, thread in zip(heads, lines, step.threads, strict=True):
            file.write(b"\x1a" + _varint(line) + head)
            _write_repeated(file, thread, steps)
        file.write(names)
        file.write(XSpace(hostnames=["perf"]).SerializeToString())
    return steps * sum(thread.events for thread in step.threads)


def _names(step: Step) -> bytes:
    plane = XPlane(name="/host:CPU")
    for name, key in step.names.ids.items():
        plane.event_metadata[key].id = key
        plane.event_metadata[key].name = name
    for name, key in step.stats.ids.items():
        plane.stat_metadata[key].id = key
        plane.stat_metadata[key].name = name
    return plane.SerializeToString()


def _write_repeated(file: BinaryIO, thread: Thread, steps: int) -> None:
    content = np.frombuffer(thread.content, dtype=np.uint8).copy()
    by_width: dict[int, list[Moving]] = {}
    for part in thread.moving:
        by_width.setdefault(part.width, []).append(part)
    for number in range(steps):
        for width, parts in by_width.items():
            places = np.array([part.at for part in parts])[:, None] + np.arange(width)
            values = np.array([part.first + number * part.by for part in parts], dtype=np.int64)
            content[places] = _fixed_varints(values, width)
        file.write(content.tobytes())


def _fixed_varints(values: np.ndarray, width: int) -> np.ndarray:
    """Varints of `width` bytes each: padded with continuation bits, which every decoder accepts."""
    parts = (values[:, None] >> (7 * np.arange(width))) & 0x7F
    parts[:, :-1] |= 0x80
    return parts.astype(np.uint8)


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    print(f"{make_profile(Path(sys.argv[1]), float(sys.argv[2])):,} events")
