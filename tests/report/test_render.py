"""The files that people read. Golden files show every change of them in review.

After a change that is meant: FEEDBENCH_UPDATE_GOLDEN=1 pytest tests/report, and read the difference.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from feedbench.records import Change, Changes, Interval, NextStep
from feedbench.report.render import render
from planted.comparisons import comparison_of, run_of, unmeasured, variant

GOLDEN = Path(__file__).parents[1] / "golden"
CASES = ("emulated", "changed_night", "all_failed")
TABLE = {"table", "thead", "tbody", "tr", "th", "td"}
VOID = {"meta", "br", "wbr"}


class Page(HTMLParser):
    """What a browser would find in the page, and what does not belong in one."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.ids, self.links, self.handlers, self.words = [], [], [], [], []
        self.open = []
        self.feed(html)
        self.close()
        assert self.open == [], f"not closed: {self.open}"

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attributes:
            if name == "id":
                self.ids.append(value)
            if name in ("href", "src", "xlink:href", "action", "srcset"):
                self.links.append(value)
            if name.startswith("on"):
                self.handlers.append(name)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    def names(self):
        return {tag for tag, _ in self.tags}

    def text(self):
        return " ".join(" ".join(self.words).split())


@pytest.fixture
def report():
    def rendered(comparison):
        emulated = comparison.accelerator is None or comparison.accelerator.kind == "emulated"
        real = {} if emulated else {"accelerator": "gpu", "emulated_step_ms": None, "weights": "imagenet"}
        return render(comparison, run_of(comparison, **real))

    return rendered


@pytest.fixture
def hostile():
    """A record in which every text tries to be something else."""
    evil = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'&<!-- ]]> {{ 7*7 }} {% raw %} \u202egpj.exe שלום"
    names = (evil, "javascript:alert(1)", "| a | b\n\n# c", "n" * 5000, "</style></svg></title>")
    good = [variant(name, evil, (evil, "Map"), 0.5, 20.0, notes=(evil,), profile=evil) for name in names]
    since = {"since_run": evil, "since": evil, "confidence": 0.99, "causes": (evil,)}
    return comparison_of(
        variant("naive", evil, (evil,), 20.6, 21.0, verdict_reason=evil),
        *good,
        unmeasured(f"failed {evil}", evil, "failed", f"{evil}\nline two"),
        unmeasured("invalid", evil, "invalid", evil),
        verdict=evil,
        fastest=names,
        run_id=evil,
        warnings=(evil,),
        next_steps=(NextStep(change=evil, forecast_ms=45.0, gain=0.1),),
        history=Changes(
            compared_with=evil,
            nights=3,
            environment=(evil,),
            changes=(
                Change(variant=evil, size=Interval(value=0.1, ci_low=0.1, ci_high=0.1), direction="slower", **since),
            ),
        ),
    )


# ---- golden files ------------------------------------------------------------------------------------------------


def without_drawing(html):
    """Pictures as their title and description only: how matplotlib places a tick is not ours to fix."""
    return re.sub(r"(<svg [^>]*>)\s*(<title.*?</desc>).*?</svg>", r"\1\2</svg>", html, flags=re.DOTALL)


@pytest.mark.parametrize("case", CASES)
def test_the_report_reads_as_its_golden_file(case, report, request):
    found = report(request.getfixturevalue(case))
    for suffix, text in (("html", without_drawing(found.html)), ("md", found.markdown)):
        file = GOLDEN / f"report_{case}.{suffix}"
        if os.environ.get("FEEDBENCH_UPDATE_GOLDEN"):
            file.write_text(text)
        assert text == file.read_text(), f"{file.name}: see this module's docstring"


# ---- the page ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", [*CASES, "hostile"])
def test_the_page_is_whole_and_asks_for_nothing(case, report, request):
    """Balanced tags, unique ids, links only within the page, no script, handler, form, frame or address."""
    html = report(request.getfixturevalue(case)).html
    page = Page(html)
    assert len(page.ids) == len(set(page.ids))
    assert {link.removeprefix("#") for link in page.links} <= set(page.ids)
    assert page.handlers == []
    assert page.names().isdisjoint({"script", "img", "link", "base", "form", "input", "iframe", "object", "image"})
    style = html[html.index("<style>") : html.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style


@pytest.mark.parametrize("case", CASES)
def test_tables_and_pictures_can_be_read_without_seeing_them(case, report, request):
    page = Page(report(request.getfixturevalue(case)).html)
    count = [tag for tag, _ in page.tags].count
    assert count("caption") == count("table") > 0
    assert all(attributes.get("scope") in ("col", "row") for tag, attributes in page.tags if tag == "th")
    assert all(attributes.get("role") == "img" for tag, attributes in page.tags if tag == "svg")


def test_the_sections_stand_in_the_order_of_a_readers_questions(report, changed_night):
    page = Page(report(changed_night).html)
    sections = [attributes["id"] for tag, attributes in page.tags if tag == "section"]
    assert sections == ["history", "variants", "next", "pictures", "details", "method", "glossary"]


def test_hostile_text_is_shown_as_text(report, hostile):
    page = Page(report(hostile).html)
    assert "<script>alert(1)</script><img src=x onerror=alert(1)>" in page.text()
    assert "{{ 7*7 }} {% raw %}" in page.text()
    assert "\\u202egpj.exe" in page.text()
    assert "שלום" in page.text()


def test_hostile_text_makes_no_markup_in_markdown(report, hostile):
    """Every table row keeps its table's number of cells, no line of its own appears, no raw HTML is left."""
    markdown = report(hostile).markdown
    assert not re.search(r"<\w", markdown)
    assert not re.search(r"^# c", markdown, flags=re.MULTILINE)
    head = next(line for line in markdown.splitlines() if line.startswith("| change | variant |"))
    lines = markdown.split("## Next steps")[0].splitlines()
    rows = [len(re.findall(r"(?<!\\)\|", line)) for line in lines if line.startswith("|")]
    assert set(rows) == {len(re.findall(r"\|", head))}
    assert len(rows) == 2 + len(hostile.variants)


READS_AS_ITSELF = (
    "TensorSlice > Map > Shuffle", "1.84× [1.80 – 1.89], 97 % sure", "> no quote", "[x] no task", "- no point",
    "[no](http://127.0.0.1) link", "[no][link]", "[no]: /link", "![no](picture)", "<b>no</b> HTML", "AT&T",
    "&lt; and &#60;", "*no* **stress** _at_ __all__ ~~or~~ `code`", "a | b", "# no heading", "back\\slash",
    "snake_case_name", "cli__2026-03-04",
)  # fmt: skip


@pytest.mark.parametrize("text", READS_AS_ITSELF)
def test_text_in_the_markdown_report_reads_as_itself(text, report):
    """As a verdict, a point of a list and a cell of a table, in CommonMark with GitHub's tables and strikethrough."""
    failed = unmeasured("naive", "x", "failed", text)
    it = comparison_of(variant("prefetch", "x", ("Map",), 0.5, 20.0), failed, verdict=text, warnings=(text,))
    rendered = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(report(it).markdown)
    page = Page(rendered.replace("<hr />", ""))
    assert {tag for tag, _ in page.tags} <= {"h1", "h2", "h3", "p", "ul", "li", "strong", *TABLE}
    assert next(words for words in page.words if text in words) == text
    assert sum(text in words for words in page.words) >= 3


def test_an_interval_reads_well_in_markdown_as_it_is(report, emulated):
    assert "| naive | 66.6; [65.8 – 67.5] |" in report(emulated).markdown


def test_a_long_name_breaks_after_an_underscore(report, emulated):
    assert ">parallel_<wbr>map_<wbr>prefetch</a>" in report(emulated).html


def test_text_and_detail_of_a_cell_are_told_apart_in_markdown(report, emulated):
    assert "| balanced; slowest stage: ParallelMapV2 |" in report(emulated).markdown


def test_names_keep_their_underscores_in_markdown(report, emulated):
    assert "★ parallel_map_prefetch" in report(emulated).markdown


def test_the_same_record_gives_the_same_bytes_in_every_process(emulated, tmp_path):
    """Twice, under different hash seeds: no id, order or date of the moment gets in."""
    run = run_of(emulated)
    files = {"comparison.json": emulated.model_dump_json(), "run.json": run.model_dump_json()}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    code = (
        "import sys; from pathlib import Path; from feedbench.records import Comparison, Run;"
        "from feedbench.report.render import render; folder = Path(sys.argv[1]);"
        "c = Comparison.model_validate_json((folder / 'comparison.json').read_bytes());"
        "r = render(c, Run.model_validate_json((folder / 'run.json').read_bytes()));"
        "sys.stdout.buffer.write((r.html + r.markdown).encode())"
    )
    digests = {
        hashlib.sha256(
            subprocess.run(
                [sys.executable, "-c", code, str(tmp_path)],
                env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True,
            ).stdout
        ).hexdigest()
        for seed in ("1", "2")
    }  # fmt: skip
    here = render(emulated, run)
    assert digests == {hashlib.sha256((here.html + here.markdown).encode()).hexdigest()}


def test_twenty_variants_of_two_thousand_steps_stay_under_three_megabytes(report, many_variants):
    assert len(report(many_variants).html.encode()) < 3_000_000


# ---- colours -----------------------------------------------------------------------------------------------------


def themes(css):
    """The page's variables in light and in dark."""
    light, dark = re.findall(r":root \{(.*?)\}", css, flags=re.DOTALL)[:2]
    found = [dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block)) for block in (light, dark)]
    return {"light": found[0], "dark": found[0] | found[1]}


def contrast(one, other):
    """WCAG 2.2's contrast ratio of two colours."""

    def luminance(colour):
        channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def test_the_contrast_formula_gives_the_standards_extremes():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#777777") == 1


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_and_lines_have_the_contrast_of_wcag_aa(theme, report, emulated):
    """4.5 for text on every paper it stands on, 3 for what a picture says by colour."""
    colours = themes(report(emulated).html)[theme]
    papers = ("paper", "good-paper", "warn-paper", "bad-paper")
    text = [(ink, paper) for ink in ("ink", "muted", "link", "good", "warn", "bad") for paper in papers]
    shapes = ("model", "input", *(f"series-{number}" for number in range(1, 9)))
    needed = dict.fromkeys([*text, ("on-bar", "model")], 4.5) | {(shape, "paper"): 3 for shape in shapes}
    found = {pair: contrast(*(colours[name] for name in pair)) for pair in needed}
    assert {pair: round(ratio, 2) for pair, ratio in found.items() if ratio < needed[pair]} == {}


def test_every_colour_that_a_picture_uses_is_defined_in_both_themes(report, emulated):
    html = report(emulated).html
    used = set(re.findall(r"var\(--([\w-]+)\)", html))
    assert all(used <= set(colours) for colours in themes(html).values())


# ---- a real browser ----------------------------------------------------------------------------------------------


@pytest.mark.browser
@pytest.mark.parametrize("case", ["emulated", "hostile"])
def test_chromium_shows_the_page_under_the_strictest_policy_without_a_complaint(case, report, request):
    """No violation of the policy that the plugin sends, nothing fetched, no sideways scrolling at 600 px."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no chromium on the PATH")
    from playwright.sync_api import sync_playwright

    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:"
    html = report(request.getfixturevalue(case)).html
    asked, said = [], []

    def answer(route):
        asked.append(route.request.url)
        route.fulfill(body=html, content_type="text/html", headers={"Content-Security-Policy": policy})

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 600, "height": 900})
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.route("**/*", answer)
        page.goto("http://report.test/report.html")
        width = page.evaluate("document.documentElement.scrollWidth")
        browser.close()
    assert [url for url in asked if not url.endswith("/favicon.ico")] == ["http://report.test/report.html"]
    assert said == []
    assert width <= 600
