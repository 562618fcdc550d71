"""From the word in the settings to a verified local folder, whatever happens on the way."""

import io
import os
import random
import signal
import subprocess
import sys
import tarfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from feedbench.config import Settings
from feedbench.dataset import sources
from feedbench.dataset.folders import fingerprint, listing
from feedbench.dataset.sources import Fetched, check_source, expected_photos, fetch, localise
from feedbench.errors import InputError, SettingsError
from feedbench.store import Store

CHILD = """
import os, sys
from feedbench.config import Settings
from feedbench.dataset.sources import fetch
from feedbench.progress import Silent
from feedbench.store import Store
for _ in sys.stdin:  # each line starts a fetch in a process of its own, which has all imports behind it
    pid = os.fork()
    if not pid:
        print(fetch(Settings(source=sys.argv[1], photos=20), Store(sys.argv[2]), Silent()).fingerprint, flush=True)
        os._exit(0)
    print(pid, flush=True)
    if sys.argv[3] == "wait":
        os.waitpid(pid, 0)
while sys.argv[3] != "wait":
    try:
        os.wait()
    except ChildProcessError:
        break
"""


def packed(root: Path, wrapper: str = "flower_photos/") -> bytes:
    """A .tgz of a folder, with the folder that archives wrap around."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        tar.add(root, wrapper)
    return out.getvalue()


@pytest.fixture
def archive(make_folder, tmp_path) -> Path:
    file = tmp_path / "flowers.tgz"
    file.write_bytes(packed(make_folder(daisy=6, tulips=6)))
    return file


@contextmanager
def fetching(source: str, store: Store, mode: str) -> Iterator[subprocess.Popen]:
    """A process that starts a fetch for each line it reads, one after another or, unless `wait`, at once."""
    command = [sys.executable, "-c", CHILD, source, str(store.root), mode]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as child:
        yield child
        child.stdin.close()


def whole_data_sets(store: Store) -> list[str]:
    return [path.name for path in Path(store.datasets).iterdir() if not path.name.startswith(".")]


def left_behind(store: Store) -> list[str]:
    """What is in datasets/ besides whole data sets, notes and the lock."""
    work = Path(store.datasets) / ".work"
    return [path.name for path in work.iterdir()] if work.exists() else []


class TestWhatASourceMeans:
    @pytest.mark.parametrize(
        "source", ["synthetic", "flower_photos", "http://example.org/a.tgz", "https://example.org/a.ZIP?token=1"]
    )
    def test_names_and_addresses_are_known(self, source):
        check_source(source)

    def test_paths_are_known_when_they_exist(self, archive, tmp_path, monkeypatch):
        check_source(str(archive))
        check_source(str(tmp_path))
        monkeypatch.chdir(tmp_path)
        check_source("flowers.tgz")
        check_source("./photos")

    @pytest.mark.parametrize(
        ("source", "message"),
        [
            ("synthetik", "source='synthetik'.*did you mean 'synthetic'"),
            ("flowers_photo", "did you mean 'flower_photos'"),
            ("/no/such/folder", "source='/no/such/folder': no such file or folder"),
            ("s3://bucket/a.tgz", "only http:// and https://"),
            ("http://", "only http:// and https://"),
            ("https://example.org/photos.rar", r"no known kind of archive; use one of \.tgz"),
            ("https://example.org/", "no known kind of archive"),
            ("http://[::1/a.tgz", "no valid address"),
            ("a\0b", "no known name"),
            ("x" * 5000, "no known name"),
            ("~nobody-of-this-name/photos", "no such file or folder"),
            ("/dev/null", "source='/dev/null': neither a folder nor a file"),
        ],
    )
    def test_what_means_nothing_is_refused_with_what_would_be_right(self, source, message):
        with pytest.raises(SettingsError, match=message):
            check_source(source)

    def test_a_folder_without_photos_is_named_and_not_the_batch_size(self, tmp_path):
        with pytest.raises(SettingsError, match=f"source='{tmp_path}': no file in it looks like a photo"):
            expected_photos(Settings(source=str(tmp_path)))

    def test_a_file_that_is_no_archive_is_refused(self, tmp_path):
        (tmp_path / "photos.rar").write_bytes(b"x")
        with pytest.raises(SettingsError, match="no known kind of archive"):
            check_source(str(tmp_path / "photos.rar"))

    def test_secrets_in_an_address_are_not_printed(self):
        with pytest.raises(SettingsError) as error:
            check_source("https://me:secret@example.org/photos.rar?token=secret")
        assert "secret" not in str(error.value)

    def test_the_number_of_photos_is_told_where_it_can_be(self, make_folder, archive):
        assert expected_photos(Settings()) == 600
        assert expected_photos(Settings(photos=50)) == 50
        assert expected_photos(Settings(source="flower_photos")) == 3670
        assert expected_photos(Settings(source="flower_photos", photos=100)) == 100
        assert expected_photos(Settings(source=str(make_folder("more", a=30, b=7)))) == 37
        assert expected_photos(Settings(source=str(archive))) is None
        assert expected_photos(Settings(source="http://example.org/a.tgz")) is None


class TestEachKind:
    def test_a_folder_is_used_where_it_lies(self, make_folder, store, silent):
        root = make_folder(a=3, b=3)
        fetched = fetch(Settings(source=str(root)), store, silent)
        assert fetched == Fetched(fingerprint(root, silent), str(root))
        assert localise(store, fetched.path, silent) == root

    def test_a_folder_that_has_changed_is_fingerprinted_anew(self, make_folder, store, silent):
        root = make_folder(a=3, b=3)
        first = fetch(Settings(source=str(root)), store, silent)
        (root / "a/000.jpg").write_bytes((root / "a/001.jpg").read_bytes())
        second = fetch(Settings(source=str(root)), store, silent)
        assert second.fingerprint != first.fingerprint

    def test_an_archive_that_has_changed_is_unpacked_anew(self, archive, make_folder, store, silent):
        first = fetch(Settings(source=str(archive)), store, silent)
        archive.write_bytes(packed(make_folder("other", x=3, y=3)))
        assert fetch(Settings(source=str(archive)), store, silent) != first

    def test_an_archive_and_an_address_give_the_fingerprint_of_the_folder(self, archive, site, store, silent, tmp_path):
        """Equal photos are equal data, whichever way they came: the wrapping folder is seen through."""
        site.content = archive.read_bytes()
        wanted = fingerprint(tmp_path / "photos", silent)
        for source in (str(archive), site.address):
            fetched = fetch(Settings(source=source), store, silent)
            assert fetched == Fetched(wanted, f"datasets/{wanted}")
            assert listing(localise(store, fetched.path, silent)).files[0] == "daisy/000.jpg"
        assert left_behind(store) == []

    def test_synthetic_photos_are_drawn_once(self, store, silent, monkeypatch):
        fetched = fetch(Settings(photos=20), store, silent)
        assert len(listing(localise(store, fetched.path, silent)).files) == 20
        monkeypatch.setattr(sources, "draw_photos", lambda *_: pytest.fail("drawn again"))
        assert fetch(Settings(photos=20), store, silent) == fetched

    def test_the_real_flower_photos_are_checked_by_size_and_digest(self, site, store, silent, monkeypatch):
        site.content = b"not 228,813,984 bytes"
        monkeypatch.setattr(sources, "FLOWER_PHOTOS", site.address)
        with pytest.raises(InputError, match="has 21 bytes, not the 228,813,984 that are published"):
            fetch(Settings(source="flower_photos"), store, silent)

    def test_an_archive_without_class_folders_is_refused(self, tmp_path, store, silent):
        (tmp_path / "flat").mkdir()
        (tmp_path / "flat/readme.txt").write_bytes(b"x")
        (tmp_path / "flat.tgz").write_bytes(packed(tmp_path / "flat"))
        with pytest.raises(InputError, match="no photos in class folders"):
            fetch(Settings(source=str(tmp_path / "flat.tgz")), store, silent)

    def test_a_data_set_that_is_gone_is_said_to_be(self, store, silent):
        with pytest.raises(InputError, match="the photos are gone; fetch them again"):
            localise(store, "datasets/f00d", silent)


class TestTheSecondTime:
    def test_nothing_is_fetched_again(self, archive, site, store, silent):
        site.content = archive.read_bytes()
        first = fetch(Settings(source=site.address), store, silent)
        assert fetch(Settings(source=site.address), store, silent) == first
        assert len(site.ranges) == 1

    def test_an_address_that_serves_something_else_now_is_fetched_again(
        self, archive, site, store, silent, make_folder
    ):
        site.content = archive.read_bytes()
        first = fetch(Settings(source=site.address), store, silent)
        site.content, site.tag = packed(make_folder("other", x=3, y=3)), '"v2"'
        assert fetch(Settings(source=site.address), store, silent) != first

    def test_a_server_that_is_down_does_no_harm(self, archive, site, store, silent):
        site.content = archive.read_bytes()
        first = fetch(Settings(source=site.address), store, silent)
        site.close()
        assert fetch(Settings(source=site.address), store, silent) == first

    def test_a_data_set_that_somebody_deleted_from_is_fetched_again(self, archive, store, silent):
        first = fetch(Settings(source=str(archive)), store, silent)
        (localise(store, first.path, silent) / "daisy/000.jpg").unlink()
        assert fetch(Settings(source=str(archive)), store, silent) == first
        assert len(listing(localise(store, first.path, silent)).files) == 12


class TestFaults:
    def test_a_fetch_killed_at_any_moment_is_taken_up_by_the_next(self, archive, site, tmp_path, silent):
        """Ten kills spread over a download of about two seconds; then one try to the end, and nothing is left over."""
        store = Store(tmp_path / "killed")
        site.content = archive.read_bytes()
        site.piece_bytes, site.pause_s = len(site.content) // 40, 0.05
        dice = random.Random(0)
        with fetching(site.address, store, "wait") as child:
            for _ in range(10):
                child.stdin.write("\n")
                pid = int(child.stdout.readline())
                time.sleep(dice.uniform(0.01, 0.4))
                os.kill(pid, signal.SIGKILL)
        assert any(site.ranges), "no kill hit the download"
        site.pause_s = 0
        fetched = fetch(Settings(source=site.address), store, silent)
        assert fetched.fingerprint == fingerprint(tmp_path / "photos", silent)
        assert fingerprint(localise(store, fetched.path, silent), silent) == fetched.fingerprint
        assert left_behind(store) == []
        assert whole_data_sets(store) == [fetched.fingerprint]

    @pytest.mark.parametrize("at", ["unpack", "fingerprint", "rename", "note"])
    def test_a_fetch_that_dies_between_any_two_steps_is_taken_up_by_the_next(
        self, archive, store, silent, tmp_path, monkeypatch, at
    ):
        """The steps after the download are too short to be hit by a clock: die where each begins."""

        class Died(BaseException):
            """As by SIGKILL: nothing of ours may catch it."""

        def die(*_):
            raise Died

        place = {
            "unpack": "feedbench.dataset.sources.unpack",
            "fingerprint": "feedbench.dataset.keep.fingerprint",
            "rename": "pathlib.Path.rename",
            "note": "feedbench.dataset.keep.write_note",
        }[at]
        with monkeypatch.context() as patched:
            patched.setattr(place, die)
            with pytest.raises(Died):
                fetch(Settings(source=str(archive)), store, silent)
        fetched = fetch(Settings(source=str(archive)), store, silent)
        assert fingerprint(localise(store, fetched.path, silent), silent) == fetched.fingerprint
        assert left_behind(store) == []

    def test_two_fetches_at_once_do_the_work_once(self, archive, site, store, silent, tmp_path):
        site.content = archive.read_bytes()
        site.piece_bytes, site.pause_s = len(site.content) // 10, 0.05
        with fetching(site.address, store, "at once") as child:
            child.stdin.write("\n\n")
            child.stdin.close()
            output = child.stdout.read().split()
        assert output.count(fingerprint(tmp_path / "photos", silent)) == 2
        assert len(site.ranges) == 1

    def test_what_a_fetch_that_nobody_took_up_left_is_swept_by_any_other(self, archive, store, silent):
        work = Path(store.datasets) / ".work"
        for name, age_s in (("given_up", 2 * 24 * 3600), ("fresh", 60)):
            (work / name / "photos").mkdir(parents=True)
            os.utime(work / name, (time.time() - age_s,) * 2)
        fetch(Settings(source=str(archive)), store, silent)
        assert left_behind(store) == ["fresh"]

    def test_an_archive_that_arrived_broken_is_fetched_anew_the_next_time(self, archive, site, store, silent):
        site.content, site.tag = archive.read_bytes()[:-2000], None
        with pytest.raises(InputError, match="cannot be unpacked"):
            fetch(Settings(source=site.address), store, silent)
        site.content = archive.read_bytes()
        fetch(Settings(source=site.address), store, silent)
        assert left_behind(store) == []

    def test_a_hostile_archive_leaves_no_data_set(self, store, silent, tmp_path):
        with tarfile.open(tmp_path / "evil.tgz", "w:gz") as tar:
            tar.addfile(tarfile.TarInfo("../../escaped.jpg"))
        with pytest.raises(InputError, match="outside of the folder"):
            fetch(Settings(source=str(tmp_path / "evil.tgz")), store, silent)
        assert whole_data_sets(store) == []
        assert not list(tmp_path.rglob("escaped.jpg"))


class TestARemoteStore:
    @pytest.fixture
    def remote(self) -> Store:
        """An object store in memory, new for each test."""
        return Store(f"memory://{uuid.uuid4().hex}")

    @pytest.fixture(autouse=True)
    def _caches(self, tmp_path, monkeypatch):
        monkeypatch.setenv("FEEDBENCH_CACHE", str(tmp_path / "cache of machine one"))

    @pytest.fixture
    def another_machine(self, tmp_path, monkeypatch):
        """From now on: another cache, and no way to the source."""

        def move() -> None:
            monkeypatch.setenv("FEEDBENCH_CACHE", str(tmp_path / "cache of machine two"))
            monkeypatch.setattr(sources, "_prepare", lambda *_: pytest.fail("fetched again"))

        return move

    @pytest.mark.parametrize("kind", ["folder", "archive", "synthetic"])
    def test_a_data_set_reaches_a_worker_on_another_machine(
        self, remote, archive, tmp_path, silent, another_machine, kind
    ):
        source = {"folder": str(tmp_path / "photos"), "archive": str(archive), "synthetic": "synthetic"}[kind]
        fetched = fetch(Settings(source=source, photos=20), remote, silent)
        assert fetched.path == f"datasets/{fetched.fingerprint}"
        another_machine()
        root = localise(remote, fetched.path, silent)
        assert fingerprint(root, silent) == fetched.fingerprint
        assert root.is_relative_to(tmp_path / "cache of machine two")

    def test_it_is_copied_once_a_machine_and_fetched_once_for_all(
        self, remote, archive, silent, another_machine, monkeypatch
    ):
        fetched = fetch(Settings(source=str(archive)), remote, silent)
        another_machine()
        assert fetch(Settings(source=str(archive)), remote, silent) == fetched
        root = localise(remote, fetched.path, silent)
        monkeypatch.setattr(sources, "_copy", lambda *_: pytest.fail("copied again"))
        assert localise(remote, fetched.path, silent) == root

    def test_a_data_set_that_is_gone_from_the_store_is_said_to_be(self, remote, silent):
        with pytest.raises(InputError, match="the photos are gone"):
            localise(remote, "datasets/f00d", silent)
