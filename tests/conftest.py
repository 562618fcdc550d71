"""A few small photos, and variants that misbehave, from a module of a user's own."""

import os
import socket
import textwrap

import numpy as np
import pytest
from hypothesis import settings
from PIL import Image

from feedbench.store import Store

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


@pytest.fixture(scope="session")
def object_store():
    """A server that speaks S3's own protocol, with a bucket `nights`; one a session, for s3fs keeps its connections."""
    s3fs, server = pytest.importorskip("s3fs"), pytest.importorskip("moto.server")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    s3 = server.ThreadedMotoServer(ip_address="127.0.0.1", port=port, verbose=False)
    s3.start()
    given = {"ACCESS_KEY_ID": "x", "SECRET_ACCESS_KEY": "x", "DEFAULT_REGION": "us-east-1"}
    with pytest.MonkeyPatch.context() as environment:
        for name, value in (given | {"ENDPOINT_URL": f"http://127.0.0.1:{port}"}).items():
            environment.setenv(f"AWS_{name}", value)
        s3fs.S3FileSystem.clear_instance_cache()
        Store("s3://nights").root.fs.mkdir("nights")
        yield "s3://nights"
    s3fs.S3FileSystem.clear_instance_cache()
    s3.stop()


@pytest.fixture
def bucket(object_store, tmp_path):
    """A store of the test's own on that server."""
    return Store(f"{object_store}/{tmp_path.name}")


@pytest.fixture(params=["folder", "bucket"])
def anywhere(request, tmp_path):
    """A store on disk, and one on the server."""
    return Store(tmp_path) if request.param == "folder" else request.getfixturevalue("bucket")
