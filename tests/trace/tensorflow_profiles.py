"""Makes small real profiles with TensorFlow: one folder for each pipeline, most with a slow stage planted.

python tensorflow_profiles.py FOLDER
"""

import os
import sys
import time
from pathlib import Path

os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="-1")

import keras
import numpy as np
import tensorflow as tf

STEPS, STEP_S = 10, 0.005


def slow(seconds: float):
    def function(value):
        time.sleep(seconds)
        return value

    return lambda value: tf.ensure_shape(tf.numpy_function(function, [value], tf.int64), ())


def slow_yes(value):
    return tf.ensure_shape(tf.numpy_function(lambda _: (time.sleep(0.01), np.True_)[1], [value], tf.bool), ())


def slow_python(value):
    return tf.ensure_shape(tf.py_function(lambda x: (time.sleep(0.02), x)[1], [value], tf.int64), ())


def slow_source():
    for number in range(10_000):
        time.sleep(0.01)
        yield number


def numbers(count: int = 64) -> tf.data.Dataset:
    return tf.data.Dataset.from_tensor_slices(np.arange(count, dtype=np.int64))


def photos() -> tf.data.Dataset:
    """Noise as JPEG: decoding works hard, and nothing is read from outside."""
    noise = np.random.default_rng(0).integers(0, 255, (256, 256, 3), dtype=np.uint8)
    jpeg = tf.io.encode_jpeg(noise).numpy()
    return tf.data.Dataset.from_tensor_slices([jpeg] * 60)


def decode(jpeg):
    return tf.image.resize(tf.io.decode_jpeg(jpeg, channels=3), [64, 64])


def generator() -> tf.data.Dataset:
    return tf.data.Dataset.from_generator(slow_source, output_signature=tf.TensorSpec((), tf.int64))


def plus_one(value):
    return value + 1


def slow_element(value):
    return tf.data.Dataset.from_tensors(value).map(slow(0.01))


def concatenated() -> tf.data.Dataset:
    """Passes of eight numbers, of which the last four are slow."""
    return numbers(4).map(plus_one).concatenate(numbers(4).filter(slow_yes).map(plus_one))


def chosen() -> tf.data.Dataset:
    """Every second number is slow; what is chosen by is itself a dataset."""
    inputs = [numbers().map(plus_one), numbers().filter(slow_yes)]
    return tf.data.Dataset.choose_from_datasets(inputs, tf.data.Dataset.range(2).repeat())


def pipelines() -> dict[str, tf.data.Dataset]:
    return {
        "slow_map": numbers().map(slow_python).shuffle(4).repeat().batch(2),
        "slow_parallel_map": numbers().map(slow(0.02), num_parallel_calls=2).repeat().batch(4).prefetch(2),
        "slow_filter": numbers().map(plus_one).filter(slow_yes).repeat().batch(4).prefetch(1),
        "slow_generator": generator().map(plus_one, num_parallel_calls=2).batch(4).prefetch(1),
        "shuffle_fill": numbers(5000).map(slow(0.001)).shuffle(300).repeat().batch(2),
        "slow_zip": tf.data.Dataset.zip((numbers().map(slow(0.01)).repeat(), numbers().map(plus_one).repeat())).batch(
            2
        ),
        "flat_map": numbers().map(plus_one).flat_map(slow_element).repeat().batch(2),
        "interleave": numbers().interleave(slow_element, cycle_length=4).repeat().batch(2),
        "concatenate": concatenated().repeat().batch(2),
        "choose": chosen().repeat().batch(2),
        "decoding": photos().map(decode).shuffle(10).repeat().batch(8),
        "parallel_decoding": photos().map(decode, num_parallel_calls=2).shuffle(10).repeat().batch(8),
        "fed": photos().map(decode, num_parallel_calls=2).cache().shuffle(10).repeat().batch(8).prefetch(2),
    }


def as_written(dataset: tf.data.Dataset) -> tf.data.Dataset:
    options = tf.data.Options()
    options.experimental_optimization.apply_default_optimizations = False
    return dataset.with_options(options)


def profile(folder: Path, name: str, dataset: tf.data.Dataset) -> None:
    batches = iter(as_written(dataset))
    # A buffer fills on the first request, which must lie in the window; a cache must be warm before it.
    for _ in range({"shuffle_fill": 0, "fed": 12}.get(name, 3)):
        next(batches)
    tf.profiler.experimental.start(str(folder / name))
    for number in range(STEPS):
        with tf.profiler.experimental.Trace("train", step_num=number, _r=1):
            next(batches)
            time.sleep(STEP_S * (6 if name == "fed" else 1))
    tf.profiler.experimental.stop()


def profile_training(folder: Path, name: str) -> None:
    """A real model, all of it trained: a convolution of much work and a dense layer of little."""
    model = keras.Sequential(
        [
            keras.Input((32, 32, 3)),
            keras.layers.Conv2D(64, 5, name="heavy_convolution"),
            keras.layers.GlobalAveragePooling2D(),
            keras.layers.Dense(3, name="light_dense"),
        ]
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer="sgd", loss=loss, jit_compile=False)
    data = tf.data.Dataset.from_tensors((np.zeros((16, 32, 32, 3), np.float32), np.zeros(16, np.int32))).repeat()
    model.fit(data, steps_per_epoch=3, epochs=1, verbose=0)
    batches = iter(data)
    model.make_train_function()
    tf.profiler.experimental.start(str(folder / name))
    for number in range(STEPS):
        with tf.profiler.experimental.Trace("train", step_num=number, _r=1):
            float(model.train_function(batches)["loss"])
    tf.profiler.experimental.stop()


def main(folder: Path) -> None:
    for name, dataset in pipelines().items():
        profile(folder, name, dataset)
    profile_training(folder, "training")
    markers_without_root(folder / "keras_markers")


def markers_without_root(folder: Path) -> None:
    """As Keras 3's TensorBoard callback marks steps: without _r=1."""
    batches = iter(as_written(numbers().map(slow(0.005)).repeat().batch(2)))
    tf.profiler.experimental.start(str(folder))
    for number in range(3):
        with tf.profiler.experimental.Trace("Profiled batch", step_num=number):
            next(batches)
    tf.profiler.experimental.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
