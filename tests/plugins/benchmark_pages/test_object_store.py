"""The list and the files over S3's own protocol: the same as over a folder, in a number of requests that is bounded."""

import logging

import pytest

from benchmark_pages.listing import PAGE_SIZE, runs_page
from feedbench.store import Store
from planted.run_folders import FINISHED, INSIDE, PROFILE, finish, plan


class Counter(logging.Handler):
    """Requests that the S3 server has answered, one log line each."""

    def __init__(self):
        super().__init__()
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())


@pytest.fixture
def requests():
    counter, logger = Counter(), logging.getLogger("werkzeug")
    level = logger.level
    logger.addHandler(counter)
    logger.setLevel(logging.INFO)
    yield counter.lines
    logger.removeHandler(counter)
    logger.setLevel(level)


def test_the_list_is_that_of_a_folder(bucket, store):
    """A finished run and a planned one, here and there: equal rows, and an empty bucket is an empty list."""
    assert runs_page(bucket, {}, 1).rows == ()
    for where in (bucket, store):
        finish(where, FINISHED)
        plan(where, "manual__2026-03-05T09:00:00+00:00")
    assert runs_page(bucket, {}, 1) == runs_page(store, {}, 1)


def test_another_processes_run_is_seen_at_once(bucket):
    """No listing is remembered: a run written after the first look is there at the second."""
    finish(bucket, FINISHED)
    assert len(runs_page(Store(str(bucket.root)), {}, 1).rows) == 1
    plan(bucket, "manual__2026-03-05T09:00:00+00:00")
    assert len(runs_page(Store(str(bucket.root)), {}, 1).rows) == 2


def test_a_page_costs_a_listing_and_its_own_runs(bucket, requests):
    """120 runs of many files each: two requests a row at most, beside the listing."""
    summary = finish(bucket, FINISHED).read_summary()
    for night in range(120):
        folder = bucket.run(f"cli__{2000 + night}-01-01T00:00:00")
        folder.write_summary(summary)
        folder.report_md.write_bytes(b"not for this page")
    requests.clear()
    assert len(runs_page(bucket, {}, 2).rows) == PAGE_SIZE
    assert 0 < len(requests) <= 2 * PAGE_SIZE + 3


def test_files_are_listed_at_once_and_read_whole(bucket, store, requests):
    """The same names and sizes as in a folder; one listing."""
    here, there = finish(store, FINISHED), finish(bucket, FINISHED)
    requests.clear()
    assert there.files() == here.files()
    assert len(requests) <= 2
    assert (there.path / PROFILE).read_bytes() == INSIDE * 10_000
