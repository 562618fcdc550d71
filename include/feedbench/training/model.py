"""The model that is fine-tuned, or the stand-in for one on an accelerator that is not there. Child side."""

import time
from typing import Any

import keras
import tensorflow as tf

from feedbench.config import Settings
from feedbench.records import Accelerator


def build_model(
    settings: Settings, accelerator: Accelerator, classes: int, weights: str | None, xla: bool
) -> keras.Model:
    """EfficientNetB0 with a new classifier, compiled; input [B, S, S, 3] float32 in 0..255 (it rescales itself)."""
    if accelerator.kind == "emulated":
        return Emulated(accelerator.step_ms)
    if settings.mixed_precision:
        keras.mixed_precision.set_global_policy("mixed_float16")
    side = settings.image_size
    base = keras.applications.EfficientNetB0(
        include_top=False, weights=weights, input_shape=(side, side, 3), pooling="avg"
    )
    base.trainable = settings.trainable == "all"
    inputs = keras.Input((side, side, 3))
    # A frozen base also keeps its batch statistics; a trained one learns them.
    features = keras.layers.Dropout(0.2)(base(inputs, training=settings.trainable == "all"))
    outputs = keras.layers.Dense(classes, activation="softmax", dtype="float32", name="classifier")(features)
    model = keras.Model(inputs, outputs)
    model.compile(
        optimizer=keras.optimizers.Adam(1e-3 if settings.trainable == "head" else 1e-4),
        loss="sparse_categorical_crossentropy",
        metrics=["accuracy"],
        jit_compile=xla,
    )
    return model


class Emulated(keras.Model):
    """Consumes a batch, then sleeps: the accelerator of MLPerf Storage, which measures the input side alone."""

    def __init__(self, step_ms: float) -> None:
        super().__init__()
        self._step_s = step_ms / 1000
        self.compile(loss=None)

    def call(self, inputs: Any) -> Any:
        return inputs

    def make_train_function(self, force: bool = False) -> Any:
        def train(iterator: Any) -> dict[str, Any]:
            images, _ = next(iterator)
            loss = tf.reduce_sum(images[:, 0, 0, 0]) * 0.0
            time.sleep(self._step_s)
            return {"loss": loss}

        self.train_function = train
        return train
