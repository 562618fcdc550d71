"""Three nights in a row, the third with something wrong: it is red, says what changed, and somebody gets a mail.

Twice, on the same two good nights: a user's function that got slow, and a worker that lost half of its cores.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

import psutil
import pytest
from airflow_client import AirflowClient
from native import NativeStack, wait_for
from screens import sign_in, snap

from feedbench.store import Store

pytestmark = [pytest.mark.stack, pytest.mark.timeout(900)]

CONF = {
    "source": "synthetic", "photos": 200, "weights": "none", "variants": ["checked"], "rounds": 1,
    "variant_modules": ["house_pipelines"], "image_size": 160, "batch_size": 16, "steps": 100, "warmup_steps": 4,
    "profile_steps": 10, "accelerator": "emulated", "emulated_step_ms": 1,
}  # fmt: skip
"""Nothing but decoding takes time: a core less is felt, and so is a pause for each photo."""
BUSY_PERCENT = 40
"""Of all cores: where others take more, one core less is not felt."""
GOOD, SLOW = "PAUSE_S = 0\n", "PAUSE_S = 0.01\n"
MODULE = """
import dataclasses, time
from feedbench.pipelines.steps import AUTO, Batch, Decode, Prefetch, Repeat, Shuffle
from feedbench.pipelines.variants import Variant

PAUSE_S = 0

@dataclasses.dataclass(frozen=True)
class Check:
    operators = ("Map",)

    def __call__(self, dataset):
        import tensorflow as tf

        def check(image):
            time.sleep(PAUSE_S)
            return image

        def checked(image, label):
            return tf.ensure_shape(tf.numpy_function(check, [image], image.dtype), image.shape), label

        return dataset.map(checked)

STEPS = (Decode(parallel=AUTO), Check(), Shuffle(), Repeat(), Batch(), Prefetch(AUTO))
VARIANTS = (Variant("checked", steps=STEPS, why="a look at each photo"),)
"""


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
def night_of_the_pause(good_nights, stack, airflow) -> str:
    """The user has edited the function: ten milliseconds more for each photo, 160 for a step of some thirty."""
    module = stack.native("/variants") / "house_pipelines.py"
    module.write_text(MODULE.replace(GOOD, SLOW))
    run_id = night(airflow)
    module.write_text(MODULE)
    return run_id


@pytest.fixture(scope="module")
def night_of_few_cores(night_of_the_pause, stack, airflow) -> str:
    allowed = sorted(psutil.Process().cpu_affinity())
    if len(allowed) == 1:
        pytest.skip("this machine has one core, and no half of it to take away")
    if (busy := psutil.cpu_percent(5)) > BUSY_PERCENT:
        pytest.skip(f"others keep {busy:.0f} % of this machine busy: half of its cores would not be missed")
    with confined(stack, "worker-cpu", allowed[: len(allowed) // 2]):
        return night(airflow)


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
    def test_they_are_green_and_nobody_is_told(self, good_nights, night_of_the_pause, airflow, inbox):
        """The mail about the red night after them has come before anybody looks."""
        assert [airflow.state(run_id) for run_id in good_nights] == ["success", "success"]
        wait_for("the mail about the red night", lambda: inbox.about(night_of_the_pause), 60)
        assert [mail["subject"] for run_id in good_nights for mail in inbox.about(run_id)] == []


class TestAPauseInTheMap:
    def test_the_run_is_red_and_its_gate_names_variant_size_and_cause(self, night_of_the_pause, airflow):
        """Slower by a factor: 160 ms on a step that decoding makes some thirty long."""
        assert airflow.state(night_of_the_pause) == "failed"
        assert re.search(
            r"checked \+\d{3,} % \[.+\] since .+: self time of Map \+", said_by_the_gate(airflow, night_of_the_pause)
        )

    def test_the_report_names_the_same(self, night_of_the_pause, on_local_disk):
        told = since_last_night(on_local_disk, night_of_the_pause)
        assert re.search(r"- checked .*\d{3,} %", told)
        assert "self time of Map +" in told

    def test_a_mail_names_the_same_and_where_to_read_it(self, night_of_the_pause, inbox, stack):
        address = f"{stack.address('8080')}/benchmark/runs/{quote(night_of_the_pause, safe='')}/report"
        assert_mail(inbox, night_of_the_pause, "is red", "checked +", "self time of Map +", address)


class TestHalfOfTheCores:
    def test_the_run_is_red_and_gate_report_and_mail_name_the_cores(
        self, night_of_few_cores, airflow, on_local_disk, inbox
    ):
        all_of_them = len(psutil.Process().cpu_affinity())
        cause = f"cores {all_of_them} → {all_of_them // 2}"
        assert airflow.state(night_of_few_cores) == "failed"
        gate = said_by_the_gate(airflow, night_of_few_cores)
        assert re.search(rf"checked \+\d+ % \[[^|]*{cause}", gate)
        assert re.search(
            rf"- checked .*\n(  - .*\n)*  - {cause}\n", since_last_night(on_local_disk, night_of_few_cores)
        )
        assert_mail(inbox, night_of_few_cores, "checked +", cause)


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
        signed_in.get_by_role("link", name="checked", exact=True).last.click()
        nights = signed_in.locator("table.nights th a")
        nights.first.wait_for()
        snap(signed_in, "trend")
        expected = [f"/benchmark/runs/{quote(run_id, safe='')}/report" for run_id in (*good_nights, night_of_the_pause)]
        assert [link.get_attribute("href") for link in nights.all()] == expected[::-1]

    def test_the_address_in_the_mail_is_the_report(self, night_of_the_pause, inbox, signed_in):
        [mail] = inbox.about(night_of_the_pause)
        signed_in.goto(re.search(r'href="([^"]+)"', mail.get_body().get_content())[1])
        signed_in.get_by_text("self time of Map").first.wait_for()
