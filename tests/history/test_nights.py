"""The nights of a store: derived from its runs, kept, and made anew when they are not what they should be."""

import json
import re
import shutil
import time
from pathlib import Path

import pytest
from upath import UPath

from feedbench.cli import main
from feedbench.history.nights import History, night_of
from feedbench.records import SCHEMA_VERSION
from feedbench.store import RunFolder, Store

GOLDEN = Path(__file__).parents[1] / "golden"
RUN_V1 = GOLDEN / "run_v1"
"""A run of 300 synthetic photos as schema version 1 wrote it; run_v2 is one of 300 real photos, of version 2."""


@pytest.fixture
def store(tmp_path):
    shutil.copytree(RUN_V1, tmp_path / "runs" / "run_v1")
    return Store(tmp_path)


def copy_of(store, run_id, created_at, **step_factors):
    """The golden run again under another id and date, with other step times."""
    folder = store.run(run_id)
    shutil.copytree(RUN_V1, folder.path)
    run, comparison = folder.read_run(), folder.read_comparison()
    changed = [
        v.model_copy(update={"step_time_ms": v.step_time_ms.model_copy(update={"mean": v.step_time_ms.mean * factor})})
        for v in comparison.variants
        for factor in [step_factors.get(v.name, 1)]
    ]
    folder.write_run(run.model_copy(update={"run_id": run_id, "created_at": created_at}))
    folder.write_comparison(comparison.model_copy(update={"run_id": run_id, "variants": tuple(changed)}))


def test_a_run_of_an_older_schema_is_a_night_like_any_other(store):
    (night,) = History(store).nights
    assert night.run_id == "run_v1"
    assert set(night.results) == {"naive", "prefetch", "parallel_map", "cache_memory", "parallel_map_prefetch"}
    naive = night.results["naive"]
    assert 0 < naive.error < 1
    assert [stage.operator for stage in naive.stages][:2] == ["TensorSlice", "Map"]


@pytest.mark.parametrize("version", range(1, SCHEMA_VERSION))
def test_a_run_of_each_older_schema_stands_in_the_trend(tmp_path, version, capsys):
    shutil.copytree(GOLDEN / f"run_v{version}", tmp_path / "runs" / f"run_v{version}")
    assert main(["history", "--variant", "naive", "--out", str(tmp_path)]) == 0
    assert f"run_v{version}" in capsys.readouterr().out


@pytest.mark.parametrize("version", range(1, SCHEMA_VERSION))
def test_all_documents_of_each_older_schema_are_read_as_todays(version):
    folder = RunFolder(UPath(GOLDEN / f"run_v{version}"))
    for document in (folder.read_run(), folder.read_comparison(), folder.read_summary()):
        assert document.schema_version == SCHEMA_VERSION
    assert folder.read_comparison().machine is None
    assert folder.read_summary().machine.cores == 2


def test_the_file_of_nights_is_made_anew_when_it_is_gone_or_broken(store):
    nights = History(store).nights
    History(store).add(nights[0])
    kept = store.history.read_bytes()
    for broken in (b"", b"{\n", b'{"schema_version": 99}\n', kept[:50]):
        store.history.write_bytes(broken)
        assert History(store).nights == nights
        History(store).add(nights[0])
        assert store.history.read_bytes() == kept
    store.history.unlink()
    assert History(store).nights == nights


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        (rb'"results":\{.*', b'"results":5}'),
        (rb'"results":\{.*', b'"results":{"naive":{"series":null}}}'),
        (rb'"ceiling_ms":[^,]+', b'"ceiling_ms":1e999'),
        (rb'"ceiling_ms":[^,]+', b'"surprise":2'),
        (rb'"step_time_ms":[^,]+', b'"step_time_ms":0'),
        (rb'"error":[^,]+', b'"error":1e308'),
        (rb'"run_id":"run_v1"', b'"run_id":"\xff"'),
        (rb'"created_at":"[^"]+"', b'"created_at":""'),
    ],
)
def test_a_line_that_is_no_night_is_made_anew_from_its_run(store, was, becomes):
    nights = History(store).nights
    History(store).add(nights[0])
    kept = store.history.read_bytes()
    store.history.write_bytes(re.sub(was, becomes, kept))
    assert store.history.read_bytes() != kept
    series = nights[0].results["naive"].series
    if series.encode() in store.history.read_bytes():
        assert [night.run_id for night in History(store).of_series(series)] == ["run_v1"]
    assert History(store).nights == nights
    history = History(store)
    history.add(history.nights[0])
    assert store.history.read_bytes() == kept


def test_without_a_readable_file_of_nights_they_come_from_their_runs(store):
    nights = History(store).nights
    store.history.mkdir()
    assert History(store).nights == nights


@pytest.mark.parametrize(
    ("file", "was", "becomes"),
    [
        ("run.json", r'"run_id": "[^"]+"', '"run_id": ""'),
        ("run.json", r'"run_id": "[^"]+"', '"run_id": "of_another"'),
        ("run.json", r'"created_at": "[^"]+"', '"created_at": "\\""'),
        ("comparison.json", r'"mean": [^,]+', '"mean": 0'),
        ("comparison.json", r'"ci_low": [^,]+', '"ci_low": -1e308'),
    ],
)
def test_a_run_with_impossible_contents_or_copied_from_another_is_no_night(store, file, was, becomes):
    copy_of(store, "bad", "2026-12-24T02:30:00+00:00")
    document = store.run("bad").path / file
    document.write_text(re.sub(was, becomes, document.read_text()))
    assert [night.run_id for night in History(store).nights] == ["run_v1"]


def test_a_run_that_was_removed_drops_out_and_an_unfinished_one_is_no_night(store):
    copy_of(store, "later", "2026-12-24T02:30:00+00:00")
    (store.run("going_on").path).mkdir()
    assert [night.run_id for night in History(store).nights] == ["run_v1", "later"]
    shutil.rmtree(store.run("run_v1").path)
    assert [night.run_id for night in History(store).nights] == ["later"]


@pytest.mark.parametrize(
    ("setting", "value", "same"),
    [
        ("batch_size", 16, False),
        ("image_size", 64, False),
        ("seed", 5, False),
        ("rounds", 9, True),
        ("max_regression", 1, True),
    ],
)
def test_settings_that_decide_a_step_time_divide_series_and_others_do_not(store, setting, value, same):
    folder = store.run("run_v1")
    run, comparison = folder.read_run(), folder.read_comparison()
    other = run.model_copy(update={"settings": run.settings.model_copy(update={setting: value})})
    one, two = (night_of(r, comparison).results["naive"].series for r in (run, other))
    assert (one == two) is same


def test_machines_methods_data_and_specs_never_mix(store):
    folder = store.run("run_v1")
    run, comparison = folder.read_run(), folder.read_comparison()
    spec = run.variants[0].model_copy(update={"spec": "other steps"})
    others = [
        run.model_copy(update={"machine": run.machine.model_copy(update={"machine_class": "other"})}),
        run.model_copy(update={"method_version": 99}),
        run.model_copy(update={"data": run.data.model_copy(update={"fingerprint": "other"})}),
        run.model_copy(update={"variants": (spec, *run.variants[1:])}),
    ]
    name = run.variants[0].name
    keys = {night_of(r, comparison).results[name].series for r in (run, *others)}
    assert len(keys) == 5


def test_failed_and_invalid_variants_are_no_results(store):
    folder = store.run("run_v1")
    comparison = folder.read_comparison()
    failed = comparison.variants[0].model_copy(update={"status": "failed"})
    night = night_of(folder.read_run(), comparison.model_copy(update={"variants": (failed, *comparison.variants[1:])}))
    assert failed.name not in night.results


def test_two_comparisons_at_once_lose_no_night(store):
    """Both have read the file before either writes, and it held an old line of the first run: both results are kept."""
    copy_of(store, "second", "2026-06-02T02:30:00+00:00")
    first, second = sorted(History(store).nights, key=lambda night: night.run_id == "second")
    History(store).add(first.model_copy(update={"results": {}}))  # as it was told while the run was going on
    one, other = History(store), History(store)
    one.add(first)
    other.add(second)
    assert {night.run_id: bool(night.results) for night in History(store).nights} == {"run_v1": True, "second": True}


def test_a_thousand_nights_are_read_from_one_file(store, monkeypatch):
    """No run's folder is opened for a night that is known: a night costs the same, however many there were."""
    (night,) = History(store).nights
    lines = [night.model_copy(update={"run_id": f"n{n:04}"}).model_dump_json() for n in range(1000)]
    store.history.write_bytes("\n".join(lines).encode())
    for n in range(1000):
        (store.root / "runs" / f"n{n:04}").mkdir()
    opened = []
    read = type(store.run("x")).read_run
    monkeypatch.setattr(
        "feedbench.store.RunFolder.read_run", lambda folder: opened.append(folder.run_id) or read(folder)
    )
    begin = time.perf_counter()
    assert len(History(store).nights) == 1001
    print(f"1,001 nights in {time.perf_counter() - begin:.2f} s")
    assert opened == ["run_v1"]


def test_the_nights_of_one_series_have_its_result_alone(store):
    """The golden run, the same again, and one with another batch size, which is another series."""
    copy_of(store, "later", "2026-12-24T02:30:00+00:00")
    copy_of(store, "other", "2026-12-25T02:30:00+00:00")
    run = store.run("other").read_run()
    other = run.model_copy(update={"settings": run.settings.model_copy(update={"batch_size": 16})})
    store.run("other").write_run(other)
    history = History(store)
    series = history.nights[0].results["prefetch"].series
    found = history.of_series(series)
    assert [(night.run_id, list(night.results)) for night in found] == [
        ("run_v1", ["prefetch"]),
        ("later", ["prefetch"]),
    ]
    assert found[0].results["prefetch"] == history.nights[0].results["prefetch"]
    assert history.of_series("prefetch") == []


def test_two_runs_side_by_side_say_what_differs(store, capsys):
    copy_of(store, "later", "2026-12-24T02:30:00+00:00", naive=1.5)
    assert main(["compare", "run_v1", "later", "--out", str(store.root), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    (naive,) = [row for row in found["variants"] if row["variant"] == "naive"]
    assert naive["change"] == pytest.approx(0.5)
    assert naive["ci_low"] < 0.5 < naive["ci_high"]
    assert found["around"] == []


def test_runs_that_measured_other_things_are_compared_with_a_word_about_it(store, capsys):
    copy_of(store, "second", "2026-06-02T02:30:00+00:00")
    run = store.run("second").read_run()
    other = run.settings.model_copy(update={"batch_size": 8})
    store.run("second").write_run(run.model_copy(update={"settings": other}))
    assert main(["compare", "run_v1", "second", "--out", str(store.root)]) == 0
    assert capsys.readouterr().out.startswith("not the same thing measured: batch size 32 → 8")


def test_pin_tells_json(store, capsys):
    assert main(["pin", "run_v1", "--json", "--out", str(store.root)]) == 0
    assert json.loads(capsys.readouterr().out) == {"run_id": "run_v1", "pinned": True}


def test_a_variant_that_no_run_has_is_named_with_the_nearest(store, capsys):
    assert main(["history", "--variant", "naiv", "--out", str(store.root)]) == 2
    assert "did you mean 'naive'" in capsys.readouterr().err
