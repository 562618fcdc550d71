"""What the list of runs says, without Airflow: order, paging, states, and files that nobody should have written."""

import json
from datetime import UTC, datetime
from html.parser import HTMLParser

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmark_pages.listing import PAGE_SIZE, Known, began, run_row, runs_page
from feedbench.store import Store
from planted.run_folders import FINISHED, finish, plan

Request = pytest.importorskip("fastapi").Request
page = pytest.importorskip("benchmark_pages.pages").page
bounded = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
EVIL = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&{{ 7*7 }}\u202egpj.exe"


def nights(store, count):
    """Folders with run.json only, one for each night of a month, month after month; oldest first."""
    ids = [f"scheduled__{2000 + n // 336}-{n // 28 % 12 + 1:02d}-{n % 28 + 1:02d}T02:30:00+00:00" for n in range(count)]
    for run_id in ids:
        (store.root / "runs" / run_id).mkdir(parents=True)
    return ids


def draw(it):
    request = Request({"type": "http", "root_path": "/benchmark", "headers": []})
    return page(request, "runs.html.j2", it=it, dag_id="input_pipeline_benchmark").body.decode()


# ---- order and paging --------------------------------------------------------------------------------------------


def test_pages_together_hold_every_run_once_newest_first(store):
    """120 nights on pages of 50: 50, 50 and 20, in the order of their dates backwards."""
    ids = nights(store, 120)
    pages = [runs_page(store, {}, number) for number in (1, 2, 3)]
    assert [len(it.rows) for it in pages] == [50, 50, 20]
    assert [row.run_id for it in pages for row in it.rows] == ids[::-1]
    assert (pages[2].first, pages[2].pages, pages[2].runs) == (101, 3, 120)


def test_a_page_past_the_end_is_the_last_one(store):
    nights(store, 60)
    assert runs_page(store, {}, 99) == runs_page(store, {}, 2)


def test_no_runs_is_a_page_that_says_so(store):
    assert "No run yet" in draw(runs_page(store, {}, 1))


@pytest.mark.parametrize(
    ("run_id", "when"),
    [
        ("scheduled__2026-03-04T02:30:00+00:00", datetime(2026, 3, 4, 2, 30, tzinfo=UTC)),
        ("manual__2026-03-04T04:30:00.123456+02:00", datetime(2026, 3, 4, 2, 30, 0, 123456, tzinfo=UTC)),
        ("cli__2026-03-04T02:30:00.5", datetime(2026, 3, 4, 2, 30, 0, 500000, tzinfo=UTC)),
        ("scheduled__2026-02-31T02:30:00+00:00", datetime.min.replace(tzinfo=UTC)),
        ("my_run", datetime.min.replace(tzinfo=UTC)),
    ],
)
def test_a_run_tells_its_time_by_its_name(run_id, when):
    assert began(run_id, {}) == when


def test_what_airflow_knows_goes_before_the_name(store):
    """A run named by hand stands where Airflow started it: between the nights of the 3rd and the 4th."""
    for run_id in ("scheduled__2026-03-03T02:30:00+00:00", "scheduled__2026-03-04T02:30:00+00:00", "my_run"):
        plan(store, run_id)
    known = {"my_run": Known("success", datetime(2026, 3, 3, 12, tzinfo=UTC))}
    assert [row.run_id for row in runs_page(store, known, 1).rows][1] == "my_run"


def test_one_page_reads_its_own_runs_only(store, monkeypatch):
    """Of 500 finished runs 50 are read, one small file each; their comparisons would show as broken."""
    ids = nights(store, 500)
    summary = finish(store, ids[0]).read_summary()
    for run_id in ids:
        store.run(run_id).write_summary(summary)
        (store.run(run_id).path / "comparison.json").write_bytes(b"not for this page")
    read = []
    monkeypatch.setattr("feedbench.store.read", lambda path, kind: read.append(path) or summary)
    rows = runs_page(store, {}, 3).rows
    assert {row.state for row in rows} == {"2 of 7 variants without result"}
    assert {path.name for path in read} == {"summary.json"}
    assert len(read) == len(rows) == PAGE_SIZE


# ---- states ------------------------------------------------------------------------------------------------------


def row_of(store, run_id, state=None):
    known = {run_id: Known(state, datetime(2026, 3, 4, tzinfo=UTC))} if state else {}
    there = run_id in store.run_ids()
    return run_row(store.run(run_id) if there else None, run_id, known)


def test_a_finished_run_says_what_to_ship_and_on_what(store):
    """The builders' run: prefetch first of four that cannot be told apart, an emulated step of 45 ms, two failures."""
    finish(store, FINISHED)
    row = row_of(store, FINISHED, "success")
    assert row.verdict.startswith("Ship prefetch: 1.43×")
    assert (row.fastest, row.fastest_detail) == ("prefetch", "and 3 not distinguishable")
    assert row.accelerator == "emulated, 45.0 ms a step"
    assert (row.machine, row.machine_detail) == ("worker-1", "Intel Xeon Platinum 8370C, 2 cores")
    assert (row.state, row.tone, row.has_report) == ("2 of 7 variants without result", "bad", True)


def test_a_run_from_before_there_were_summaries_is_read_from_its_comparison(store):
    folder = finish(store, FINISHED)
    with_summary = row_of(store, FINISHED)
    (folder.path / "summary.json").unlink()
    assert row_of(store, FINISHED) == with_summary


@pytest.mark.parametrize(
    ("state", "says"),
    [
        ("queued", "queued"),
        ("running", "running"),
        ("failed", "no report: the run ended without one"),
        (None, "no report yet"),
    ],
)
def test_a_run_without_a_report_says_how_it_stands(store, state, says):
    plan(store, FINISHED)
    row = row_of(store, FINISHED, state)
    assert (row.state, row.has_report) == (says, False)
    assert row.verdict == "7 variants, 21 trials planned"


@pytest.mark.parametrize("name", ["summary.json", "comparison.json", "run.json"])
@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 100_000, b'{"run_id": 1}', b'{"verdict": NaN}']
)
def test_a_broken_file_is_called_broken_and_no_path_is_told(store, name, content):
    folder = finish(store, FINISHED)
    for later in ("summary.json", "comparison.json", "run.json"):
        (folder.path / later).unlink()
        if later == name:
            break
    (folder.path / name).write_bytes(content)
    row = row_of(store, FINISHED, "success")
    assert (row.state, row.tone) == ("broken file", "bad")
    assert row.verdict.startswith(name)
    assert str(store.root) not in row.verdict


def test_a_folder_or_a_link_in_place_of_a_file_is_broken_too(store, tmp_path):
    summary = finish(store, FINISHED).path / "summary.json"
    summary.rename(tmp_path / "summary.json")
    summary.symlink_to(tmp_path / "summary.json")
    assert row_of(store, FINISHED).verdict == "summary.json: a link; put what it points to in its place"
    summary.unlink()
    summary.mkdir()
    assert row_of(store, FINISHED).verdict == "summary.json: not a file"


# ---- hostile contents --------------------------------------------------------------------------------------------

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just(EVIL),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
FIELDS = ("schema_version", "run_id", "created_at", "verdict", "fastest", "accelerator", "machine", "variants")


class Tags(HTMLParser):
    """The elements of a page, and whether any of them would do something by itself."""

    def __init__(self, html):
        super().__init__()
        self.names, self.handlers = [], []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.names.append(tag)
        self.handlers += [name for name, value in attributes if name.startswith("on") or "script:" in (value or "")]


@bounded
@given(changes=st.dictionaries(st.sampled_from(FIELDS), json_values, max_size=3))
def test_no_summary_breaks_the_page(store, changes):
    """A right summary with some values replaced by anything: a row or a broken file, and a page that is only text."""
    file = store.run(FINISHED).path / "summary.json"
    right = file.with_suffix(".right")
    if not right.exists():
        finish(store, FINISHED)
        right.write_bytes(file.read_bytes())
    file.write_text(json.dumps(json.loads(right.read_bytes()) | changes))
    html = draw(runs_page(store, {}, 1))
    tags = Tags(html)
    assert FINISHED in html
    assert {"script", "img", "iframe", "form", "object"}.isdisjoint(tags.names)
    assert tags.handlers == []


def test_hostile_words_stand_there_as_words(store):
    finish(store, FINISHED, verdict=EVIL, fastest=(EVIL,))
    html = draw(runs_page(store, {}, 1))
    assert html.count("&lt;script&gt;alert(1)&lt;/script&gt;") == 2
    assert "<script" not in html
    assert "{{ 7*7 }}" in html


@bounded
@given(name=st.text(st.characters(exclude_characters="/\0", exclude_categories=("Cs",)), min_size=1, max_size=60))
def test_only_plain_names_are_runs(tmp_path_factory, name):
    """Any folder name that a file system takes: listed and drawn when it is a run id, passed over when not."""
    store = Store(tmp_path_factory.mktemp("artifacts"))
    if name in (".", "..") or len(name.encode()) > 255:
        return
    (store.root / "runs" / name).mkdir(parents=True)
    it = runs_page(store, {}, 1)
    assert [row.run_id for row in it.rows] == ([name] if name.isascii() and _plain(name) else [])
    assert {"script", "img"}.isdisjoint(Tags(draw(it)).names)


def _plain(name):
    return all(letter.isalnum() or letter in "_.~:+-" for letter in name) and name[0] not in ".:+-"
