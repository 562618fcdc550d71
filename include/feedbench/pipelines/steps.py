"""The steps that pipelines are made of: frozen, composable, Dataset -> Dataset.

Elements are `(path: string, label: int32)` at the source, `(image: [S, S, 3], label)` after decoding and
`(images: [B, S, S, 3] float32 in 0..255, labels: [B])` at the end, which is what EfficientNetB0 takes.

A field left at FROM_RUN is filled in from the run's settings before the pipeline is built, so that a variant
is written without numbers. TensorFlow is imported inside the calls: a DAG, a form or a report that only needs
the names never loads it.
"""

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from feedbench.errors import SettingsError

FROM_RUN: Any = None
"""The value of a field that the run's settings decide."""
AUTO = -1
"""tf.data.AUTOTUNE, without importing TensorFlow."""


@runtime_checkable
class Step(Protocol):
    """What a step must offer; a user's own is any frozen dataclass like this.

    `operators`: names under which TensorFlow runs it, as they stand in a profile, in order.
    What a flat_map or interleave does to each element is no part of it: `("FlatMap",)`.
    Optional: `rank`, its place in the one order that is right (see `variants.check_order`); `is_source = True` for one
    whose elements do not come from the dataset it is given, which stands first and names its own source, as
    `("Generator", "FlatMap")` for from_generator or `("TFRecord", "Interleave")` for records of long files.
    """

    @property
    def operators(self) -> tuple[str, ...]: ...

    def __call__(self, dataset: Any) -> Any: ...


@dataclasses.dataclass(frozen=True)
class RunValues:
    """What FROM_RUN fields are filled in with."""

    image_size: int
    batch_size: int
    shuffle_buffer: int
    seed: int
    scratch: Path
    """A folder of this trial's own: TensorFlow never checks what a cache file holds, so none is ever shared."""


def bind(steps: Iterable[Step], values: RunValues) -> list[Step]:
    """The steps with every FROM_RUN field that RunValues knows filled in."""
    known = {field.name for field in dataclasses.fields(RunValues)}
    bound = []
    for step in steps:
        open_fields = (f.name for f in dataclasses.fields(step) if getattr(step, f.name) is FROM_RUN)
        bound.append(dataclasses.replace(step, **{n: getattr(values, n) for n in open_fields if n in known}))
    return bound


def _map_operator(parallel: int | None) -> tuple[str, ...]:
    return ("Map",) if parallel is None else ("ParallelMapV2",)


@dataclasses.dataclass(frozen=True)
class Decode:
    """Read the file, decode it to RGB and resize it to `image_size` squared; float32 in 0..255, or uint8.

    `parallel`: None for one at a time, AUTO or a number of calls at once (in order, so that runs can be compared).
    """

    parallel: int | None = None
    dtype: str = "float32"
    image_size: int = FROM_RUN

    @property
    def operators(self) -> tuple[str, ...]:
        return _map_operator(self.parallel)

    def __call__(self, dataset: Any) -> Any:
        import tensorflow as tf

        def decode(path: Any, label: Any) -> tuple[Any, Any]:
            image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
            image = tf.image.resize(image, [self.image_size, self.image_size])
            if self.dtype != "float32":  # round first: a plain cast would cut off
                image = tf.cast(tf.round(image), self.dtype)
            return image, label

        if self.parallel is None:
            return dataset.map(decode)
        return dataset.map(decode, num_parallel_calls=self.parallel, deterministic=True)


@dataclasses.dataclass(frozen=True)
class ToFloat:
    """Cast cached uint8 images back to the float32 that the model takes."""

    parallel: int | None = None

    @property
    def operators(self) -> tuple[str, ...]:
        return _map_operator(self.parallel)

    def __call__(self, dataset: Any) -> Any:
        import tensorflow as tf

        def cast(images: Any, labels: Any) -> tuple[Any, Any]:
            return tf.cast(images, tf.float32), labels

        if self.parallel is None:
            return dataset.map(cast)
        return dataset.map(cast, num_parallel_calls=self.parallel, deterministic=True)


@dataclasses.dataclass(frozen=True)
class Cache:
    """Keep every element after its first pass, in memory or in files under the trial's scratch folder."""

    where: str = "memory"
    scratch: Path = FROM_RUN
    rank = 10

    def __post_init__(self) -> None:
        if self.where not in ("memory", "file"):
            raise SettingsError(f"Cache({self.where!r}): no such place; use 'memory' or 'file'")

    @property
    def operators(self) -> tuple[str, ...]:
        return ("MemoryCache",) if self.where == "memory" else ("FileCache",)

    def __call__(self, dataset: Any) -> Any:
        return dataset.cache() if self.where == "memory" else dataset.cache(str(self.scratch / "cache"))


@dataclasses.dataclass(frozen=True)
class Shuffle:
    """Draw from a buffer; a new order every pass, the same for every variant."""

    shuffle_buffer: int = FROM_RUN
    seed: int = FROM_RUN
    rank = 20

    @property
    def operators(self) -> tuple[str, ...]:
        return ("Shuffle",)

    def __call__(self, dataset: Any) -> Any:
        return dataset.shuffle(self.shuffle_buffer, seed=self.seed, reshuffle_each_iteration=True)


@dataclasses.dataclass(frozen=True)
class Repeat:
    """Start the next pass when one ends; the plan counts steps, so the data must not run out."""

    rank = 30

    @property
    def operators(self) -> tuple[str, ...]:
        return ("ForeverRepeat",)

    def __call__(self, dataset: Any) -> Any:
        return dataset.repeat()


@dataclasses.dataclass(frozen=True)
class Batch:
    """Stack `batch_size` elements; a fixed shape, so that XLA compiles the step once."""

    batch_size: int = FROM_RUN
    rank = 40

    @property
    def operators(self) -> tuple[str, ...]:
        return ("BatchV2",)

    def __call__(self, dataset: Any) -> Any:
        return dataset.batch(self.batch_size, drop_remainder=True)


@dataclasses.dataclass(frozen=True)
class Prefetch:
    """Prepare the next `buffer` batches while the model works on this one."""

    buffer: int = AUTO
    rank = 50

    @property
    def operators(self) -> tuple[str, ...]:
        return ("Prefetch",)

    def __call__(self, dataset: Any) -> Any:
        return dataset.prefetch(self.buffer)
