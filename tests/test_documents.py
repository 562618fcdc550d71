"""The documents say what is so: every command, path, setting and anchor in them exists."""

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


def test_every_room_named_in_the_architecture_exists():
    text = (ROOT / "ARCHITECTURE.md").read_text()
    package = ROOT / "include/feedbench"
    for room in set(re.findall(r"`([a-z_]+/(?:[a-z_]+\.(?:py|proto))?)`", text)) - {"weights/", "train/"}:
        assert (package / room).exists() or (ROOT / room).exists(), room


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
    named = set(re.findall(r"[ `](--[a-z][a-z-]+)", (ROOT / "README.md").read_text()))
    for option in named - {"--profile", "--logdir"}:
        assert option in helped, option
