"""Whether the training pipeline can use a photo: exactly the files that `tf.io.decode_jpeg(channels=3)` decodes to a
picture of rank three, found out without TensorFlow, by decoding the whole file once.

That operator takes JPEG, PNG and still GIF whatever the name says. Anything cut short it refuses; damage inside a
JPEG's data that libjpeg only warns about it accepts. On damaged GIFs, and on a few damaged JPEGs with restart markers,
this module is stricter than TensorFlow; never the other way round.
"""

import io
import re
import struct
import zlib
from dataclasses import dataclass

import simplejpeg
from PIL import Image

MAX_PIXELS = 100_000_000
"""More is refused by the header: a few bytes can claim 12 GB of pixels, and they are decoded in parallel."""

_BROKEN = (OSError, SyntaxError, ValueError, EOFError, IndexError, KeyError, TypeError, struct.error, zlib.error)
"""What Pillow raises on damaged files."""
_MARKER = re.compile(rb"\xff([^\x00\x01\xd0-\xd8\xff])")
"""Of a JPEG: all but those that stand alone, within the data of a scan."""
_ONLY = "only JPEG, PNG and still GIF can be read; convert it"


class Unusable(Exception):
    """Why a file cannot be a photo of the index."""


@dataclass(frozen=True)
class Photo:
    format: str
    """JPEG, PNG or GIF, by content."""
    width: int
    height: int


def examine(content: bytes) -> Photo:
    """Decode a whole file. Raises Unusable with the reason, fit to stand after the file's name."""
    if not content:
        raise Unusable("empty file")
    if content.startswith(b"\xff\xd8\xff"):
        return _jpeg(content)
    if content.startswith(b"\x89PNG\r\n\x1a\n"):
        return _png(content)
    if content.startswith(b"GIF8"):
        return _gif(content)
    raise Unusable(_what_else(content))


def _jpeg(content: bytes) -> Photo:
    try:
        height, width, *_ = simplejpeg.decode_jpeg_header(content)
        _check_pixels(width, height)
        simplejpeg.decode_jpeg(content)
    except ValueError:
        return _doubtful_jpeg(content)
    return Photo("JPEG", width, height)


def _doubtful_jpeg(content: bytes) -> Photo:
    """libjpeg complained. TensorFlow goes on after a mere warning, as Pillow does, but then wants a proper end."""
    picture = _open(content, "JPEG")
    try:
        picture.load()
    except _BROKEN as error:
        raise Unusable(f"damaged JPEG: {_short(error)}") from None
    if not _reaches_its_end(content):
        raise Unusable("damaged JPEG: the file ends too early")
    return Photo("JPEG", *picture.size)


def _reaches_its_end(jpeg: bytes) -> bool:
    """Whether the segments, each as long as it claims, lead to the EOI marker (ITU-T T.81, annex B)."""
    at = 2
    while marker := _MARKER.search(jpeg, at):
        if marker[1] == b"\xd9":
            return True
        at = marker.end() + int.from_bytes(jpeg[marker.end() : marker.end() + 2], "big")
    return False


def _png(content: bytes) -> Photo:
    """Pillow forgives a bad end, TensorFlow does not: so `verify` each chunk, and see that IEND is whole."""
    _open(content, "PNG")
    try:
        Image.open(io.BytesIO(content), formats=["PNG"]).verify()
        picture = Image.open(io.BytesIO(content), formats=["PNG"])
        picture.load()
    except _BROKEN as error:
        raise Unusable(f"damaged PNG: {_short(error)}") from None
    if b"\0\0\0\0IEND\xaeB`\x82" not in content:
        raise Unusable("damaged PNG: the file ends too early")
    return Photo("PNG", *picture.size)


def _gif(content: bytes) -> Photo:
    picture = _open(content, "GIF")
    try:
        frames = picture.n_frames
        picture.load()
    except _BROKEN as error:
        raise Unusable(f"damaged GIF: {_short(error)}") from None
    if frames != 1:
        raise Unusable(f"animated GIF ({frames} frames): {_ONLY}")
    if b"\0;" not in content:
        raise Unusable("damaged GIF: the file ends too early")
    return Photo("GIF", *picture.size)


def _open(content: bytes, kind: str) -> Image.Image:
    """The header read, its claim of pixels checked, nothing decoded."""
    try:
        picture = Image.open(io.BytesIO(content), formats=[kind])
    except Image.DecompressionBombError:
        raise Unusable(f"too large: more than {MAX_PIXELS // 1_000_000} million pixels") from None
    except _BROKEN as error:
        raise Unusable(f"damaged {kind}: {_short(error)}") from None
    _check_pixels(*picture.size)
    return picture


def _check_pixels(width: int, height: int) -> None:
    if width * height > MAX_PIXELS:
        raise Unusable(f"too large: {width} x {height} pixels, at most {MAX_PIXELS // 1_000_000} million")


def _what_else(content: bytes) -> str:
    """What a file is that is none of the three, as far as its first bytes tell."""
    start = content[:512].lstrip().lower()
    if content.startswith(b"RIFF") and content[8:12] == b"WEBP":
        return f"a WebP picture: {_ONLY}"
    if content[4:8] == b"ftyp":
        return f"a HEIF, AVIF or MP4 file: {_ONLY}"
    if content.startswith((b"II*\0", b"MM\0*")):
        return f"a TIFF picture: {_ONLY}"
    if content.startswith(b"BM"):
        return f"a BMP picture: {_ONLY}"
    if start.startswith((b"<!doctype", b"<html", b"<head", b"<?xml")):
        return "a web page, not a picture: perhaps a failed download"
    if content.startswith(b"version https://git-lfs"):
        return "a Git LFS pointer, not a picture: run `git lfs pull`"
    return "not a picture"


def _short(error: BaseException) -> str:
    """An error's first line, in words of the file: Pillow speaks of its buffers."""
    text = str(error).splitlines()[0] if str(error) else type(error).__name__
    if "truncated" in text:
        return "the file ends too early"
    return "not readable" if "BytesIO" in text else text
