"""Three nights in a row, the third with something wrong: it is red, says what changed, and somebody gets a mail.

Twice, on the same two good nights: a worker that lost half of its cores, and a user's function that got slow. In this
order, for a night of fewer cores is of another series: the slow function is held against the good nights alone too.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

import psutil
import pytest

from feedbench.store import Store
from stack.airflow_client import AirflowClient
from stack.native import NativeStack, wait_for
from stack.screens import sign_in, snap

pytestmark = [pytest.mark.stack, pytest.mark.timeout(900)]

CONF = {
    "source": "synthetic", "photos": 100, "weights": "none", "variants": ["checked"], "rounds": 1,
    "variant_modules": ["house_pipelines"], "image_size": 32, "batch_size": 16, "steps": 50, "warmup_steps": 4,
    "profile_steps": 10, "accelerator": "emulated", "emulated_step_ms": 10,
}  # fmt: skip
MODULE = """
import dataclasses, os, time
from feedbench.pipelines.steps import Batch, Decode, Prefetch, Repeat, Shuffle
from feedbench.pipelines.variants import Variant

@dataclasses.dataclass(frozen=True)
class Check:
    operators = ("ParallelMapV2",)

    def __call__(self, dataset):
        import tensorflow as tf

        def check(image):
            time.sleep(0.005)
            return image

        def checked(image, label):
            return tf.ensure_shape(tf.numpy_function(check, [image], image.dtype), image.shape), label

        return dataset.map(checked, num_parallel_calls=len(os.sched_getaffinity(0)))

STEPS = (Decode(), Check(), Shuffle(), Repeat(), Batch(), Prefetch(2))
VARIANTS = (Variant("checked", steps=STEPS, why="somebody else is asked about each photo, by every core at once"),)
"""
"""Waiting takes nearly all of a step, whatever else the machine has to do meanwhile: 5 ms a photo, a photo on each core
at a time, makes at least 40 ms a step on two cores and 80 on one."""
SLOW = MODULE.replace("sleep(0.005)", "sleep(0.03)")


def night(airflow: AirflowClient) -> str:
    """Runs the benchmark to its end; returns the run's id."""
    run_id = airflow.trigger(CONF)
    airflow.wait(run_id, 400)
    return run_id


@pytest.fixture(scope="module")
def good_nights(stack, airflow, on_local_disk) -> list[str]:
    (stack.native("/variants") / "house_pipelines.py").write_text(MODULE)
    return [night(airflow), night(airflow)]


@pytest.fixture(scope="module")
def night_of_few_cores(good_nights, stack, airflow) -> str:
    allowed = sorted(psutil.Process().cpu_affinity())
    if len(allowed) == 1:
        pytest.skip("this machine has one core, and no half of it to take away")
    with confined(stack, "worker-cpu", allowed[: len(allowed) // 2]):
        return night(airflow)


@pytest.fixture(scope="module")
def night_of_the_pause(good_nights, stack, airflow) -> str:
    """The user has edited the function: it waits six times as long."""
    module = stack.native("/variants") / "house_pipelines.py"
    module.write_text(SLOW)
    run_id = night(airflow)
    module.write_text(MODULE)
    return run_id


@contextmanager
def confined(stack: NativeStack, service: str, cores: list[int]) -> Iterator[None]:
    """As `docker update --cpuset-cpus` does it: the service's processes, and all that they start meanwhile."""
    before = psutil.Process().cpu_affinity()
    try:
        confine(stack, service, cores)
        yield
    finally:
        confine(stack, service, before)


def confine(stack: NativeStack, service: str, cores: list[int]) -> None:
    top = psutil.Process(stack.running[service].pid)
    for process in (top, *top.children(recursive=True)):
        process.cpu_affinity(cores)


def since_last_night(store: Store, run_id: str) -> str:
    """That section of the run's report.md, as it reads."""
    text = store.run(run_id).report_md.read_text().replace("\\", "")
    return text.partition("## Since last night")[2].partition("\n## ")[0]


def said_by_the_gate(airflow: AirflowClient, run_id: str) -> str:
    return " ".join(line["event"] for line in airflow.log(run_id, "gate"))


def assert_mail(inbox, run_id: str, *words: str) -> None:
    """One, with all these words in its subject and body."""
    wait_for(f"a mail about {run_id}", lambda: inbox.about(run_id), 60)
    [mail] = inbox.about(run_id)
    text = f"{mail['subject']} {mail.get_body().get_content()}"
    assert [word for word in words if word not in text] == []


class TestGoodNights:
    def test_they_are_green(self, good_nights, airflow):
        assert [airflow.state(run_id) for run_id in good_nights] == ["success", "success"]


class TestHalfOfTheCores:
    def test_the_run_is_red_and_gate_report_and_mail_name_the_cores(
        self, night_of_few_cores, airflow, on_local_disk, inbox
    ):
        """Half of the photos at once: twice the waiting, and the rest of a step as before. The stage is told first."""
        cores = len(psutil.Process().cpu_affinity())
        lost = f"{cores} → {cores // 2}"
        assert airflow.state(night_of_few_cores) == "failed"
        gate = said_by_the_gate(airflow, night_of_few_cores)
        # On a busy machine the time of the stage itself may have moved, too, and is told with its parallelism.
        stage = rf"(self time of ParallelMapV2 [^|]+, )?parallelism (of ParallelMapV2 )?{lost}"
        change = re.search(rf"checked \+(\d+) % \[[^|]+: {stage}, cores {lost}", gate)
        assert change, gate
        assert 40 < int(change[1]) < 120
        told = since_last_night(on_local_disk, night_of_few_cores)
        assert re.search(rf"- checked .*\n(  - .*\n)*  - cores {lost}\n", told)
        assert_mail(inbox, night_of_few_cores, "is red", "checked +", f"cores {lost}")


class TestAPauseInTheMap:
    def test_the_run_is_red_and_its_gate_names_variant_size_and_cause(self, night_of_the_pause, airflow):
        """Slower by hundreds of per cent, six times the waiting less what else there is in a step."""
        assert airflow.state(night_of_the_pause) == "failed"
        gate = said_by_the_gate(airflow, night_of_the_pause)
        assert re.search(r"checked \+\d{3} % \[.+\] since .+: self time of ParallelMapV2 \+\d{3} %", gate)

    def test_the_report_names_the_same(self, night_of_the_pause, on_local_disk):
        told = since_last_night(on_local_disk, night_of_the_pause)
        assert re.search(r"- checked is \d{3} % slower .*\n  - self time of ParallelMapV2 \+\d{3} %", told)

    def test_a_mail_names_the_same_and_where_to_read_it(self, night_of_the_pause, inbox, stack):
        address = f"{stack.address('8080')}/benchmark/runs/{quote(night_of_the_pause, safe='')}/report"
        assert_mail(inbox, night_of_the_pause, "is red", "checked +", "self time of ParallelMapV2 +", address)

    def test_nobody_was_told_of_the_good_nights_before_it(self, good_nights, night_of_the_pause, inbox):
        """Looked at when the mail about the red night has come."""
        wait_for("the mail about the red night", lambda: inbox.about(night_of_the_pause), 60)
        assert [mail["subject"] for run_id in good_nights for mail in inbox.about(run_id)] == []


class TestPages:
    @pytest.fixture
    def signed_in(self, page, stack):
        sign_in(page, "admin", stack.variables["AIRFLOW_ADMIN_PASSWORD"])
        return page

    def test_trends_leads_to_the_trend_of_the_slow_variant_and_that_to_its_nights(
        self, good_nights, night_of_the_pause, signed_in
    ):
        signed_in.goto("/benchmark/trends")
        for name in ("naive", "checked"):
            signed_in.get_by_role("link", name=name, exact=True).first.wait_for()
        snap(signed_in, "trends")
        signed_in.get_by_role("link", name="checked", exact=True).first.click()
        nights = signed_in.locator("table.nights th a")
        nights.first.wait_for()
        snap(signed_in, "trend")
        expected = [f"/benchmark/runs/{quote(run_id, safe='')}/report" for run_id in (*good_nights, night_of_the_pause)]
        assert [link.get_attribute("href") for link in nights.all()] == expected[::-1]

    def test_the_address_in_the_mail_is_the_report(self, night_of_the_pause, inbox, signed_in):
        [mail] = inbox.about(night_of_the_pause)
        signed_in.goto(re.search(r'href="([^"]+)"', mail.get_body().get_content())[1])
        signed_in.get_by_text("self time of ParallelMapV2").first.wait_for()
