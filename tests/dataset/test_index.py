"""From a folder to the DataFrame of a run."""

import os
import shutil
from pathlib import Path

import pytest

from feedbench.config import Settings
from feedbench.dataset.index import (
    COLUMNS,
    build_index,
    dataset_record,
    even_quota,
    read_index,
    read_photos,
    write_index,
)
from feedbench.dataset.keep import Fetched
from feedbench.errors import InputError

REAL_DATA = os.environ.get("FEEDBENCH_REAL_DATA")
needs_real_data = pytest.mark.skipif(not REAL_DATA, reason="set FEEDBENCH_REAL_DATA to the folder of real test data")


def settings(**given) -> Settings:
    return Settings(**{"batch_size": 4, **given})


@pytest.fixture
def index(make_folder, silent):
    """Forty photos of b, twenty of a, ten of c."""
    return build_index(make_folder(b=40, a=20, c=10), settings(), silent).photos


def test_one_row_a_photo_with_what_the_file_says(index, make_folder):
    assert list(index.columns) == COLUMNS
    assert len(index) == 70
    row = index[index["path"] == "a/003.jpg"].iloc[0]
    assert (row.class_name, row.width, row.height, row.format) == ("a", 32, 24, "JPEG")
    assert row.bytes > 0
    assert index["path"].is_unique


def test_labels_follow_the_sorted_names_of_the_classes(index):
    assert dict(zip(index["class_name"], index["label"], strict=True)) == {"a": 0, "b": 1, "c": 2}


def test_the_split_is_stratified_and_the_train_part_is_whole_batches(index):
    """A fifth of 40, 20 and 10 for validation; of the other 56 all are fourteen batches of four."""
    count = index.groupby(["class_name", "split"]).size()
    assert count[:, "validation"].to_dict() == {"a": 4, "b": 8, "c": 2}
    assert (index["split"] == "train").sum() == 56


def test_what_does_not_fill_a_batch_is_unused(make_folder, silent):
    """15 for training are one batch of eight, and seven that no pass would use evenly."""
    photos = build_index(make_folder(a=10, b=9), settings(batch_size=8), silent).photos
    assert photos["split"].value_counts().to_dict() == {"train": 8, "unused": 7, "validation": 4}


def test_a_batch_is_never_of_one_class(index):
    """Fact 7: class-sorted files with a small shuffle buffer give one-class batches; so the index is shuffled."""
    train = index[index["split"] == "train"].reset_index()
    assert train.groupby(train.index // 14)["label"].nunique().min() >= 2


def test_the_same_seed_gives_the_same_index_wherever_the_folder_lies(make_folder, silent):
    first, second = make_folder("one", a=10, b=10), make_folder("two", b=10)
    (second / "a").mkdir()
    for file in sorted((first / "a").iterdir(), reverse=True):  # made in another order
        shutil.copy(file, second / "a")
    (second / "b").rename(second / "x")
    shutil.copytree(first / "b", second / "b")
    shutil.rmtree(second / "x")
    found = [build_index(root, settings(), silent).photos for root in (first, second)]
    assert found[0].equals(found[1])
    other = build_index(first, settings(seed=1), silent).photos
    assert list(other["path"]) != list(found[0]["path"])
    assert sorted(other["path"]) == sorted(found[0]["path"])


def test_a_limit_is_shared_evenly_and_by_seed(make_folder, silent):
    root = make_folder(a=40, b=15, c=6)
    chosen = [build_index(root, settings(photos=30, seed=seed), silent).photos for seed in (0, 0, 1)]
    assert chosen[0]["class_name"].value_counts().to_dict() == {"a": 12, "b": 12, "c": 6}
    assert chosen[0].equals(chosen[1])
    assert set(chosen[0]["path"]) != set(chosen[2]["path"])


@pytest.mark.parametrize(
    ("available", "total", "quota"),
    [
        ({"a": 10, "b": 10}, 10, {"a": 5, "b": 5}),
        ({"a": 10, "b": 2}, 10, {"a": 8, "b": 2}),
        ({"a": 10, "b": 10, "c": 10}, 10, {"a": 3, "b": 3, "c": 4}),
        ({"a": 1, "b": 2}, 3, {"a": 1, "b": 2}),
    ],
)
def test_quotas_are_as_even_as_the_numbers_allow(available, total, quota):
    assert even_quota(available, total) == quota


def test_rejects_are_named_with_their_reason_and_the_rest_goes_on(make_folder, silent, make_photo):
    root = make_folder(a=20, b=20)
    whole = make_photo(7)
    (root / "a/cut.jpg").write_bytes(whole[:-2])
    (root / "a/empty.jpg").write_bytes(b"")
    (root / "a/page.jpg").write_bytes(b"<html>not found</html>")
    (root / "a/gone.jpg").symlink_to("nowhere")
    (root / "a/unreadable.jpg").symlink_to("/proc/self/mem")  # a regular file whose first byte cannot be read
    (root / "b/notes.txt").write_bytes(b"not counted")
    (root / "b/photo_without_suffix").write_bytes(whole)
    found = build_index(root, settings(max_reject_share=0.2), silent)
    assert dict(found.rejects.itertuples(index=False)) == {
        "a/cut.jpg": "damaged JPEG: the file ends too early",
        "a/empty.jpg": "empty file",
        "a/gone.jpg": "a link to nothing",
        "a/page.jpg": "a web page, not a picture: perhaps a failed download",
        "a/unreadable.jpg": "cannot be read: Input/output error",
    }
    assert len(found.photos) == 41


def test_too_many_rejects_stop_the_run_with_the_head_of_the_list(make_folder, silent):
    root = make_folder(a=20, b=20)
    for number in range(7):
        (root / f"a/bad{number}.jpg").write_bytes(b"")
    with pytest.raises(InputError) as error:
        build_index(root, settings(), silent)
    assert "7 of 47 files are no usable photos (15 %), more than max_reject_share=0.05 allows" in str(error.value)
    assert "a/bad0.jpg: empty file" in str(error.value)
    assert str(error.value).endswith("and 2 more")


def test_rejects_just_at_the_limit_are_allowed(make_folder, silent):
    """2 of 40 are 5 %."""
    root = make_folder(a=19, b=19)
    for number in range(2):
        (root / f"a/bad{number}.jpg").write_bytes(b"")
    assert len(build_index(root, settings(), silent).rejects) == 2


@pytest.mark.parametrize(
    ("classes", "given", "message"),
    [
        ({}, {}, "no class folder with photos in it; one sub-folder per class"),
        ({"a": 20}, {}, "one class only, 'a'"),
        ({"a": 20, "b": 1}, {}, "class 'b' has one usable photo"),
        ({"a": 3, "b": 3}, {"batch_size": 32}, "batch_size=32: 6 photos leave 4 for training.*batch_size <= 4"),
        (dict.fromkeys("abcdefghijkl", 3), {"photos": 20}, "photos=20: 12 classes need at least 24"),
    ],
)
def test_a_folder_that_cannot_be_learnt_from_says_why(make_folder, silent, tmp_path, classes, given, message):
    (tmp_path / "photos").mkdir(exist_ok=True)
    root = make_folder(**classes)
    with pytest.raises(InputError, match=f"(?s){message}"):
        build_index(root, settings(**given), silent)


def test_a_folder_without_one_usable_photo_names_some(tmp_path, silent):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.jpg").write_bytes(b"")
    with pytest.raises(InputError, match=r"no usable photo among 2 files.*a/1.jpg: empty file; b/1.jpg: empty file"):
        build_index(tmp_path, settings(), silent)


def test_a_class_folder_without_photos_is_no_class(make_folder, silent):
    root = make_folder(a=10, b=10)
    (root / "c").mkdir()
    (root / "notes").mkdir()
    (root / "notes/read.txt").write_bytes(b"x")
    assert set(build_index(root, settings(), silent).photos["class_name"]) == {"a", "b"}


def test_an_index_is_read_as_it_was_written(make_folder, silent, store):
    root = make_folder(a=20, b=20)
    (root / 'a/bad "name", with\nall.jpg').write_bytes(b"")
    found = build_index(root, settings(), silent)
    folder = store.run("run-1")
    write_index(folder, found)
    again = read_index(folder)
    assert again.photos.equals(found.photos)
    assert again.rejects.equals(found.rejects)
    assert read_photos(folder.index).equals(found.photos)
    with pytest.raises(InputError, match="has not been indexed"):
        read_index(store.run("run-2"))


def test_the_record_counts_what_is_in_the_index(make_folder, silent):
    root = make_folder(a=10, b=9)
    (root / "a/bad.jpg").write_bytes(b"")
    given = settings(source=str(root), batch_size=8)
    record = dataset_record(build_index(root, given, silent), Fetched("f00d", str(root)), given)
    assert (record.fingerprint, record.path, record.classes) == ("f00d", str(root), ("a", "b"))
    assert (record.photos, record.rejects, record.train_photos, record.validation_photos) == (19, 1, 8, 4)


def test_progress_counts_every_file(make_folder, silent):
    class Counting(type(silent)):
        total, seen = 0, 0

        def start(self, what, total, unit, already=0):
            self.total = total

        def advance(self, n=1):
            self.seen += n

    counting = Counting()
    build_index(make_folder(a=10, b=10), settings(), counting)
    assert (counting.total, counting.seen) == (20, 20)


@pytest.mark.real_data
@needs_real_data
def test_the_odd_files_that_people_have_are_indexed_or_rejected_by_name(tmp_path, silent):
    """23 files, of which ten decode (see test_photo); .DS_Store is not even looked at."""
    shutil.copytree(Path(REAL_DATA, "flower_photos"), tmp_path / "flowers")
    shutil.copytree(Path(REAL_DATA, "odd_images"), tmp_path / "flowers/daisy", dirs_exist_ok=True)
    found = build_index(tmp_path / "flowers", Settings(source="x"), silent)
    assert len(found.photos) == 300 + 10
    assert found.photos["class_name"].nunique() == 5
    rejects = dict(found.rejects.itertuples(index=False))
    assert rejects["daisy/huge_dims_65500x65500.jpg"].startswith("too large: 65500 x 65500")
    assert rejects["daisy/webp_named.jpg"].startswith("a WebP picture")
    assert len(rejects) == 12
    assert not any(".DS_Store" in file for file in rejects)
