"""`make env` writes secrets that are random, strong enough, private, and never written over."""

import base64
import stat
from pathlib import Path

import env
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def written(tmp_path) -> Path:
    file = tmp_path / ".env"
    assert env.main(str(file)) == 0
    return file


def values(file: Path) -> dict[str, str]:
    return dict(line.split("=", 1) for line in file.read_text().splitlines() if line and line[0] != "#")


class TestEnv:
    def test_every_secret_of_the_example_gets_a_value(self, written):
        assert values(written).keys() == {*env.MAKERS, "GIT_REVISION"}
        assert all(values(written).values())

    def test_keys_have_the_strength_that_airflow_wants(self, written):
        """64 random bytes to sign tokens, 32 for Fernet."""
        given = values(written)
        assert len(base64.urlsafe_b64decode(given["AIRFLOW_JWT_SECRET"] + "==")) == 64
        assert len(base64.urlsafe_b64decode(given["AIRFLOW_FERNET_KEY"])) == 32

    def test_passwords_can_stand_in_an_address(self, written):
        given = values(written)
        assert all(given[name].replace("-", "").replace("_", "").isalnum() for name in given if "PASSWORD" in name)

    def test_two_files_share_no_secret(self, written, tmp_path):
        other = tmp_path / "other"
        env.main(str(other))
        shared = set(values(written).values()) & set(values(other).values())
        assert shared == {values(written)["GIT_REVISION"]}

    def test_the_file_is_its_owners_alone(self, written):
        assert stat.S_IMODE(written.stat().st_mode) == 0o600

    def test_a_file_that_is_there_is_left_as_it_is(self, written, capsys):
        before = written.read_bytes()
        assert env.main(str(written)) == 1
        assert written.read_bytes() == before
        assert "move it away" in capsys.readouterr().err
