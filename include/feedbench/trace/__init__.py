"""Reads TensorFlow Profiler captures (*.xplane.pb): steps, input waits, tf.data stages, ops, layers, a timeline."""

from feedbench.trace.describe import describe
from feedbench.trace.profile import read_profile

__all__ = ["describe", "read_profile"]
