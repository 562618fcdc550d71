"""The documents say what is so: the commands, paths, options of `run` and anchors in them exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from feedbench.report.glossary import GLOSSARY

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docker/*.md"), *ROOT.glob("requirements/*.md")]
)


def test_every_term_of_the_reports_glossary_has_its_section_in_the_method():
    anchors = set(re.findall(r'<a id="(m-[a-z-]+)">', (ROOT / "docs/method.md").read_text()))
    assert anchors == {term.anchor for term in GLOSSARY}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_make_target_named_exists(document):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"(?:^|`)make ([a-z-]+)", document.read_text(), re.MULTILINE))
    assert named <= targets


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_leads_somewhere(document):
    for target in re.findall(r"\]\((?!http)([^)#]+)", document.read_text()):
        assert (document.parent / target).exists(), target


MADE = {"variants", "artifacts", "weights", "train", "runs", "datasets", "trials", "build", "plugins"}
"""Folders that come to be when it is used, and a user's own; in a run's logdir TensorBoard has `plugins`, too."""


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_file_and_room_named_exists(document):
    """Sources, from the project's root or from the package; what a run writes is none."""
    places = (ROOT, ROOT / "include/feedbench", document.parent)
    for name in set(
        re.findall(
            r"[` ]((?:[\w.-]+/)*[\w-]+\.(?:py|sh|yaml|toml|proto|j2)|(?:[a-z_]+/)+)[`, :;)]", document.read_text()
        )
    ):
        if name.split("/")[0] not in MADE:
            assert any((place / name).exists() for place in places), name


def test_every_verb_of_the_readme_is_one_of_the_command_line_and_the_other_way_round():
    helped = subprocess.run(
        [sys.executable, "-m", "feedbench.cli", "--help"], capture_output=True, text=True, check=True
    )
    verbs = set(re.findall(r"^    ([a-z]+) ", helped.stdout, re.MULTILINE))
    named = set(re.findall(r"^\| `feedbench ([a-z]+)", (ROOT / "README.md").read_text(), re.MULTILINE))
    assert named == verbs


def test_every_option_of_the_readme_is_one_of_run():
    helped = subprocess.run(
        [sys.executable, "-m", "feedbench.cli", "run", "--help"], capture_output=True, text=True, check=True
    ).stdout
    lines = [line for line in (ROOT / "README.md").read_text().splitlines() if not line.startswith("| `feedbench")]
    named = set(re.findall(r"[ `](--[a-z][a-z-]+)", "\n".join(lines)))
    for option in named - {"--profile", "--logdir"}:
        assert re.search(rf"{option}\b(?!-)", helped), option
