"""What of a folder may be a photo, by place and name."""

import os

import pytest

from feedbench.dataset.folders import class_root, count_photo_like, fingerprint, listing
from feedbench.errors import InputError


def write(root, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(path.encode())


def test_what_systems_leave_behind_is_neither_photo_nor_class_nor_reject(tmp_path):
    litter = (".DS_Store", "._1.jpg", "Thumbs.db", "THUMBS.DB", "desktop.ini", "LICENSE.txt")
    write(tmp_path, "daisy/1.jpg", *litter, *(f"daisy/{name}" for name in litter))
    write(tmp_path, "__MACOSX/daisy/._1.jpg", ".git/2.jpg", ".ipynb_checkpoints/3.jpg", "@eaDir/4.jpg")
    (tmp_path / "empty").mkdir()
    assert listing(tmp_path).files == ("daisy/1.jpg",)
    assert listing(tmp_path).strays == ()


def test_a_file_of_unknown_or_no_suffix_in_a_class_folder_is_looked_at(tmp_path):
    write(tmp_path, "daisy/1", "daisy/2.JPEG", "daisy/3.orig", "daisy/name with spaces é東 (1).JPG")
    assert len(listing(tmp_path).files) == 4


def test_photos_out_of_place_are_told(tmp_path):
    write(tmp_path, "1.jpg", "daisy/2.jpg", "daisy/more/3.jpg", "daisy/more/.DS_Store", "daisy/none/.DS_Store")
    assert listing(tmp_path).strays == (
        ("1.jpg", "in no class folder"),
        ("daisy/more/", "a folder inside a class folder is not read"),
    )


@pytest.mark.timeout(20)
def test_what_must_not_be_opened_is_told_apart(tmp_path):
    """A pipe would block for ever, a dangling link fails, a link to itself loops."""
    write(tmp_path, "daisy/1.jpg")
    os.mkfifo(tmp_path / "daisy/pipe.jpg")
    (tmp_path / "daisy/gone.jpg").symlink_to("nowhere.jpg")
    (tmp_path / "daisy/loop.jpg").symlink_to("loop.jpg")
    found = listing(tmp_path)
    assert found.files == ("daisy/1.jpg",)
    assert dict(found.strays) == {
        "daisy/gone.jpg": "a link to nothing",
        "daisy/loop.jpg": "Too many levels of symbolic links",
        "daisy/pipe.jpg": "not a regular file",
    }


def test_a_link_to_a_photo_or_a_class_folder_is_as_good_as_itself(tmp_path):
    write(tmp_path, "elsewhere/1.jpg", "photos/tulips/2.jpg")
    (tmp_path / "photos/daisy").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "photos/tulips/3.jpg").symlink_to(tmp_path / "elsewhere/1.jpg")
    assert listing(tmp_path / "photos").files == ("daisy/1.jpg", "tulips/2.jpg", "tulips/3.jpg")


def test_a_name_that_is_no_utf8_is_told_in_a_form_that_can_be_stored(tmp_path):
    write(tmp_path, "daisy/1.jpg")
    with open(os.fsencode(tmp_path) + b"/daisy/\xff.jpg", "wb"):  # noqa: PTH123 the name is bytes
        pass
    assert listing(tmp_path).strays == (("daisy/\\xff.jpg", "the name is not UTF-8"),)


def test_a_folder_that_wraps_the_classes_is_seen_through(tmp_path):
    write(tmp_path, "flower_photos/daisy/1.jpg", "flower_photos/tulips/2.jpg", "flower_photos/LICENSE.txt", "._x")
    assert class_root(tmp_path) == tmp_path / "flower_photos"
    assert class_root(tmp_path / "flower_photos") == tmp_path / "flower_photos"


def test_one_class_with_a_folder_inside_is_no_wrapper(tmp_path):
    write(tmp_path, "daisy/1.jpg", "daisy/more/2.jpg")
    assert class_root(tmp_path) == tmp_path


def test_a_link_that_leads_up_again_is_not_followed_for_ever(tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos/again").symlink_to(tmp_path)
    assert class_root(tmp_path / "photos") == tmp_path / "photos"


def test_a_missing_folder_is_named():
    with pytest.raises(InputError, match="/no/where: cannot be listed: No such file"):
        listing(type("", (), {"__fspath__": lambda _: "/no/where", "__str__": lambda _: "/no/where"})())


def test_photos_are_counted_without_being_opened(tmp_path):
    write(tmp_path, "wrap/daisy/1.jpg", "wrap/daisy/2.PNG", "wrap/daisy/3", "wrap/tulips/4.mp4", "wrap/daisy/._5.jpg")
    assert count_photo_like(tmp_path) == 3


def test_equal_data_has_an_equal_fingerprint_and_other_data_another(make_folder, silent):
    first = fingerprint(make_folder("one", a=3, b=3), silent)
    other = make_folder("two", a=3, b=3)
    assert fingerprint(other, silent) == first
    (other / "a/.DS_Store").write_bytes(b"litter")
    assert fingerprint(other, silent) == first
    (other / "a/000.jpg").rename(other / "a/100.jpg")
    renamed = fingerprint(other, silent)
    (other / "a/100.jpg").write_bytes(b"x")
    assert len({first, renamed, fingerprint(other, silent)}) == 3
