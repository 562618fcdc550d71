import io

from rich.console import Console

from feedbench.report.terminal import summary
from planted.comparisons import comparison_of, unmeasured


def printed(comparison):
    return summary(comparison, Console(file=io.StringIO(), width=120, color_system=None))


def test_the_summary_has_the_verdict_the_variants_and_the_failures(emulated):
    text = printed(emulated)
    assert text.startswith("Ship prefetch")
    naive = next(line for line in text.splitlines() if "naive " in line and "66.6" in line)
    assert naive.split() == ["naive", "66.6", "baseline", "31", "%", "68", "%", "1.5", "GB", "input-bound"]
    assert "cache_file failed: signal 9, probably out of memory" in text


def test_a_run_without_results_prints_reasons_and_no_empty_table(all_failed):
    text = printed(all_failed)
    assert "naive failed: TensorFlow cannot open the GPU" in text
    assert "step time" not in text


def test_names_are_no_console_markup_and_carry_no_escape_sequences():
    hostile = unmeasured("[bold red]x[/]", "", "failed", "\x1b]0;owned\x07 [link=evil]y[/link]")
    comparison = comparison_of(hostile)
    text = printed(comparison)
    assert "[bold red]x[/]" in text
    assert "\x1b" not in text
    assert "\\u001b]0;owned" in text
