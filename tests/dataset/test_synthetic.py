"""The photos drawn here: alike every time, unlike one another, of a real photo's size."""

import io

import numpy as np
import pytest
from PIL import Image

from feedbench.dataset.photo import Photo, examine
from feedbench.dataset.synthetic import FLOWERS, draw, draw_photos


def pixels(content: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(content)), float)


def test_a_photo_depends_on_seed_and_number_only():
    assert draw(0, 7) == draw(0, 7)
    assert len({draw(seed, number)[1] for seed in (0, 1) for number in (0, 5, 10)}) == 6


def test_photos_cost_what_real_ones_cost():
    """flower_photos has 320 x 240 pixels at the median and 62 KB a photo (228.8 MB for 3,670)."""
    contents = [draw(0, number)[1] for number in range(15)]
    assert {examine(content) for content in contents} == {Photo("JPEG", 320, 240)}
    assert 45_000 < np.mean([len(content) for content in contents]) < 75_000


def test_the_classes_can_be_told_apart_better_than_by_chance():
    """By the nearest mean colour histogram of the middle alone; chance is a fifth. A planted signal, not noise."""

    def histogram(content: bytes) -> np.ndarray:
        bins = (pixels(content)[20:220, 30:290] // 64).astype(int)
        return np.bincount((bins @ (16, 4, 1)).ravel(), minlength=64) ** 0.5

    known = {name: [] for name in FLOWERS}
    for number in range(50):
        name, content = draw(0, number)
        known[name].append(histogram(content))
    means = {name: np.mean(histograms, axis=0) for name, histograms in known.items()}
    asked = [draw(1, number) for number in range(30)]
    right = [min(means, key=lambda n: np.linalg.norm(means[n] - histogram(c))) == name for name, c in asked]
    assert sum(right) >= 14  # by chance 6 of 30, and 14 or more once in 1,000 times


def test_the_number_asked_for_is_drawn_evenly(tmp_path, silent):
    draw_photos(tmp_path, 12, 0, silent)
    assert {folder.name: len(list(folder.iterdir())) for folder in tmp_path.iterdir()} == {
        "daisy": 3,
        "dandelion": 3,
        "roses": 2,
        "sunflowers": 2,
        "tulips": 2,
    }


def test_drawing_goes_on_after_a_kill_with_what_is_whole(tmp_path, silent, monkeypatch):
    draw_photos(tmp_path / "whole", 10, 0, silent)
    draw_photos(tmp_path / "resumed", 5, 0, silent)
    (tmp_path / "resumed/daisy/0000005.tmp").write_bytes(b"half a photo")
    drawn = []
    monkeypatch.setattr("feedbench.dataset.synthetic.draw", lambda *of: drawn.append(of) or draw(*of))
    draw_photos(tmp_path / "resumed", 10, 0, silent)
    assert sorted(number for _, number in drawn) == [5, 6, 7, 8, 9]
    contents = [
        {file.relative_to(root): file.read_bytes() for file in root.rglob("*") if file.is_file()}
        for root in (tmp_path / "whole", tmp_path / "resumed")
    ]
    assert contents[0] == contents[1]


@pytest.mark.parametrize("name", FLOWERS)
def test_every_flower_is_drawn_in_a_photo_of_its_own_class(name):
    assert name in {draw(0, number)[0] for number in range(5)}
