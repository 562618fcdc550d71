"""Variants are compositions of steps, checked when they are defined."""

import dataclasses
import sys
import textwrap
from types import MappingProxyType
from typing import Any

import pytest

from feedbench.errors import SettingsError
from feedbench.pipelines.steps import AUTO, Batch, Cache, Decode, Prefetch, Repeat, Shuffle
from feedbench.pipelines.variants import VARIANTS, Variant, available, chosen

OWN_VARIANT = """
from feedbench.pipelines.steps import Batch, Repeat
from feedbench.pipelines.variants import Variant
class Told(Batch):
    def __repr__(self): return {repr}
VARIANTS = (Variant({name!r}, steps=(Repeat(), Told()), why=""),)
"""
GOOD = (Decode(), Cache(), Shuffle(), Repeat(), Batch(), Prefetch(AUTO))


def test_the_ten_variants_of_the_benchmark_are_there():
    assert [variant.name for variant in VARIANTS] == [
        "naive", "prefetch", "parallel_map", "cache_memory", "cache_file", "parallel_map_prefetch",
        "cache_memory_prefetch", "combined", "uint8_cache", "tf_default",
    ]  # fmt: skip


def test_only_tf_default_is_left_to_be_rewritten():
    assert [variant.name for variant in VARIANTS if variant.rewritten] == ["tf_default"]


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        (1, 2, "keeps one order for ever"),
        (1, 3, "shuffle after repeat|cache after repeat|never sees the end"),
        (2, 3, "blurs the passes"),
        (3, 4, "cuts every pass short"),
        (4, 5, "prefetch"),
    ],
)
def test_two_steps_in_the_wrong_order_are_refused_with_the_reason(first, second, why):
    """Each pair of neighbours of the one right order, swapped."""
    steps = list(GOOD)
    steps[first], steps[second] = steps[second], steps[first]
    with pytest.raises(SettingsError, match=why):
        Variant("swapped", steps=tuple(steps), why="")


@pytest.mark.parametrize("missing", [3, 4])
def test_repeat_and_batch_stand_exactly_once(missing):
    with pytest.raises(SettingsError, match="exactly once"):
        Variant("short", steps=tuple(s for i, s in enumerate(GOOD) if i != missing), why="")


@pytest.mark.parametrize("name", ["ceiling", "two words", "a/b", "../x", "", "x" * 61, 5])
def test_a_name_must_be_plain_and_not_the_ceilings(name):
    with pytest.raises(SettingsError, match="name"):
        Variant(name, steps=GOOD, why="")


@dataclasses.dataclass(frozen=True)
class Own:
    operators: Any = ("Map",)
    rank: Any = 0
    is_source: Any = False

    def __call__(self, dataset):
        return dataset


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"why": None}, "why=None is no text"),
        ({"steps": None}, "steps=None is no tuple"),
        ({"steps": (*GOOD, "Map")}, "'Map' is no step"),
        ({"steps": (Own(operators="Map"), *GOOD)}, "is no step"),
        ({"steps": (Own(operators=5), *GOOD)}, "is no step"),
        ({"steps": (Own(rank="x"), *GOOD)}, "is no step"),
        ({"steps": (Own(is_source="files"), *GOOD)}, "is no step"),
    ],
)
def test_what_is_of_a_wrong_type_is_refused_when_it_is_defined(changed, complaint):
    with pytest.raises(SettingsError, match=f"variant 'own': .*{complaint}"):
        Variant(**{"name": "own", "steps": GOOD, "why": ""} | changed)


@dataclasses.dataclass(frozen=True)
class FromGenerator:
    operators = ("Generator", "FlatMap")
    is_source = True

    def __call__(self, dataset):
        return dataset


def test_a_step_that_is_a_source_takes_the_place_of_the_photos_names():
    variant = Variant("own", steps=(FromGenerator(), *GOOD), why="")
    assert variant.written[:4] == ("Generator", "FlatMap", "Map", "MemoryCache")
    assert variant.declared[0] == "MemoryCache"


def test_a_source_stands_first_for_what_is_before_it_would_not_run():
    with pytest.raises(SettingsError, match="'own': FromGenerator is a source, but stands after Decode"):
        Variant("own", steps=(Decode(), FromGenerator(), Shuffle(), Repeat(), Batch()), why="")


def test_a_cache_is_in_memory_or_on_file():
    with pytest.raises(SettingsError, match=r"Cache\('disk'\): no such place"):
        Cache("disk")


def test_a_warm_cache_variant_declares_nothing_below_the_cache():
    variant = available()["cache_file"]
    assert variant.written[:3] == ("TensorSlice", "Map", "FileCache")
    assert variant.declared == ("FileCache", "Shuffle", "ForeverRepeat", "BatchV2")


def test_the_baseline_runs_first_and_always():
    assert [variant.name for variant in chosen(["prefetch"])] == ["naive", "prefetch"]


def test_an_a_a_pair_is_the_baseline_under_a_second_name():
    naive, twin = chosen(["naive"], a_a=True)
    assert twin.name != naive.name
    assert twin.steps == naive.steps


def test_an_unknown_variant_is_refused_with_the_nearest_name():
    with pytest.raises(SettingsError, match="prefetsch: no such variant; did you mean 'prefetch'"):
        chosen(["prefetsch"])


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Writes an importable module of a user's own."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(name: str, text: str) -> str:
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))
        sys.modules.pop(name, None)
        return name

    return write


def test_a_variant_comes_in_from_a_users_own_module(module):
    name = module(
        "my_pipelines",
        """
        from feedbench.pipelines.steps import Batch, Decode, Prefetch, Repeat, Shuffle
        from feedbench.pipelines.variants import Variant
        VARIANTS = (Variant("mine", steps=(Decode(4), Shuffle(), Repeat(), Batch(), Prefetch(2)), why="four at once"),)
        """,
    )
    mine = chosen(["mine"], [name])[-1]
    assert mine.written == ("TensorSlice", "ParallelMapV2", "Shuffle", "ForeverRepeat", "BatchV2", "Prefetch")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "has no tuple VARIANTS"),
        ("VARIANTS = ('prefetch',)", "has no tuple VARIANTS"),
        ("from feedbench.pipelines.variants import VARIANTS", "'naive' exists already"),
        ("import no_such_package", "cannot be imported .*is it on PYTHONPATH"),
        ("def", r"cannot be used \(SyntaxError: "),
        ("raise RuntimeError('one\\ntwo')", r"cannot be used \(RuntimeError: one\)"),
        ("import sys; sys.exit(3)", r"cannot be used \(SystemExit: 3\)"),
        (OWN_VARIANT.format(name="naive_again", repr="'own'"), "'naive_again' exists already"),
        (OWN_VARIANT.format(name="own", repr="1 / 0"), "ZeroDivisionError"),
    ],
)
def test_a_module_without_usable_variants_is_refused_by_name(module, text, complaint):
    with pytest.raises(SettingsError, match=f"variant_modules=broken_pipelines: .*{complaint}"):
        available([module("broken_pipelines", text)])


@pytest.mark.parametrize("name", ["..x", "."])
def test_what_can_be_no_modules_name_is_refused(name):
    with pytest.raises(SettingsError, match=f"variant_modules={name}: cannot be used"):
        available([name])


def test_equal_variants_have_equal_specs_whatever_the_memory_addresses():
    """History joins nights by the spec; a function's repr holds an address that changes every night."""

    class Own:
        operators = ("Map",)
        __dataclass_fields__ = MappingProxyType({})

        def __call__(self, dataset):
            return dataset

    specs = {Variant("own", steps=(Own(), Shuffle(), Repeat(), Batch()), why="").spec().spec for _ in range(3)}
    assert len(specs) == 1
