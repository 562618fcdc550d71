"""Archives, good and hostile. What is refused leaves nothing outside of the target."""

import gzip
import io
import stat
import tarfile
import zipfile

import pytest

from feedbench.dataset import unpack as module
from feedbench.dataset.unpack import unpack
from feedbench.errors import InputError


@pytest.fixture
def target(tmp_path):
    return tmp_path / "in" / "target"


def tar(path, *members: tuple[tarfile.TarInfo, bytes], mode: str = "w:gz"):
    with tarfile.open(path, mode) as archive:
        for info, content in members:
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


GOOD = (member("flowers/daisy/1.jpg"), b"one")


@pytest.mark.parametrize(
    ("suffix", "mode"), [(".tgz", "w:gz"), (".tar", "w"), (".tar.bz2", "w:bz2"), (".tar.xz", "w:xz")]
)
def test_every_kind_of_tar_is_unpacked(tmp_path, target, silent, suffix, mode):
    unpack(tar(tmp_path / f"a{suffix}", GOOD, mode=mode), target, silent)
    assert (target / "flowers/daisy/1.jpg").read_bytes() == b"one"


def test_a_zip_is_unpacked(tmp_path, target, silent):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("flowers/", "")
        archive.writestr("flowers/daisy/é 1.jpg", b"one")
    unpack(tmp_path / "a.zip", target, silent)
    assert (target / "flowers/daisy/é 1.jpg").read_bytes() == b"one"


def test_what_a_killed_try_left_is_gone(tmp_path, target, silent):
    (target / "flowers").mkdir(parents=True)
    (target / "flowers/half.jpg").write_bytes(b"ha")
    unpack(tar(tmp_path / "a.tgz", GOOD), target, silent)
    assert [file.name for file in target.rglob("*.jpg")] == ["1.jpg"]


@pytest.mark.parametrize(
    "hostile",
    [
        member("../outside.jpg"),
        member("flowers/../../outside.jpg"),
        member("/tmp/feedbench-outside.jpg"),
        member("..\\outside.jpg"),
        member("C:\\outside.jpg"),
        member("flowers/link", tarfile.SYMTYPE, "/etc"),
        member("flowers/link", tarfile.SYMTYPE, "daisy"),
        member("flowers/hard", tarfile.LNKTYPE, "flowers/daisy/1.jpg"),
        member("flowers/hard", tarfile.LNKTYPE, "../../outside"),
        member("flowers/device", tarfile.CHRTYPE),
        member("flowers/disk", tarfile.BLKTYPE),
        member("flowers/pipe", tarfile.FIFOTYPE),
    ],
    ids=lambda info: f"{info.name} {info.type.decode()} {info.linkname}",
)
def test_a_hostile_tar_is_refused_by_name(tmp_path, target, silent, hostile):
    archive = tar(tmp_path / "a.tgz", GOOD, (hostile, b""))
    with pytest.raises(InputError, match=r"a\.tgz: cannot be unpacked: .*(outside|link or device)"):
        unpack(archive, target, silent)
    assert {path.name for path in tmp_path.iterdir()} == {"a.tgz", "in"}
    assert not target.exists()


@pytest.mark.parametrize("name", ["../outside.jpg", "/tmp/feedbench-outside.jpg", "a/../../outside.jpg"])
def test_a_zip_that_points_outside_is_refused(tmp_path, target, silent, name):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(name, b"x")
    with pytest.raises(InputError, match="outside of the folder"):
        unpack(tmp_path / "a.zip", target, silent)
    assert {path.name for path in tmp_path.iterdir()} == {"a.zip", "in"}


def test_a_link_in_a_zip_is_refused(tmp_path, target, silent):
    info = zipfile.ZipInfo("flowers/link")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(info, "/etc")
    with pytest.raises(InputError, match="link or device"):
        unpack(tmp_path / "a.zip", target, silent)


def test_a_bomb_is_refused_before_it_goes_off(tmp_path, target, silent, monkeypatch):
    """10 MB of zeros in 10 KB: a thousandfold, a hundredfold is allowed."""
    monkeypatch.setattr(module, "ALWAYS_ALLOWED", 0)
    zeros = bytes(10_000_000)
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("flowers/daisy/1.jpg", zeros)
    for bomb in (tar(tmp_path / "a.tgz", (member("flowers/daisy/1.jpg"), zeros)), tmp_path / "a.zip"):
        with pytest.raises(InputError, match="far more than photos are"):
            unpack(bomb, target, silent)
        assert not target.exists()


def test_many_small_files_are_a_bomb_too(tmp_path, target, silent, monkeypatch):
    monkeypatch.setattr(module, "MAX_FILES", 10)
    members = [(member(f"flowers/daisy/{number}.jpg"), b"x") for number in range(11)]
    with pytest.raises(InputError, match="more than 10 files"):
        unpack(tar(tmp_path / "a.tgz", *members), target, silent)


def test_a_header_that_claims_to_be_huge_is_not_read_into_memory(tmp_path, target, silent):
    """A pax header of 1 GB packs to 1 MB, and tarfile would take it as one string; here only its claim is sent."""
    header = tarfile.TarInfo("pax")
    header.type, header.size = tarfile.XHDTYPE, 1_000_000_000
    (tmp_path / "a.tgz").write_bytes(gzip.compress(header.tobuf(tarfile.USTAR_FORMAT) + bytes(1024)))
    with pytest.raises(InputError, match="a header of 1,000,000,000 bytes"):
        unpack(tmp_path / "a.tgz", target, silent)


def test_more_than_the_disk_has_free_is_refused(tmp_path, target, silent, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 2}))
    with pytest.raises(InputError, match="that the disk has free"):
        unpack(tar(tmp_path / "a.tgz", GOOD), target, silent)


@pytest.mark.parametrize("mode", ["w:gz", "w", "w:xz", "w:bz2"])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_an_archive_that_was_cut_short_is_refused(tmp_path, target, silent, mode, share, make_photo):
    """Wherever it is cut; a plain tar cut between two files is told by the empty blocks that it lacks."""
    members = [(member(f"flowers/daisy/{number}.jpg"), make_photo(number)) for number in range(20)]
    archive = tar(tmp_path / "a.tgz", *members, mode=mode)
    content = archive.read_bytes().rstrip(b"\0")
    kept = int(len(content) * share)
    archive.write_bytes(content[: kept // 512 * 512 if mode == "w" else kept])
    with pytest.raises(InputError, match=r"a\.tgz: cannot be unpacked"):
        unpack(archive, target, silent)


def test_a_plain_tar_cut_between_two_files_is_refused(tmp_path, target, silent):
    """Python's tarfile reads it without complaint: 1,024 bytes are the first file, header and block."""
    archive = tar(tmp_path / "a.tar", GOOD, (member("flowers/daisy/2.jpg"), b"two"), mode="w")
    archive.write_bytes(archive.read_bytes()[:1024])
    with pytest.raises(InputError, match="ends too early"):
        unpack(archive, target, silent)


@pytest.mark.parametrize("content", [b"", b"<html>no such page</html>", b"\x1f\x8bnonsense", b"PK\x03\x04nonsense"])
def test_what_is_no_archive_is_said_to_be_none(tmp_path, target, silent, content):
    (tmp_path / "a.tgz").write_bytes(content)
    with pytest.raises(InputError, match=r"a\.tgz: cannot be unpacked"):
        unpack(tmp_path / "a.tgz", target, silent)


def test_a_file_with_no_rights_in_the_archive_can_be_read_after(tmp_path, target, silent):
    info = member("flowers/daisy/1.jpg")
    info.mode, info.uid = 0o000, 4242
    unpack(tar(tmp_path / "a.tgz", (info, b"one")), target, silent)
    assert (target / "flowers/daisy/1.jpg").stat().st_mode & 0o600 == 0o600
