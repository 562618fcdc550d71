"""What can be said of settings before anything is downloaded."""

from collections.abc import Iterable, Mapping
from typing import Any

from feedbench.config import Settings
from feedbench.dataset.sources import check_source, expected_photos
from feedbench.dataset.weights import check_weights
from feedbench.errors import SettingsError
from feedbench.pipelines.build import cache_bytes
from feedbench.pipelines.variants import Variant, chosen
from feedbench.training.machine import allowed_memory_mb
from feedbench.units import BYTES_PER_MB, mb


def check(params: Mapping[str, Any], *, trains_here: bool = True) -> Settings:
    """Settings that can be run, checked as far as that goes before anything is downloaded.

    `trains_here`: this machine's memory is the trainer's too; else each trial holds its cache against its own worker.

    Raises SettingsError naming the setting, its value and what would be right.
    """
    settings = Settings.parse(params)
    check_source(settings.source)
    check_weights(settings.weights)
    variants = chosen(settings.variants, settings.variant_modules, a_a=settings.a_a)
    photos = expected_photos(settings)
    if photos is not None:
        check_enough(settings, photos)
        if trains_here:
            check_caches_fit(settings, variants, photos)
    return settings


def check_enough(settings: Settings, photos: int) -> None:
    train = int(photos * (1 - settings.validation_share))
    if train < settings.batch_size:
        raise SettingsError(
            f"batch_size={settings.batch_size}: {photos} photos leave {train} for training, less than one batch; "
            f"use batch_size <= {train} or more photos"
        )


def check_caches_fit(settings: Settings, variants: Iterable[Variant], photos: int) -> None:
    """A memory cache that cannot fit would only be found out by the kernel, an hour later."""
    allowed_mb = allowed_memory_mb()
    for variant in variants:
        needed_mb = cache_bytes(variant, photos, settings.image_size) / BYTES_PER_MB
        if needed_mb > allowed_mb:
            raise SettingsError(
                f"variants={variant.name}: its cache of {photos} photos at image_size={settings.image_size} needs "
                f"{mb(needed_mb)}, this machine allows {mb(allowed_mb)}; use uint8_cache, a smaller image_size, "
                "photos=N, or leave the variant out"
            )
