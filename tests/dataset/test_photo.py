"""The index takes a photo if and only if TensorFlow's decoder, as the training calls it, makes rank three of it."""

import io
import os
import random
import zlib
from pathlib import Path

import pytest
from PIL import Image

from feedbench.dataset.photo import Photo, Unusable, examine

REAL_DATA = os.environ.get("FEEDBENCH_REAL_DATA")
ODD = sorted(Path(REAL_DATA, "odd_images").iterdir()) if REAL_DATA else []
needs_real_data = pytest.mark.skipif(not REAL_DATA, reason="set FEEDBENCH_REAL_DATA to the folder of real test data")

KINDS = {
    "baseline": {},
    "progressive": {"progressive": True},
    "restart markers": {"restart_marker_rows": 1},
    "grey": {"mode": "L"},
    "CMYK": {"mode": "CMYK"},
    "full chroma": {"subsampling": 0},
    "PNG": {"kind": "PNG"},
    "PNG palette": {"kind": "PNG", "mode": "P"},
    "PNG alpha": {"kind": "PNG", "mode": "RGBA"},
    "PNG 1 bit": {"kind": "PNG", "mode": "1"},
}


def accepted(content: bytes) -> bool:
    try:
        examine(content)
    except Unusable:
        return False
    return True


def tensorflow_accepts(content: bytes) -> bool:
    import tensorflow as tf

    try:
        return tf.io.decode_jpeg(content, channels=3).shape.rank == 3
    except tf.errors.OpError:
        return False


def flipped(content: bytes, dice: random.Random) -> bytes:
    """Some bits flipped anywhere."""
    damaged = bytearray(content)
    for _ in range(dice.choice((1, 1, 3, 10))):
        damaged[dice.randrange(len(damaged))] ^= 1 << dice.randrange(8)
    return bytes(damaged)


@pytest.mark.parametrize("kind", KINDS)
def test_a_whole_photo_is_described_by_its_content(make_photo, kind):
    content = make_photo(size=(40, 24), **KINDS[kind])
    assert examine(content) == Photo(KINDS[kind].get("kind", "JPEG"), 40, 24)


def test_a_still_gif_is_a_photo_and_an_animated_one_is_not(make_photo):
    assert examine(make_photo(kind="GIF")).format == "GIF"
    frames = [Image.open(io.BytesIO(make_photo(seed))) for seed in (1, 2, 3)]
    out = io.BytesIO()
    frames[0].save(out, "GIF", save_all=True, append_images=frames[1:])
    with pytest.raises(Unusable, match=r"animated GIF \(3 frames\)"):
        examine(out.getvalue())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cut", [1, 2, 3, 11, 12, 0.5, 0.9])
def test_a_photo_cut_short_anywhere_is_refused(make_photo, kind, cut):
    content = make_photo(size=(64, 48), **KINDS[kind])
    kept = len(content) - cut if cut >= 1 else int(cut * len(content))
    with pytest.raises(Unusable):
        examine(content[:kept])


@pytest.mark.parametrize("kind", KINDS)
def test_what_stands_behind_a_whole_photo_does_no_harm(make_photo, kind):
    assert accepted(make_photo(**KINDS[kind]) + b"junk" * 50)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty file"),
        (b"RIFF\x10\0\0\0WEBPVP8 ", "WebP"),
        (b"BM" + bytes(50), "BMP"),
        (b"II*\0" + bytes(50), "TIFF"),
        (b"\0\0\0\x18ftypheic", "HEIF"),
        (b"\n<!DOCTYPE html><html>", "web page"),
        (b"version https://git-lfs.github.com/spec/v1\n", "git lfs pull"),
        (b"\0" * 100, "not a picture"),
        (b"\xff\xd8\xff\xe0", "damaged JPEG"),
        (b"\x89PNG\r\n\x1a\n", "damaged PNG"),
        (b"GIF89a", "damaged GIF"),
    ],
)
def test_the_reason_says_what_the_file_is(content, reason):
    with pytest.raises(Unusable, match=reason):
        examine(content)


def test_absurd_dimensions_are_refused_by_the_header_without_decoding(make_photo, monkeypatch):
    """A JPEG's height and width stand in its SOF0 segment; 65,500 x 65,500 pixels would be 12.9 GB."""
    monkeypatch.setattr("simplejpeg.decode_jpeg", lambda *_: pytest.fail("decoded"))
    content = make_photo()
    at = content.index(b"\xff\xc0") + 5
    size = (65_500).to_bytes(2, "big")
    with pytest.raises(Unusable, match="too large: 65500 x 65500 pixels, at most 100 million"):
        examine(content[:at] + size + size + content[at + 4 :])


@pytest.mark.parametrize("side", [10_001, 65_500], ids=["Pillow would warn", "Pillow would refuse"])
@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_absurd_dimensions_are_refused_in_other_formats_too(make_photo, side):
    """Side by side in GIF's screen descriptor and in PNG's IHDR chunk, whose checksum then has to be right."""
    gif = make_photo(kind="GIF")
    header = b"IHDR" + side.to_bytes(4, "big") * 2 + b"\x08\x02\0\0\0"
    png = make_photo(kind="PNG")
    png = png[:12] + header + zlib.crc32(header).to_bytes(4, "big") + png[33:]
    for content in (gif[:6] + side.to_bytes(2, "little") * 2 + gif[10:], png):
        with pytest.raises(Unusable, match="too large"):
            examine(content)


@pytest.mark.tensorflow
@pytest.mark.real_data
@needs_real_data
@pytest.mark.parametrize("file", ODD, ids=lambda file: file.name)
def test_odd_files_are_taken_exactly_when_tensorflow_takes_them(file):
    content = file.read_bytes()
    if file.name.startswith("huge_dims"):  # TensorFlow would try to allocate the 12.9 GB
        assert not accepted(content)
    else:
        assert accepted(content) == tensorflow_accepts(content)


@pytest.mark.tensorflow
@pytest.mark.parametrize("kind", KINDS)
def test_damaged_photos_are_taken_exactly_when_tensorflow_takes_them(make_photo, kind):
    """250 photos with flipped bits of each kind, some of which libjpeg only warns about, and 150 cuts."""
    dice = random.Random(kind)
    whole = make_photo(size=(64, 48), **KINDS[kind])
    damaged = [flipped(whole, dice) for _ in range(250)] + [whole[: dice.randrange(len(whole))] for _ in range(150)]
    verdicts = [(accepted(content), tensorflow_accepts(content)) for content in damaged]
    assert (True, False) not in verdicts  # it would break the training
    assert verdicts.count((False, True)) <= (4 if kind == "restart markers" else 0)


@pytest.mark.tensorflow
def test_no_damaged_gif_gets_in_that_tensorflow_refuses(make_photo):
    """The other way round happens: Pillow refuses a few bit flips in the pixel data that TensorFlow forgives."""
    dice = random.Random(0)
    whole = make_photo(size=(64, 48), kind="GIF")
    damaged = [flipped(whole, dice) for _ in range(250)] + [whole[:cut] for cut in range(len(whole))]
    assert not [content for content in damaged if accepted(content) and not tensorflow_accepts(content)]
