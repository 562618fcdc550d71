import pytest

from feedbench.records import Blocking, Changes, NextStep, Profile, Stage
from feedbench.report.details import compared_chain
from feedbench.report.view import build_view, fastest_note
from planted.comparisons import comparison_of, run_of, unmeasured, variant


def row_of(table, name):
    return next(row for row in table.rows if name in [cell.text for cell in row.cells])


def cells_of(view, name):
    """The row of a variant by column title."""
    titles = [column.title for column in view.variants.columns]
    return dict(zip(titles, row_of(view.variants, name).cells, strict=False))


def test_the_baseline_stands_first_wherever_it_stood_in_the_record(emulated):
    view = build_view(emulated, run_of(emulated))
    assert emulated.variants[0].name == "prefetch"
    assert [row.cells[0].text for row in view.variants.rows][:3] == ["naive", "prefetch", "parallel_map_prefetch"]


def test_the_verdict_is_the_records_sentence_and_emulation_is_said_in_capitals(emulated):
    view = build_view(emulated, run_of(emulated))
    assert view.verdict == emulated.verdict
    assert view.emulated.text == "EMULATED ACCELERATOR"
    assert "45.0 ms" in view.emulated.detail
    assert "Random weights" not in [label.text for label in view.labels]  # nothing is trained


def test_a_real_accelerator_with_trained_weights_carries_neither_label(changed_night):
    run = run_of(changed_night, accelerator="gpu", emulated_step_ms=None, weights="imagenet")
    view = build_view(changed_night, run)
    assert view.emulated is None
    assert view.labels == ()


def test_what_was_not_measured_is_a_dash_never_a_number():
    """A variant with nothing but its step times: input wait, AU, memory and cache are unknown."""
    bare = variant(
        "naive", "", ("TensorSlice",), 20.6, 21.0, input_wait_share=None, accelerator_utilisation=None,
        peak_rss_mb=None, summary=None, verdict="not measured", verdict_reason="no step markers",
    )  # fmt: skip
    comparison = comparison_of(bare)
    cells = cells_of(build_view(comparison, run_of(comparison)), "naive")
    assert [cells[title].text for title in ("input wait", "AU", "memory", "cache")] == ["–"] * 4
    assert cells["verdict"].text == "not measured"
    assert cells["note"].text == "no step markers"


def test_utilisation_is_good_from_ninety_per_cent_on_and_its_bar_ends_at_a_hundred():
    shares = {"naive": 0.899, "just": 0.9, "over": 1.02}
    comparison = comparison_of(
        *(variant(n, "", ("TensorSlice",), 1.0, 1.0, accelerator_utilisation=s) for n, s in shares.items())
    )
    view = build_view(comparison, run_of(comparison))
    found = {name: cells_of(view, name)["AU"] for name in shares}
    assert {name: cell.tone for name, cell in found.items()} == {"naive": "warn", "just": "good", "over": "good"}
    assert found["over"].meter_percent == 100
    assert found["over"].text == "102 %"


def test_only_the_fastest_set_carries_the_star(emulated):
    view = build_view(emulated, run_of(emulated))
    starred = {row.cells[0].text for row in view.variants.rows if row.mark == "★"}
    assert starred == set(emulated.fastest)


def test_failed_and_invalid_variants_are_rows_with_their_reason_across_the_table(emulated):
    view = build_view(emulated, run_of(emulated))
    failed, invalid = row_of(view.variants, "cache_file"), row_of(view.variants, "my_pipeline")
    assert failed.cells[1].text.startswith("failed: signal 9, probably out of memory")
    assert invalid.cells[1].text == "invalid: executed MapAndBatch, Prefetch; not declared"
    assert len(failed.cells) == len(invalid.cells) == 2


@pytest.mark.parametrize(("off", "tone"), [(0.86, ""), (0.84, "warn"), (1.16, "warn")])
def test_forecasts_stand_beside_the_measured_time_with_a_signed_error_that_stands_out_when_large(off, tone):
    measured = variant("prefetch", "", ("TensorSlice",), 0.6, 21.0).step_time_ms.mean
    comparison = comparison_of(
        variant("naive", "", ("TensorSlice",), 20.6, 21.0),
        variant("prefetch", "", ("TensorSlice",), 0.6, 21.0, forecast_ms=off * measured),
    )
    error = row_of(build_view(comparison, run_of(comparison)).forecasts, "prefetch").cells[3]
    assert error.text == f"{'−' if off < 1 else '+'}{round(abs(off - 1) * 100)} %"
    assert error.tone == tone


def test_the_baseline_hits_its_own_forecast_by_definition(emulated):
    error = row_of(build_view(emulated, run_of(emulated)).forecasts, "naive").cells[3]
    assert (error.text, error.detail) == ("–", "by definition")


def test_next_steps_are_ranked_by_gain(emulated):
    table = build_view(emulated, run_of(emulated)).next_steps
    assert [row.cells[2].text for row in table.rows] == ["+2.5 %", "+2.1 %", "+1.2 %"]


def test_the_change_column_is_there_only_with_nights_to_compare_with(emulated, changed_night):
    first = build_view(emulated, run_of(emulated))
    assert "First night" in first.history.summary
    assert "change" not in [column.title for column in first.variants.columns]
    later = build_view(changed_night, run_of(changed_night))
    assert later.history.summary.startswith("3 variants changed against 14 recent nights")
    shown = {name: cells_of(later, name)["change"] for name in ("naive", "prefetch", "combined")}
    assert [(cell.text, cell.tone) for cell in shown.values()] == [
        ("▲ +18 %", "bad"), ("▼ −6.0 %", "good"), ("▲ +12 %", "muted"),
    ]  # fmt: skip
    assert cells_of(later, "parallel_map_prefetch")["change"].text == "="


def test_a_variant_that_failed_tonight_is_not_called_unchanged(emulated):
    night = emulated.model_copy(update={"history": Changes(compared_with="last", nights=3)})
    assert cells_of(build_view(night, run_of(night)), "cache_file")["change"].text == "–"


def test_a_change_is_told_with_size_interval_first_night_and_cause_and_never_as_certain(changed_night):
    slower, _, accepted = build_view(changed_night, run_of(changed_night)).history.changes
    assert slower.sentence.startswith("naive is 18 % slower [+15 % – +21 %] since 2026-03-03")
    assert "confidence over 99 %" in slower.sentence
    assert slower.causes == ("self time of Map +21 %", "cores 4 → 2")
    assert accepted.sentence.endswith("Accepted: cache moved to a slower disk on purpose")


def test_a_quiet_night_says_that_nothing_changed(emulated):
    quiet = emulated.model_copy(update={"history": Changes(compared_with="last", nights=1)})
    summary = build_view(quiet, run_of(quiet)).history.summary
    assert summary == "No variant changed against 1 recent night; last good night: last."


def test_parts_of_the_record_that_are_not_there_yet_leave_no_section():
    comparison = comparison_of(
        variant("naive", "", ("TensorSlice",), 20.6, 21.0, forecast_ms=None, what_if=None), ceiling_ms=None
    )
    view = build_view(comparison, run_of(comparison))
    assert (view.history, view.next_steps, view.forecasts) == (None, None, None)
    assert "what-if" not in [picture.anchor for picture in view.pictures]
    assert "Ceiling" not in [fact.label for fact in view.facts]


def test_a_run_in_which_everything_failed_still_says_why_and_on_what(all_failed):
    view = build_view(all_failed, run_of(all_failed))
    assert view.pictures == ()
    assert view.emulated is not None
    assert "2 of 2 variants failed or invalid" in [label.text for label in view.labels]
    assert all("CUDA driver" in row.cells[1].text for row in view.variants.rows)


def test_every_column_that_needs_a_meaning_points_at_a_glossary_entry(changed_night, emulated):
    for comparison in (changed_night, emulated):
        view = build_view(comparison, run_of(comparison))
        tables = [view.variants, view.next_steps, view.forecasts, *(t for d in view.details for t in d.tables)]
        used = {column.term for table in tables if table for column in table.columns if column.term}
        assert {"m-step-time", "m-speedup", "m-au", "m-blocking"} <= used
        assert used <= {term.anchor for term in view.glossary}


def test_every_setting_of_a_run_is_told_under_its_title(emulated):
    run = run_of(emulated)
    told = {fact.label for block in build_view(emulated, run).method for fact in block.facts}
    titles = {field.title for field in type(run.settings).model_fields.values()}
    assert titles - told == {"Photos from"}  # told as the data's source


# ---- what it was compared with, and whether that decides anything --------------------------------------------------


def test_a_lonely_valid_variant_is_faster_than_none():
    """Its A/A twin beside it and a failed one are no rivals."""
    naive, twin = (variant(name, "", ("A",), 20.6, 21.0) for name in ("naive", "naive_again"))
    comparison = comparison_of(naive, twin, unmeasured("prefetch", "", "failed", "no"), fastest=("naive",))
    assert fastest_note(comparison) == "★ naive is the only variant with a valid result: it was compared with none."
    rival = variant("prefetch", "", ("A",), 30.0, 31.0)
    assert (
        fastest_note(comparison_of(naive, rival, fastest=("naive",))) == "★ naive is faster than every other variant."
    )


def undecided(naive_ms, other_ms, **changes):
    naive, other = variant("naive", "", ("A",), 20.6, 21.0), variant("prefetch", "", ("A",), 0.6, 21.0)
    times = [v.step_time_ms.model_copy(update={"mean": ms}) for v, ms in ((naive, naive_ms), (other, other_ms))]
    pair = [v.model_copy(update={"step_time_ms": time}) for v, time in zip((naive, other), times, strict=True)]
    return comparison_of(*pair, fastest=("naive", "prefetch"), **changes)


def test_a_run_that_would_not_find_what_it_saw_warns_and_names_the_rounds():
    """110 to 100 ms is 10 %; three rounds find 21 %, and ln 1.21 is twice ln 1.1: four times the rounds."""
    comparison = undecided(110.0, 100.0, smallest_detectable_effect=0.21)
    view = build_view(comparison, run_of(comparison))
    said = "the smallest effect that it would find is 21 %, and the largest difference from naive that it saw is 10 %"
    assert view.warnings == (f"This run cannot decide: {said}. About --rounds 12 would do.",)
    assert "1 warning" in [label.text for label in view.labels]
    assert [cell.text for cell in view.next_steps.rows[0].cells] == ["more rounds (--rounds 12)", "–", "–", "–"]


def test_a_run_that_sees_what_matters_warns_of_nothing():
    """Equal but for 0.1 %, and 2 %, the smallest effect that matters, would have been found."""
    comparison = undecided(100.1, 100.0, smallest_detectable_effect=0.02)
    view = build_view(comparison, run_of(comparison))
    assert view.warnings == ()
    assert view.next_steps.rows[0].cells[0].text == "more rounds"


def test_rounds_that_nobody_can_ask_for_are_not_advised():
    comparison = undecided(100.1, 100.0, smallest_detectable_effect=0.5)
    assert (
        build_view(comparison, run_of(comparison))
        .warnings[0]
        .endswith("More than 100 rounds would be needed: use a quieter machine.")
    )


def test_that_the_page_cache_is_warm_is_a_fact_and_no_warning():
    comparison = comparison_of(variant("naive", "", ("A",), 20.6, 21.0), fastest=("naive",))
    view = build_view(comparison, run_of(comparison))
    assert view.warnings == view.labels == ()
    assert told(view)["Page cache"].startswith("warm for all variants")


def told(view):
    return {fact.label: fact.value for block in view.method for fact in block.facts}


def test_settings_are_written_for_people(emulated):
    """21 steps in passes of 7 where 20 were asked for; 300 photos less 224 and 60 are 16."""
    facts = told(build_view(emulated, run_of(emulated, steps=20)))
    wanted = {
        "Measured steps": "21 (asked 20, whole passes of 7)", "Regression limit": "10 %", "Smallest effect": "2.0 %",
        "Rejects at most": "5.0 %", "Validation share": "20 %", "Photos at most": "all", "Mixed precision": "off",
        "Photos": "300, of which 224 to train, 60 to validate, 16 left over, for a pass has whole batches only",
    }  # fmt: skip
    assert {label: facts[label] for label in wanted} == wanted


def test_memory_that_nobody_measured_is_a_dash_and_not_nothing():
    step = NextStep(change="cache on file (on disk 130 MB)", forecast_ms=45.0, gain=0.1, memory_mb=0.0)
    comparison = comparison_of(variant("naive", "", ("A",), 20.6, 21.0), fastest=("naive",), next_steps=(step,))
    assert build_view(comparison, run_of(comparison)).next_steps.rows[0].cells[3].text == "–"


# ---- variant by variant --------------------------------------------------------------------------------------------


def test_baseline_and_fastest_are_open_the_others_closed(emulated):
    view = build_view(emulated, run_of(emulated))
    assert {section.name for section in view.details if section.opened} == {"naive", "prefetch"}


def test_where_the_baseline_is_shipped_the_best_of_its_equals_is_open_too(emulated):
    tied = emulated.model_copy(update={"fastest": ("naive", "prefetch", "combined")})
    opened = {section.name for section in build_view(tied, run_of(tied)).details if section.opened}
    assert opened == {"naive", "combined"}


def test_a_chain_other_than_declared_is_marked_operator_by_operator():
    declared = ("TensorSlice", "Map", "Shuffle", "BatchV2")
    marked = compared_chain(declared, ("TensorSlice", "MapAndBatch", "Shuffle", "BatchV2", "Prefetch"))
    assert [(cell.text, cell.detail) for cell in marked] == [
        ("TensorSlice", ""), ("Map", "missing"), ("MapAndBatch", "not declared"), ("Shuffle", ""), ("BatchV2", ""),
        ("Prefetch", "not declared"),
    ]  # fmt: skip


def test_equal_chains_have_no_marks():
    assert {cell.detail for cell in compared_chain(("A", "B"), ("A", "B"))} == {""}


@pytest.mark.parametrize(
    ("name", "labels", "says"),
    [
        ("naive", ["Written", "Executed"], "as declared"),
        ("combined", ["Written", "Declared for warm steps", "Executed"], "as declared"),
        ("tf_default", ["Written", "Executed"], "rewritten by TensorFlow, as this variant is meant to show"),
        ("my_pipeline", ["Written", "Executed"], "not what was declared"),
    ],
)
def test_written_declared_and_executed_chain_stand_together(emulated, name, labels, says):
    section = next(d for d in build_view(emulated, run_of(emulated)).details if d.name == name)
    assert [chain.label for chain in section.chains] == labels
    assert section.chains[-1].verdict.text == says


def test_the_slowest_stage_is_the_named_operator_with_the_longest_blocking():
    """Two Map stages: the one that blocks 9 ms is marked, though the other has more self time."""

    def stage(name, self_ms, blocking):
        return Stage(
            name=name, operator="Map", count=1, total_ms=50, self_ms=self_ms,
            blocking_ms=Blocking(mean=blocking, median=blocking, p95=blocking),
        )  # fmt: skip

    profile = Profile(
        file="f", status="ok", steps=12, slowest_stage="Map", stages=(stage("Map:1", 40, 2.0), stage("Map:2", 4, 9.0))
    )
    comparison = comparison_of(variant("naive", "", ("TensorSlice",), 20.6, 21.0, summary=profile))
    table = build_view(comparison, run_of(comparison)).details[0].tables[0]
    assert [(row.cells[0].detail, row.mark) for row in table.rows] == [("Map:1", ""), ("Map:2", "▶")]


def test_unknown_parallelism_is_a_dash_and_a_buffer_shows_held_and_possible(emulated):
    section = next(d for d in build_view(emulated, run_of(emulated)).details if d.name == "naive")
    titles = [column.title for column in section.tables[0].columns]
    shuffle = dict(zip(titles, row_of(section.tables[0], "Shuffle").cells, strict=True))
    assert (shuffle["parallelism"].text, shuffle["buffer"].text) == ("–", "100 / 100")


def test_a_direction_that_no_trace_showed_is_a_dash(emulated):
    """The planted layers have a forward time and no backward one."""
    naive = next(d for d in build_view(emulated, run_of(emulated)).details if d.name == "naive")
    layers = next(table for table in naive.tables if table.caption.startswith("Slowest layers"))
    assert [[cell.text for cell in row.cells[2:]] for row in layers.rows] == [["5.10", "–"], ["3.40", "–"]]


def test_the_stages_say_which_round_they_are_of(emulated):
    naive = next(d for d in build_view(emulated, run_of(emulated)).details if d.name == "naive")
    assert "over 12 profiled steps of round 2 of 3" in naive.tables[0].caption


def test_an_unusable_profile_says_why_in_the_notes():
    broken = Profile(file="f", status="unusable", reason="the file is empty")
    comparison = comparison_of(variant("naive", "", ("TensorSlice",), 20.6, 21.0, summary=broken))
    section = build_view(comparison, run_of(comparison)).details[0]
    assert "Profile unusable: the file is empty" in section.notes
    assert section.tables == ()


def test_xprof_stands_beside_our_own_reading_or_says_why_not(emulated):
    sections = {section.name: section for section in build_view(emulated, run_of(emulated)).details}
    ours, theirs = sections["naive"].tables[-1].rows
    assert (ours.cells[0].text, ours.cells[-1].text) == ("this report", "input-bound")
    assert theirs.cells[-1].text == "Your program is HIGHLY input-bound."
    assert sections["combined"].tables[-1].rows[1].cells[-1].text == "not available: no step markers found"


def test_the_tensorboard_command_quotes_what_a_shell_would_read():
    comparison = comparison_of(variant("naive", "", ("A",), 20.6, 21.0, profile="trials/a b;rm/1/train"))
    section = build_view(comparison, run_of(comparison)).details[0]
    assert section.tensorboard == "tensorboard --logdir 'trials/a b;rm/1/train'"
