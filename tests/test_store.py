"""The artefacts' layout: names cannot leave it, files appear whole, another's documents are refused by name."""

import os
import subprocess
import sys
import threading

import pytest
from pydantic import ValidationError
from upath import UPath

from feedbench.errors import InputError, OutputError, SettingsError
from feedbench.records import PlannedTrial, Profile
from feedbench.store import Store, local_file, read, upload, write, write_bytes


@pytest.mark.parametrize("run_id", ["", ".", "..", "../x", "a/b", "/etc", ".hidden", "a\x00b", "a b", "ä", "x" * 300])
def test_a_run_id_that_is_no_plain_name_is_refused(tmp_path, run_id):
    with pytest.raises(SettingsError, match="run id"):
        Store(tmp_path).run(run_id)


@pytest.mark.parametrize("run_id", ["manual__2026-11-29T18:06:33.123+00:00", "scheduled__2026-11-29T02:30:00+00:00"])
def test_airflows_run_ids_are_folder_names_as_they_are(tmp_path, run_id):
    assert Store(tmp_path).run(run_id).path.name == run_id


def test_the_root_is_the_argument_then_the_environment_then_the_working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FEEDBENCH_ARTIFACTS", raising=False)
    assert Store().root == UPath(tmp_path / "artifacts")
    monkeypatch.setenv("FEEDBENCH_ARTIFACTS", str(tmp_path / "env"))
    assert Store().root == UPath(tmp_path / "env")
    assert Store(f"file://{tmp_path}/url").root == UPath(tmp_path / "url")


def test_a_reader_never_sees_half_a_document(anywhere):
    """Thirty rewrites of 1 MB while another thread reads: every read parses."""
    file = anywhere.root / "profile.json"
    document = Profile(file="x", status="unusable", reason="r" * 1_000_000)
    write(file, document)
    done = threading.Event()
    seen = []

    def watch():
        while not done.is_set():
            seen.append(read(file, Profile) == document)

    watcher = threading.Thread(target=watch)
    watcher.start()
    for _ in range(30):
        write(file, document)
    done.set()
    watcher.join()
    assert seen
    assert all(seen)
    assert [path.name for path in anywhere.root.iterdir()] == ["profile.json"]


def test_documents_are_for_whom_the_umask_says(tmp_path):
    """Read in a process of its own: 077 is for the owner alone, 022 for all to read."""
    code = "import sys; from feedbench.store import *; write_bytes(Path(sys.argv[1]), b'x')"
    for umask, mode in ((0o077, 0o600), (0o022, 0o644)):
        subprocess.run([sys.executable, "-c", code, tmp_path / "x"], check=True, umask=umask)
        assert (tmp_path / "x").stat().st_mode & 0o777 == mode


def test_nothing_is_left_of_a_write_that_fails(tmp_path):
    (tmp_path / "taken").mkdir()
    with pytest.raises(OutputError, match="taken: cannot be written: Is a directory"):
        write_bytes(tmp_path / "taken", b"x")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


MISBUILT = [
    b'{"schema_version": 3.0}',
    b'{"schema_version": true}',
    b'{"schema_version": 2, "next_steps": 5}',
    b'{"schema_version": 2, "next_steps": ["x"]}',
]
"""What migrations would trip over."""


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"schema_version": 1, "surprise": 2}', *MISBUILT])
def test_a_file_that_is_no_such_record_is_named(tmp_path, content):
    (tmp_path / "profile.json").write_bytes(content)
    with pytest.raises(InputError, match=r"profile\.json: not a Profile record"):
        read(UPath(tmp_path / "profile.json"), Profile)


def test_a_pipe_in_place_of_a_file_is_named_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "profile.json")
    with pytest.raises(InputError, match=r"profile\.json: not a file"):
        read(UPath(tmp_path / "profile.json"), Profile)


@pytest.mark.parametrize("variant", ["../../../../evil", "a/b", "", ".", "a\n"])
def test_a_variant_that_is_no_plain_name_is_refused(variant):
    with pytest.raises(ValidationError, match="variant"):
        PlannedTrial(variant=variant, round=1)


@pytest.mark.parametrize("link", ["runs/r", "runs/r/trials", "runs/r/trials/naive", "runs/r/trials/naive/1"])
def test_no_link_below_the_root_is_followed(tmp_path, link):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / link).parent.mkdir(parents=True)
    (tmp_path / link).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match=f"{link}: a link"):
        Store(tmp_path).run("r").trial(PlannedTrial(variant="naive", round=1))


def test_an_upload_ends_with_the_file_that_says_all_is_there(tmp_path, monkeypatch):
    (tmp_path / "a" / "train").mkdir(parents=True)
    for name in ("trial.json", "train/x.pb", "zzz.log"):
        (tmp_path / "a" / name).write_text(name)
    order = []
    monkeypatch.setattr("feedbench.store.write_bytes", lambda path, content: order.append(path.name))
    upload(tmp_path / "a", UPath("memory://bucket/trial"), last="trial.json")
    assert order[-1] == "trial.json"
    assert sorted(order) == ["trial.json", "x.pb", "zzz.log"]


def test_documents_live_in_an_object_store_as_on_disk(tmp_path):
    root = UPath("memory://bucket/artifacts")
    profile = Profile(file="x", status="ok")
    write(root / "runs" / "r" / "profile.json", profile)
    assert read(root / "runs" / "r" / "profile.json", Profile) == profile
    assert local_file(root / "runs" / "r" / "profile.json", tmp_path) == tmp_path / "profile.json"
