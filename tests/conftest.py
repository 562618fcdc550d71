"""A few small photos, and variants that misbehave, from a module of a user's own."""

import os
import textwrap

import numpy as np
import pytest
from hypothesis import settings
from PIL import Image

# Anew at random on a person's machine; in CI the same examples every time, so that red is about the change.
settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")

MISBEHAVED = """
import dataclasses, os, signal, time
import tensorflow as tf
from feedbench.pipelines.steps import Batch, Decode, Prefetch, Repeat, Shuffle
from feedbench.pipelines.variants import Variant

@dataclasses.dataclass(frozen=True)
class After:
    '''Does `what` when the given photo, counted over all passes, comes through.'''
    photo: int
    what: str
    operators = ("Map",)

    def __call__(self, dataset):
        seen = [0]
        def act(image, label):
            seen[0] += 1
            if seen[0] == self.photo:
                {"raise": self.fail, "kill": self.kill, "hang": self.hang}[self.what]()
            return label
        def act_first(image, label):
            return image, tf.ensure_shape(tf.py_function(act, [image, label], tf.int32), [])

        return dataset.map(act_first)

    def fail(self): raise ValueError("planted: photo 60 is cursed")
    def kill(self): os.kill(os.getpid(), signal.SIGKILL)
    def hang(self): time.sleep(600)

def variant(what):
    return Variant(what, steps=(Decode(), After(60, what), Shuffle(), Repeat(), Batch(), Prefetch(2)), why="planted")

VARIANTS = tuple(variant(what) for what in ("raise_", "kill", "hang"))
"""


@pytest.fixture(scope="session")
def photos(tmp_path_factory):
    """60 photos of two classes, 80 x 60."""
    folder = tmp_path_factory.mktemp("photos")
    noise = np.random.default_rng(0)
    for name in ("daisy", "rose"):
        (folder / name).mkdir()
        for number in range(30):
            Image.fromarray(noise.integers(0, 255, (60, 80, 3), dtype=np.uint8)).save(folder / name / f"{number}.jpg")
    return folder


@pytest.fixture(scope="session")
def misbehaved(tmp_path_factory):
    """The folder of a module `misbehaved` with variants that raise, kill their process or hang in mid-epoch."""
    folder = tmp_path_factory.mktemp("modules")
    (folder / "misbehaved.py").write_text(textwrap.dedent(MISBEHAVED).replace('"raise":', '"raise_":'))
    return folder
