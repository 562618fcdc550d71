"""The real download code against a real server on this machine, in all its moods."""

import hashlib
import random

import pytest

from feedbench.dataset.download import Expected, Patience, current_version, download, shown
from feedbench.errors import InputError

CONTENT = random.Random(0).randbytes(300_000)
QUICK = Patience(stall_s=0.25, tries=3, first_wait_s=0.01, longest_wait_s=0.02)


def digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


WHOLE = Expected(len(CONTENT), digest(CONTENT))


@pytest.fixture
def target(tmp_path):
    return tmp_path / "new" / "flowers.tgz"


@pytest.fixture(autouse=True)
def _serve(site):
    site.content = CONTENT


def test_a_file_arrives_whole_with_the_name_of_its_version(site, target, silent):
    assert download(site.address, target, silent, WHOLE, QUICK) == {"ETag": '"v1"'}
    assert target.read_bytes() == CONTENT
    assert not target.with_name("flowers.tgz.part").exists()


@pytest.mark.parametrize("expected", [WHOLE, Expected()], ids=["digest published", "nothing published"])
@pytest.mark.parametrize(
    "moods",
    [
        ["truncate"],
        ["truncate", "truncate", "truncate", "truncate", "truncate"],
        ["stall"],
        ["500"],
        ["503", "429"],
        ["truncate", "wrong part"],
        ["truncate", "ignore range"],
        ["truncate", "500", "truncate", "stall"],
    ],
    ids=" then ".join,
)
def test_a_server_in_a_bad_mood_delays_but_never_corrupts(site, target, silent, moods, expected):
    site.misbehave = list(moods)
    download(site.address, target, silent, expected, QUICK)
    assert target.read_bytes() == CONTENT


def test_a_length_that_is_not_delivered_only_delays(site, target, silent):
    """The server claims 301,000 bytes once and sends 300,000."""
    site.misbehave = ["claim more"]
    download(site.address, target, silent, Expected(digest=digest(CONTENT)), QUICK)
    assert target.read_bytes() == CONTENT


def test_a_broken_download_goes_on_where_it_broke_off(site, target, silent):
    site.misbehave = ["truncate"]
    download(site.address, target, silent, WHOLE, QUICK)
    assert site.ranges == [None, f"bytes={len(CONTENT) // 2}-"]


def test_what_has_arrived_is_kept_for_the_next_call(site, target, silent):
    site.misbehave = ["truncate", "404"]
    with pytest.raises(InputError, match="404"):
        download(site.address, target, silent, WHOLE, QUICK)
    download(site.address, target, silent, WHOLE, QUICK)
    assert site.ranges[-1] == f"bytes={len(CONTENT) // 2}-"
    assert target.read_bytes() == CONTENT


@pytest.mark.parametrize("tagged", [True, False], ids=["named", "unnamed"])
def test_a_file_that_changes_between_two_tries_is_never_a_mixture(site, target, silent, tagged):
    """With an ETag If-Range finds out; without any name of the version the start is thrown away."""
    site.tag = '"v1"' if tagged else None
    site.misbehave = ["truncate", "404"]
    with pytest.raises(InputError):
        download(site.address, target, silent, Expected(), QUICK)
    site.content, site.tag = CONTENT[::-1], '"v2"' if tagged else None
    download(site.address, target, silent, Expected(), QUICK)
    assert target.read_bytes() == CONTENT[::-1]


def test_a_part_longer_than_the_file_is_thrown_away(site, target, silent):
    target.parent.mkdir()
    target.with_name("flowers.tgz.part").write_bytes(CONTENT + b"more")
    download(site.address, target, silent, WHOLE, QUICK)
    assert target.read_bytes() == CONTENT


def test_a_whole_part_whose_rename_was_missed_is_not_fetched_again(site, target, silent):
    target.parent.mkdir()
    target.with_name("flowers.tgz.part").write_bytes(CONTENT)
    download(site.address, target, silent, WHOLE, QUICK)
    assert site.ranges == []


def test_a_part_that_was_damaged_is_found_out_by_the_digest(site, target, silent):
    target.parent.mkdir()
    target.with_name("flowers.tgz.part").write_bytes(b"x" * 1000)
    download(site.address, target, silent, WHOLE, QUICK)
    assert site.ranges == ["bytes=1000-", None]
    assert target.read_bytes() == CONTENT


@pytest.mark.parametrize("code", [401, 403, 404, 410])
def test_a_refusal_is_not_asked_again(site, target, silent, code):
    site.misbehave = [str(code)] * 5
    with pytest.raises(InputError, match=f"{site.address}: the server answers {code}"):
        download(site.address, target, silent, WHOLE, QUICK)
    assert len(site.ranges) == 1


@pytest.mark.parametrize(
    ("mood", "reason"),
    [("500", "500 Internal Server Error"), ("claim more", "closed connection"), ("stall", "nothing came for 0.25 s")],
)
def test_patience_ends_with_the_cause_and_the_number_of_tries(site, target, silent, mood, reason):
    site.misbehave = [mood] * 20
    site.tag = None  # so that each try begins anew and none gets further
    with pytest.raises(InputError, match=f"{reason}.*3 tries"):
        download(site.address, target, silent, Expected(), QUICK)
    assert not target.exists()


def test_another_size_than_published_is_said_at_once(site, target, silent):
    with pytest.raises(InputError, match="300,000 bytes, not the 299,999 that are published"):
        download(site.address, target, silent, Expected(299_999), QUICK)
    assert len(site.ranges) == 1


def test_another_content_than_published_never_gets_its_name(site, target, silent):
    with pytest.raises(InputError, match=r"not 0+ as published"):
        download(site.address, target, silent, Expected(len(CONTENT), "sha256:" + "0" * 64), QUICK)
    assert list(target.parent.iterdir()) == []


def test_a_file_that_the_disk_has_no_room_for_is_not_begun(site, target, silent, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 1000}))
    with pytest.raises(InputError, match=r"needed for flowers\.tgz"):
        download(site.address, target, silent, WHOLE, QUICK)
    assert not target.with_name("flowers.tgz.part").exists()


def test_no_server_is_an_input_error(target, silent):
    with pytest.raises(InputError, match="3 tries"):
        download("http://127.0.0.1:9/flowers.tgz", target, silent, WHOLE, QUICK)


def test_secrets_in_an_address_stay_out_of_messages():
    assert shown("https://me:pw@example.org/a.tgz?token=1#x") == "https://example.org/a.tgz"


def test_the_current_version_is_asked_for_without_fetching(site):
    assert current_version(site.address) == {"ETag": '"v1"'}
    assert current_version("http://127.0.0.1:9/x.tgz") == {}
    assert site.ranges == []
