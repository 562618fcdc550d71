"""What is built runs as it is written, on the same photos in the same order."""

import dataclasses
import hashlib

import numpy as np
import pytest
from PIL import Image

from feedbench.errors import SettingsError
from feedbench.pipelines.build import build, cache_bytes, constant
from feedbench.pipelines.steps import Batch, Decode, Repeat, RunValues, Shuffle
from feedbench.pipelines.variants import VARIANTS, Variant, available

PHOTOS = 24
BATCH = 8


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("photos")
    noise = np.random.default_rng(0)
    paths = [str(folder / f"{n:02}.jpg") for n in range(PHOTOS)]
    for path in paths:
        Image.fromarray(noise.integers(0, 255, (40, 50, 3), dtype=np.uint8)).save(path)
    return paths, [n % 3 for n in range(PHOTOS)]


def values(tmp_path):
    return RunValues(image_size=32, batch_size=BATCH, shuffle_buffer=6, seed=3, scratch=tmp_path)


@pytest.mark.tensorflow
def test_every_variant_yields_the_same_photos_in_the_same_order(photos, tmp_path):
    """Digests of three whole passes, to the nearest of 256 levels (uint8_cache rounds earlier than the others)."""
    digests = set()
    for variant in VARIANTS:
        (scratch := tmp_path / variant.name).mkdir()
        built = build(variant, *photos, values(scratch))
        if built.to_fill is not None:
            assert sum(1 for _ in built.to_fill) == PHOTOS
        digest = hashlib.sha256()
        for images, labels in built.dataset.take(3 * PHOTOS // BATCH):
            digest.update(np.rint(images.numpy()).astype("uint8").tobytes() + labels.numpy().tobytes())
        digests.add(digest.hexdigest())
    assert len(digests) == 1


@dataclasses.dataclass(frozen=True)
class Some:
    """A step that drops photos; in batches it would be `FiniteTake`, too."""

    photos: int
    operators = ("FiniteTake",)

    def __call__(self, dataset):
        return dataset.take(self.photos)


@pytest.mark.tensorflow
def test_a_pass_with_fewer_photos_is_less_work_and_refused(photos, tmp_path):
    """10 of 24; all 24 are as many as there are."""
    few, all_of_them = (
        Variant("mine", steps=(Some(n), Decode(), Shuffle(), Repeat(), Batch()), why="planted") for n in (10, 24)
    )
    with pytest.raises(SettingsError, match="10 elements a pass, not the 24 training photos"):
        build(few, *photos, values(tmp_path))
    build(all_of_them, *photos, values(tmp_path))


@pytest.mark.tensorflow
def test_a_filled_cache_is_read_and_not_filled_again(photos, tmp_path):
    """Once full, photos may vanish from disk: for memory and for file caches."""
    import shutil

    folder = tmp_path / "copy"
    shutil.copytree(photos[0][0].rsplit("/", 1)[0], folder)
    paths = sorted(str(path) for path in folder.iterdir())
    for name in ("cache_memory", "cache_file", "uint8_cache"):
        (scratch := tmp_path / name).mkdir()
        built = build(available()[name], paths, photos[1], values(scratch))
        for _ in built.to_fill:
            pass
        for path in paths:
            (folder / path.rsplit("/", 1)[1]).rename(path + ".gone")
        assert len(list(built.dataset.take(4))) == 4
        for path in paths:
            (folder / (path.rsplit("/", 1)[1] + ".gone")).rename(path)


@pytest.mark.tensorflow
def test_a_pipeline_that_does_not_feed_the_model_is_refused_before_training(photos, tmp_path):
    raw = Variant("raw", steps=(Decode(dtype="uint8"), Shuffle(), Repeat(), Batch()), why="bytes to a float model")
    with pytest.raises(SettingsError, match=r"variant 'raw': yields .*uint8"):
        build(raw, *photos, values(tmp_path))


@pytest.mark.tensorflow
def test_the_ceilings_batch_never_changes(photos, tmp_path):
    batches = [images.numpy() for images, _ in constant(build(VARIANTS[0], *photos, values(tmp_path)).dataset).take(3)]
    assert np.array_equal(batches[0], batches[1])
    assert np.array_equal(batches[0], batches[2])


def test_cache_sizes_are_those_of_the_facts():
    """224 x 224 x 3 as float32 is 0.6 MB a photo, 2.2 GB for all 3,670 of flower_photos; uint8 a quarter."""
    sizes = {v.name: cache_bytes(v, 3670, 224) for v in VARIANTS}
    assert sizes["cache_memory"] == 3670 * 224 * 224 * 3 * 4 == 2_209_751_040
    assert sizes["uint8_cache"] * 4 == sizes["cache_memory"]
    assert sizes["naive"] == sizes["cache_file"] == 0
