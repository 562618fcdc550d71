"""Which device trains, as asked for in the settings. Child side: imports TensorFlow."""

import tensorflow as tf

from feedbench.config import Settings
from feedbench.errors import TrialFailed
from feedbench.records import Accelerator, Machine


def choose(settings: Settings, machine: Machine) -> Accelerator:
    """Make TensorFlow use the accelerator asked for, and say which one that is.

    Raises TrialFailed when a GPU is asked for and TensorFlow sees none.
    """
    gpus = tf.config.list_physical_devices("GPU")
    if settings.accelerator == "gpu" and not gpus:
        raise TrialFailed(
            "accelerator=gpu: TensorFlow sees no GPU on this worker; install requirements/gpu.txt and a driver, "
            "or use accelerator=auto"
        )
    if settings.accelerator in ("gpu", "auto") and gpus:
        for gpu in gpus:
            tf.config.experimental.set_memory_growth(gpu, True)
        return Accelerator(kind="gpu", name=machine.gpus[0] if machine.gpus else gpus[0].name)
    tf.config.set_visible_devices([], "GPU")
    if settings.accelerator == "emulated":
        return Accelerator(kind="emulated", name="emulated", step_ms=settings.emulated_step_ms)
    return Accelerator(kind="cpu", name=machine.cpu_model)


def wants_xla(settings: Settings, accelerator: Accelerator) -> bool:
    """Keras's own "auto" rule, written out so that it can be recorded: XLA with a GPU only."""
    return settings.jit_compile == "on" or (settings.jit_compile == "auto" and accelerator.kind == "gpu")
