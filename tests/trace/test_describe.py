"""What a person reads on a terminal."""

from feedbench.records import Blocking, Device, InputWait, Op, Profile, Stage, StepTime
from feedbench.trace import describe

STAGE = Stage(name="MapDataset:1", operator="Map", count=384, total_ms=300, self_ms=295.5, share=0.31, parallelism=None)


def test_an_unusable_file_is_one_line_with_the_reason() -> None:
    assert describe(Profile(file="a.pb", status="unusable", reason="a.pb is empty")) == "a.pb: unusable: a.pb is empty"


def test_what_was_measured_stands_in_the_words_of_the_report() -> None:
    profile = Profile(
        file="a.pb",
        status="ok",
        device=Device(kind="gpu", name="V100"),
        steps=12,
        step_time_ms=StepTime(mean=68.1, median=66, min=47, max=120),
        input_wait_ms=InputWait(mean=21.2),
        input_wait_share=0.311,
        executed_pipeline=("TensorSlice", "Map"),
        branches=(("Range", "Map"),),
        stages=(STAGE.model_copy(update={"blocking_ms": Blocking(mean=20, median=19, p95=70)}),),
        slowest_stage="Map",
        top_ops=(Op(name="d/D", type="DecodeJpeg", where="host", count=384, self_ms=200, share=0.5),),
        notes=("12 complete steps used.",),
    )
    text = describe(profile)
    for part in (
        "gpu (V100)",
        "68.1 ms mean of 12",
        "21.2 ms a step, 31 %",
        "pipeline      TensorSlice > Map",
        "  and         Range > Map",
        "Map <- slowest",
        "DecodeJpeg  d/D",
        "note: 12 complete steps used.",
    ):
        assert part in text


def test_of_two_stages_of_one_operator_the_blocking_one_is_marked() -> None:
    stages = tuple(
        STAGE.model_copy(update={"count": count, "blocking_ms": Blocking(mean=mean, median=mean, p95=mean)})
        for count, mean in ((11, 0.1), (22, 9.0))
    )
    text = describe(Profile(file="a.pb", status="ok", stages=stages, slowest_stage="Map"))
    (marked,) = (line for line in text.splitlines() if "<- slowest" in line)
    assert "22" in marked


def test_what_was_not_measured_is_a_dash() -> None:
    text = describe(Profile(file="a.pb", status="ok", stages=(STAGE,)))
    assert "step time     – (no step markers)" in text
    row = next(line for line in text.splitlines() if line.startswith("Map"))
    assert row.split()[-1] == row.split()[-2] == "–"
    assert "0.00" not in text
