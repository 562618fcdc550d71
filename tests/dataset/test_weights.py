"""Start weights: none, Keras's own, or a file."""

import hashlib
import uuid
from pathlib import Path

import pytest

from feedbench.dataset import weights
from feedbench.dataset.download import Expected, Patience
from feedbench.dataset.weights import check_weights, fetch_weights
from feedbench.errors import InputError, SettingsError
from feedbench.store import Store

HDF5 = b"\x89HDF\r\n\x1a\n" + bytes(1000)
DIGEST = f"sha256:{hashlib.sha256(HDF5).hexdigest()}"
QUICK = Patience(tries=2, first_wait_s=0.01, longest_wait_s=0.01)


@pytest.fixture
def published(site, monkeypatch):
    """Keras's address, played by the local server."""
    site.content = HDF5
    monkeypatch.setattr(weights, "IMAGENET", site.address.replace("flowers.tgz", "efficientnetb0_notop.h5"))
    monkeypatch.setattr(weights, "IMAGENET_EXPECTED", Expected(digest=f"md5:{hashlib.md5(HDF5).hexdigest()}"))
    return site


def test_random_weights_need_no_file(store, silent):
    assert fetch_weights("none", store, silent) is None


def test_imagenet_is_fetched_once_and_leaves_nothing_else(published, store, silent):
    for _ in range(2):
        found = fetch_weights("imagenet", store, silent, QUICK)
        assert (found.path, found.digest) == ("weights/efficientnetb0_notop.h5", DIGEST)
    assert len(published.ranges) == 1
    assert [file.name for file in Path(store.weights).iterdir()] == ["efficientnetb0_notop.h5"]


def test_without_a_network_the_ways_out_are_named(store, silent, monkeypatch):
    monkeypatch.setattr(weights, "IMAGENET", "http://127.0.0.1:9/efficientnetb0_notop.h5")
    with pytest.raises(InputError, match=r"weights=none.*weights=FILE"):
        fetch_weights("imagenet", store, silent, QUICK)


def test_other_weights_than_published_are_refused(published, store, silent):
    published.content = HDF5 + b"changed"
    with pytest.raises(InputError, match=r"md5 is .* as published"):
        fetch_weights("imagenet", store, silent, QUICK)
    assert not Path(store.weights, "efficientnetb0_notop.h5").exists()


def test_a_file_is_used_where_it_lies(tmp_path, store, silent):
    (tmp_path / "own.h5").write_bytes(HDF5)
    found = fetch_weights(str(tmp_path / "own.h5"), store, silent)
    assert (found.path, found.digest) == (str(tmp_path / "own.h5"), DIGEST)


def test_a_remote_store_takes_a_copy_that_every_worker_can_read(tmp_path, silent, published, monkeypatch):
    monkeypatch.setenv("FEEDBENCH_CACHE", str(tmp_path / "cache"))
    remote = Store(f"memory://{uuid.uuid4().hex}")
    (tmp_path / "own.h5").write_bytes(HDF5)
    for given in ("imagenet", str(tmp_path / "own.h5")):
        found = fetch_weights(given, remote, silent, QUICK)
        assert (remote.root / found.path).read_bytes() == HDF5


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("imagnet", None, "did you mean 'imagenet'"),
        ("own.h5", None, "no such file"),
        ("x" * 5000, None, "no such file"),
        ("own.bin", HDF5, "use one of .h5, .hdf5, .keras"),
        ("own.h5", b"version https://git-lfs", "its content is not what .h5 says"),
        ("own.keras", HDF5, "its content is not what .keras says"),
    ],
)
def test_weights_that_mean_nothing_are_refused_before_anything_runs(tmp_path, monkeypatch, name, content, message):
    monkeypatch.chdir(tmp_path)
    if content is not None:
        Path(name).write_bytes(content)
    with pytest.raises(SettingsError, match=message):
        check_weights(name)


@pytest.mark.tensorflow
def test_the_digest_is_that_of_keras():
    """keras.src.applications.efficientnet.WEIGHTS_HASHES['b0'][1] says the same."""
    pytest.importorskip("keras.src.applications.efficientnet", reason="Keras is not installed")
    from keras.src.applications.efficientnet import BASE_WEIGHTS_PATH, WEIGHTS_HASHES

    assert f"md5:{WEIGHTS_HASHES['b0'][1]}" == weights.IMAGENET_EXPECTED.digest
    assert f"{BASE_WEIGHTS_PATH}efficientnetb0_notop.h5" == weights.IMAGENET
