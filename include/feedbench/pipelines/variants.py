"""The variants that are compared: one entry each. This is where to add one.

A variant of your own needs no change here: define `VARIANTS` (a tuple like this one) in any importable module
and name that module in the setting `variant_modules`.
"""

import importlib
import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, is_dataclass
from typing import TYPE_CHECKING, Any

from feedbench.config import A_A_TWIN, BASELINE, CEILING
from feedbench.errors import SettingsError, nearest
from feedbench.pipelines.steps import AUTO, Batch, Cache, Decode, Prefetch, Repeat, Shuffle, Step, ToFloat

if TYPE_CHECKING:
    from feedbench.records import VariantSpec

SOURCE_OPERATOR = "TensorSlice"
_NAME_LENGTH = 60
"""At most, in letters: it is the name of a folder, and a column of the report."""


@dataclass(frozen=True)
class Variant:
    """A named pipeline. `rewritten=True` leaves TensorFlow's own rewriting on, so it may run as something else."""

    name: str
    steps: tuple[Step, ...]
    why: str
    title: str = ""
    """How the trigger form calls it; made from the name when left out."""
    rewritten: bool = False
    written: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        check_name(self.name)
        check_types(self)
        check_order(self.name, self.steps)
        check_source(self.name, self.steps)
        object.__setattr__(self, "title", self.title or self.name.replace("_", " "))
        source = () if _is_source(self.steps[0]) else (SOURCE_OPERATOR,)
        object.__setattr__(self, "written", (*source, *(op for step in self.steps for op in step.operators)))

    @property
    def cache(self) -> Cache | None:
        return next((step for step in self.steps if isinstance(step, Cache)), None)

    @property
    def declared(self) -> tuple[str, ...]:
        """Operators that must run in the measured steps: nothing below a cache, for that one is warm by then."""
        if self.cache is None:
            return self.written
        return self.written[self.written.index(self.cache.operators[0]) :]

    def spec(self) -> "VariantSpec":
        from feedbench.records import VariantSpec  # the DAG's file wants names alone, and is read every few seconds

        return VariantSpec(
            name=self.name,
            why=self.why,
            written=self.written,
            declared=self.declared,
            rewritten=self.rewritten,
            cache=self.cache.where if self.cache else None,
            builtin=all(
                type(step).__module__ == Decode.__module__ and getattr(step, "parallel", None) in (None, AUTO)
                for step in self.steps
            ),
            spec=self._spec_text(),
        )

    def _spec_text(self) -> str:
        text = " > ".join(repr(step) for step in self.steps) + (" (rewritten)" if self.rewritten else "")
        return re.sub(r" at 0x[0-9a-f]+", "", text)  # a user's function must not look new every night


def check_name(name: str) -> None:
    """Raise SettingsError for what can be no folder, or is the ceiling's."""
    if not isinstance(name, str) or not name.isidentifier() or len(name) > _NAME_LENGTH or name == CEILING:
        raise SettingsError(
            f"variant name {name!r}: at most {_NAME_LENGTH} letters, digits and _ only, and not {CEILING!r}"
        )


def check_types(variant: Variant) -> None:
    """Raise SettingsError for what Python lets pass: a variant of a user's own is used an hour after it was defined."""
    for text in ("why", "title"):
        if not isinstance(value := getattr(variant, text), str):
            raise SettingsError(f"variant {variant.name!r}: {text}={value!r} is no text")
    if not isinstance(variant.steps, tuple | list):
        raise SettingsError(f"variant {variant.name!r}: steps={variant.steps!r} is no tuple of steps")
    for step in variant.steps:
        if not _is_step(step):
            raise SettingsError(
                f"variant {variant.name!r}: {step!r} is no step: a frozen dataclass that takes a dataset, with a tuple "
                "of texts as `operators` and, if at all, a number as `rank` and True or False as `is_source`"
            )


def _is_step(step: Any) -> bool:
    operators = getattr(step, "operators", None)
    return (
        is_dataclass(step)
        and callable(step)
        and isinstance(operators, tuple | list)
        and all(isinstance(operator, str) for operator in operators)
        and isinstance(getattr(step, "rank", 0), int | float)
        and isinstance(_is_source(step), bool)
    )


def _is_source(step: Step) -> bool:
    return getattr(step, "is_source", False)


_ORDER = {Cache: "cache", Shuffle: "shuffle", Repeat: "repeat", Batch: "batch", Prefetch: "prefetch"}
_REASONS = {
    ("shuffle", "cache"): "a cache after shuffle keeps one order for ever",
    ("repeat", "cache"): "a cache after repeat never sees the end of the data and never fills",
    ("batch", "cache"): "a cache after batch keeps the same photos together in every pass",
    ("prefetch", "cache"): "the buffer would run before the cache and be of no use after it",
    ("repeat", "shuffle"): "shuffle after repeat blurs the passes: some photos come twice, some not at all",
    ("batch", "shuffle"): "shuffle after batch moves whole batches, not photos",
    ("batch", "repeat"): "repeat after batch cuts every pass short by its last, partial batch",
}


def check_order(name: str, steps: Sequence[Step]) -> None:
    """Raise SettingsError unless cache < shuffle < repeat < batch < prefetch, with one repeat and one batch.

    Steps without a `rank` (decode, cast, a user's own) may stand anywhere.
    """
    ranked = [step for step in steps if hasattr(step, "rank")]
    for first, then in itertools.pairwise(ranked):
        if first.rank >= then.rank:
            earlier, later = (_ORDER.get(type(step), type(step).__name__) for step in (first, then))
            reason = _REASONS.get((earlier, later), f"{later} comes before {earlier}, once")
            raise SettingsError(f"variant {name!r}: {later} stands after {earlier}: {reason}")
    for kind in (Repeat, Batch):
        if sum(isinstance(step, kind) for step in steps) != 1:
            raise SettingsError(f"variant {name!r}: needs {_ORDER[kind]} exactly once")


def check_source(name: str, steps: Sequence[Step]) -> None:
    """Raise SettingsError for a source of its own that does not stand first."""
    for before, step in itertools.pairwise(steps):
        if _is_source(step):
            raise SettingsError(
                f"variant {name!r}: {type(step).__name__} is a source, but stands after {type(before).__name__}, of "
                "which nothing would run; let it stand first"
            )


VARIANTS: tuple[Variant, ...] = (
    Variant(
        BASELINE,
        steps=(Decode(), Shuffle(), Repeat(), Batch()),
        why="the baseline: read, decode and resize one photo after the other, then train",
    ),
    Variant(
        "prefetch",
        steps=(Decode(), Shuffle(), Repeat(), Batch(), Prefetch(AUTO)),
        why="overlap preprocessing with the train step",
    ),
    Variant(
        "parallel_map",
        steps=(Decode(parallel=AUTO), Shuffle(), Repeat(), Batch()),
        why="decode several photos at once",
    ),
    Variant(
        "cache_memory",
        steps=(Decode(), Cache(), Shuffle(), Repeat(), Batch()),
        why="decode once, then read decoded photos from memory",
        title="cache in memory",
    ),
    Variant(
        "cache_file",
        steps=(Decode(), Cache("file"), Shuffle(), Repeat(), Batch()),
        why="decode once, then read decoded photos from local disk",
        title="cache on file",
    ),
    Variant(
        "parallel_map_prefetch",
        steps=(Decode(parallel=AUTO), Shuffle(), Repeat(), Batch(), Prefetch(AUTO)),
        why="decode several photos at once, while the model trains",
        title="parallel map + prefetch",
    ),
    Variant(
        "cache_memory_prefetch",
        steps=(Decode(), Cache(), Shuffle(), Repeat(), Batch(), Prefetch(AUTO)),
        why="decode once, then batch from memory while the model trains",
        title="cache in memory + prefetch",
    ),
    Variant(
        "combined",
        steps=(Decode(parallel=AUTO), Cache(), Shuffle(), Repeat(), Batch(), Prefetch(AUTO)),
        why="parallel map to fill faster, memory cache, prefetch",
        title="combined (parallel map, memory cache, prefetch)",
    ),
    Variant(
        "uint8_cache",
        steps=(
            Decode(parallel=AUTO, dtype="uint8"),
            Cache(),
            Shuffle(),
            Repeat(),
            Batch(),
            ToFloat(parallel=AUTO),
            Prefetch(AUTO),
        ),
        why="combined, with photos cached as bytes: a quarter of the memory, a cast in every step",
        title="combined, cached as uint8",
    ),
    Variant(
        "tf_default",
        steps=(Decode(), Shuffle(), Repeat(), Batch()),
        why="the naive code with TensorFlow's own rewriting left on",
        title="naive, rewritten by TensorFlow",
        rewritten=True,
    ),
)


def available(modules: Iterable[str] = ()) -> dict[str, Variant]:
    """All variants by name: the built-in ones, then those of the user's modules.

    Raises SettingsError for a module that cannot be imported, has no VARIANTS or takes a name twice.
    """
    found = {variant.name: variant for variant in VARIANTS}
    for module in modules:
        for variant in _defined_in(module):
            if variant.name in found or variant.name == A_A_TWIN:
                raise SettingsError(f"variant_modules={module}: a variant {variant.name!r} exists already; rename it")
            found[variant.name] = variant
    return found


def chosen(names: Sequence[str], modules: Iterable[str] = (), *, a_a: bool = False) -> tuple[Variant, ...]:
    """The variants to run, baseline first; no names means all. Raises SettingsError for an unknown name.

    `a_a` adds the baseline once more under a second name.
    """
    known = available(modules)
    for name in names:
        if name not in known:
            raise SettingsError(f"variants={name}: no such variant{nearest(name, known)}")
    wanted = [BASELINE, *(name for name in (names or known) if name != BASELINE)]
    picked = [known[name] for name in wanted]
    if a_a:
        picked.append(Variant(A_A_TWIN, known[BASELINE].steps, why="the baseline again: how far two equals differ"))
    return tuple(picked)


def _defined_in(module: str) -> Sequence[Variant]:
    try:
        variants = getattr(importlib.import_module(module), "VARIANTS", None)
        if not isinstance(variants, tuple | list) or not all(isinstance(each, Variant) for each in variants):
            raise SettingsError("has no tuple VARIANTS of feedbench.pipelines.variants.Variant")
        for variant in variants:
            variant.spec()  # a step that cannot be told to people is found out now, not after the download
    except SettingsError as error:
        raise SettingsError(f"variant_modules={module}: {error}") from error
    except ModuleNotFoundError as error:
        raise SettingsError(f"variant_modules={module}: cannot be imported ({error}); is it on PYTHONPATH?") from error
    except (Exception, SystemExit) as error:  # a user's code runs here, and may raise anything
        said = str(error).splitlines()[:1]
        reason = ": ".join([type(error).__name__, *said])
        raise SettingsError(f"variant_modules={module}: cannot be used ({reason}); mend it") from error
    return variants
