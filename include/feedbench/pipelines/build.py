"""A variant's steps applied to the photos: the dataset that is trained on."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from feedbench.errors import SettingsError
from feedbench.pipelines.steps import Cache, Repeat, RunValues, bind
from feedbench.pipelines.variants import Variant


@dataclass(frozen=True)
class Built:
    """`dataset` to train on, endless; `to_fill` is its part up to the cache, finite, or None without a cache."""

    dataset: Any
    to_fill: Any | None


def build(variant: Variant, paths: Sequence[str], labels: Sequence[int], values: RunValues) -> Built:
    """The variant's tf.data pipeline over these photos, in the order given, run as it is written.

    TensorFlow by default parallelises maps and appends a prefetch of its own; that is turned off unless the
    variant exists to show it. See tensorflow issues 60384 and 37178.
    """
    dataset = source(paths, labels)
    to_fill = None
    for step in bind(variant.steps, values):
        if isinstance(step, Repeat):
            check_pass(variant, dataset, len(paths), values.batch_size)
        dataset = step(dataset)
        if isinstance(step, Cache):
            to_fill = dataset
    check_batch(variant, dataset, values)
    dataset = as_written(dataset, rewritten=variant.rewritten)
    return Built(dataset, None if to_fill is None else as_written(to_fill, rewritten=variant.rewritten))


def source(paths: Sequence[str], labels: Sequence[int]) -> Any:
    """(path, label) of each photo, in the order given."""
    import tensorflow as tf

    return tf.data.Dataset.from_tensor_slices((list(paths), tf.constant(labels, tf.int32)))


def as_written(dataset: Any, *, rewritten: bool = False) -> Any:
    """The dataset with TensorFlow's rewriting off, or left on."""
    import tensorflow as tf

    options = tf.data.Options()
    options.experimental_optimization.apply_default_optimizations = rewritten
    return dataset.with_options(options)


def check_pass(variant: Variant, dataset: Any, photos: int, batch_size: int) -> None:
    """Raise SettingsError when a pass is known to hold other than all photos: that would be less work, not faster.

    `dataset`: what is repeated, photos or batches. How much a filter or a generator gives, TensorFlow does not know.
    """
    count = int(dataset.cardinality())
    if count >= 0 and photos not in (count, count * batch_size):
        raise SettingsError(f"variant {variant.name!r}: {count:,} elements a pass, not the {photos:,} training photos")


def check_batch(variant: Variant, dataset: Any, values: RunValues) -> None:
    """Raise SettingsError when a pipeline does not yield (float32 images, int32 labels) in whole batches."""
    import tensorflow as tf

    size = values.image_size
    expected = (
        tf.TensorSpec([values.batch_size, size, size, 3], tf.float32),
        tf.TensorSpec([values.batch_size], tf.int32),
    )
    got = dataset.element_spec
    if not (
        isinstance(got, tuple)
        and len(got) == 2
        and all(w.is_compatible_with(g) for w, g in zip(expected, got, strict=True))
    ):
        raise SettingsError(f"variant {variant.name!r}: yields {got}, the model takes {expected}")


def constant(variant_dataset: Any) -> Any:
    """The ceiling's dataset: the first batch of a pipeline, again and again, with no input work at all."""
    import tensorflow as tf

    return as_written(tf.data.Dataset.from_tensors(next(iter(variant_dataset))).repeat())


def cache_bytes(variant: Variant, photos: int, image_size: int) -> int:
    """Bytes that the variant's memory cache will hold, before anything is run: photos x side x side x 3 x width.

    The width is four bytes (float32) unless the step before the cache says uint8; 0 without a memory cache.
    """
    if variant.cache is None or variant.cache.where != "memory":
        return 0
    before = variant.steps[: variant.steps.index(variant.cache)]
    dtype = next((step.dtype for step in reversed(before) if hasattr(step, "dtype")), "float32")
    return photos * image_size * image_size * 3 * (1 if dtype == "uint8" else 4)
