"""Photos drawn here, for a machine without a network: five kinds of flowers that a model can tell apart.

JPEGs of 320 x 240 pixels and about 60 KB, as in the real flower_photos: soft background, grain of a sensor, so that
decoding one costs what decoding a photo costs. Each depends on seed and number only.
"""

import io
import math
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from feedbench.dataset.cores import allowed_cores, in_order
from feedbench.progress import Progress, tracked

DRAWING_VERSION = 1
"""Another drawing is another data set."""
DEFAULT_PHOTOS = 600
WIDTH, HEIGHT = 320, 240
_GRAIN = 18
"""Standard deviation of the noise, of 255: with _QUALITY it makes files of about 60 KB."""
_QUALITY = 95

_CIRCLE = [(math.cos(turn * math.tau / 20), math.sin(turn * math.tau / 20)) for turn in range(20)]

_Colour = tuple[int, int, int]


def draw_photos(folder: Path, photos: int, seed: int, progress: Progress) -> None:
    """`photos` JPEGs in five class folders, evenly; those that a killed try has left are kept."""
    for name in FLOWERS:
        (folder / name).mkdir(parents=True, exist_ok=True)
    with tracked(progress, "draw", photos, "photos") as advance, ThreadPoolExecutor(allowed_cores()) as pool:
        for _ in in_order(pool, lambda number: _save(folder, seed, number), range(photos)):
            advance(1)


def draw(seed: int, number: int) -> tuple[str, bytes]:
    """Class and JPEG of one photo."""
    name = list(FLOWERS)[number % len(FLOWERS)]
    dice = random.Random(f"{DRAWING_VERSION} {seed} {number}")
    noise = np.random.default_rng([DRAWING_VERSION, seed, number])
    picture = _background(dice, noise)
    for _ in range(dice.randint(1, 3)):
        _paste(picture, FLOWERS[name], dice)
    return name, _developed(picture, dice, noise)


def _save(folder: Path, seed: int, number: int) -> None:
    name = list(FLOWERS)[number % len(FLOWERS)]
    target = folder / name / f"{number:07d}.jpg"
    if not target.exists():
        unfinished = target.with_suffix(".tmp")
        unfinished.write_bytes(draw(seed, number)[1])
        unfinished.replace(target)


def _background(dice: random.Random, noise: np.random.Generator) -> Image.Image:
    """Out-of-focus greens and browns: noise at three scales, enlarged smoothly."""
    base = np.array([dice.uniform(30, 110), dice.uniform(60, 140), dice.uniform(20, 80)], np.float32)
    coarse = np.full((60, 80, 3), base - 3 * 128)
    for cells, strength in ((3, 45), (9, 25), (40, 14)):
        shape = (cells, cells * 4 // 3)
        grid = noise.normal(128, strength, (*shape, 1)) + noise.normal(0, strength / 4, (*shape, 3))
        coarse += np.asarray(
            Image.fromarray(grid.clip(0, 255).astype(np.uint8)).resize((80, 60), Image.Resampling.BICUBIC)
        )
    return Image.fromarray(coarse.clip(0, 255).astype(np.uint8)).resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC)


def _paste(picture: Image.Image, flower: "Callable[[_Brush], None]", dice: random.Random) -> None:
    """One flower of any size, place and turn; drawn at twice the size for smooth edges."""
    radius = dice.uniform(35, 85)
    side = int(radius * 2.4)
    layer = Image.new("RGBA", (2 * side, 2 * side))
    flower(_Brush(ImageDraw.Draw(layer), side, 2 * radius, dice))
    layer = layer.reduce(2)
    if dice.random() < 0.3:
        layer = layer.filter(ImageFilter.GaussianBlur(1))
    x, y = dice.uniform(0.15, 0.85) * WIDTH, dice.uniform(0.2, 0.8) * HEIGHT
    picture.paste(layer, (int(x - side / 2), int(y - side / 2)), layer)


def _developed(picture: Image.Image, dice: random.Random, noise: np.random.Generator) -> bytes:
    """Light and grain of a camera, then JPEG."""
    exposed = np.asarray(picture, np.float32) * np.float32(dice.uniform(0.75, 1.2))
    exposed += noise.standard_normal(exposed.shape, np.float32) * _GRAIN
    out = io.BytesIO()
    Image.fromarray(exposed.clip(0, 255).astype(np.uint8)).save(out, "JPEG", quality=_QUALITY)
    return out.getvalue()


class _Brush:
    """Draws around the middle of a layer; lengths are shares of the flower's radius, angles in radians."""

    def __init__(self, canvas: ImageDraw.ImageDraw, middle: float, radius: float, dice: random.Random) -> None:
        self.canvas, self.middle, self.radius, self.dice = canvas, middle, radius, dice
        self.turn = dice.uniform(0, math.tau)

    def shade(self, colour: _Colour, spread: float = 18) -> _Colour:
        return tuple(max(0, min(255, round(c + self.dice.gauss(0, spread)))) for c in colour)

    def disc(self, colour: _Colour, radius: float, at: tuple[float, float] = (0, 0)) -> None:
        x, y = self.middle + at[0] * self.radius, self.middle + at[1] * self.radius
        r = radius * self.radius
        self.canvas.ellipse((x - r, y - r, x + r, y + r), fill=colour)

    def petal(self, colour: _Colour, angle: float, start: float, end: float, width: float) -> None:
        """An ellipse along a ray from the middle."""
        cos, sin = self.radius * math.cos(angle), self.radius * math.sin(angle)
        middle, half = (start + end) / 2, (end - start) / 2
        outline = []
        for x, y in _CIRCLE:
            along, aside = middle + half * x, width * y
            outline.append((self.middle + along * cos - aside * sin, self.middle + along * sin + aside * cos))
        self.canvas.polygon(outline, fill=colour)

    def ring(self, colour: _Colour, count: int, start: float, end: float, width: float, spread: float = 18) -> None:
        for number in range(count):
            angle = self.turn + math.tau * (number + self.dice.uniform(-0.2, 0.2)) / count
            self.petal(self.shade(colour, spread), angle, start, end * self.dice.uniform(0.9, 1.0), width)


def _daisy(brush: _Brush) -> None:
    """White rays, yellow middle."""
    brush.ring((238, 238, 245), 20, 0.2, 1.0, 0.10, spread=10)
    brush.disc(brush.shade((235, 185, 30)), 0.27)
    for _ in range(40):
        brush.disc(brush.shade((215, 160, 20)), 0.03, (brush.dice.gauss(0, 0.1), brush.dice.gauss(0, 0.1)))


def _dandelion(brush: _Brush) -> None:
    """A dense yellow ball of hundreds of narrow rays."""
    for end, count in ((1.0, 70), (0.8, 60), (0.55, 45), (0.3, 30)):
        brush.ring((250, 205, int(20 + 40 * end)), count, 0.0, end, 0.025, spread=22)


def _rose(brush: _Brush) -> None:
    """Red to pink, petals folded round one another down to a dark heart."""
    red = (brush.dice.uniform(150, 225), brush.dice.uniform(10, 90), brush.dice.uniform(30, 110))
    for level, size in enumerate((0.62, 0.54, 0.45, 0.37, 0.29, 0.2, 0.12)):
        shade = tuple(int(c * (1.0 - 0.08 * level)) for c in red)
        for number in range(5):
            angle = brush.turn + math.tau * number / 5 + level * 0.7
            offset = size * 0.6
            brush.disc(brush.shade(shade, 12), size, (offset * math.cos(angle), offset * math.sin(angle)))
    brush.disc(tuple(int(c * 0.35) for c in red), 0.07)


def _sunflower(brush: _Brush) -> None:
    """Orange-yellow pointed petals in two rows round a large dark disc of seeds."""
    brush.ring((230, 150, 10), 24, 0.3, 1.0, 0.09)
    brush.ring((250, 190, 20), 24, 0.3, 0.85, 0.08)
    brush.disc((60, 35, 15), 0.45)
    for number in range(140):  # seeds on the spiral of the golden angle
        angle, distance = number * 2.39996, 0.43 * math.sqrt(number / 140)
        brush.disc(brush.shade((105, 70, 30)), 0.022, (distance * math.cos(angle), distance * math.sin(angle)))


def _tulip(brush: _Brush) -> None:
    """A cup of three petals on a stem with two leaves, in red, pink, violet or orange."""
    cups = ((215, 40, 50), (230, 110, 160), (130, 50, 150), (240, 130, 40))
    cup = brush.dice.choice(cups)
    down, up = math.pi / 2, -math.pi / 2
    brush.petal(brush.shade((50, 125, 45)), down, 0.0, 1.15, 0.05)
    for lean in (-0.35, 0.35):
        brush.petal(brush.shade((60, 140, 60)), down + lean, 0.3, 1.1, 0.09)
    for lean, tone in ((-0.42, 0.85), (0.42, 0.85), (0.0, 1.0)):
        colour = tuple(int(c * tone) for c in brush.shade(cup, 12))
        brush.petal(colour, up + lean, -0.25, 0.95, 0.33)


FLOWERS: dict[str, Callable[[_Brush], None]] = {
    "daisy": _daisy,
    "dandelion": _dandelion,
    "roses": _rose,
    "sunflowers": _sunflower,
    "tulips": _tulip,
}
