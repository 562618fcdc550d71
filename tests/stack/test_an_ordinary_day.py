"""What a team does with it on an ordinary day, in a browser: sign in, trigger with the form, watch, read the report.

The artefacts are on an object store. Screenshots are kept in build/stack-screenshots.
"""

import re

import httpx
import pytest

from stack.airflow_client import DAG
from stack.screens import open_page, sign_in, snap

pytestmark = [pytest.mark.stack, pytest.mark.timeout(900)]

FORM = {
    "Data": {"source": "synthetic", "photos": "60"},
    "Training": {"emulated_step_ms": "20", "weights": "none", "batch_size": "8", "image_size": "64"},
    "Measurement": {"rounds": "1", "steps": "5", "warmup_steps": "2", "profile_steps": "5"},
}


@pytest.fixture
def signed_in(page, stack):
    sign_in(page, "admin", stack.variables["AIRFLOW_ADMIN_PASSWORD"])
    return page


def choose(dialog, field: str, *titles: str) -> None:
    """Pick from a drop-down list of the form."""
    box = dialog.locator(f"#element_{field}")
    for title in titles:
        box.get_by_role("combobox").fill(title)
        box.get_by_role("option", name=title, exact=True).click()


def fill_form(page, dialog) -> None:
    """Every section, as a person does it; only one is open at a time."""
    for section, values in FORM.items():
        dialog.get_by_role("button", name=section, exact=True).click()
        if section == "Training":
            choose(dialog, "accelerator", "emulated")
        for field, value in values.items():
            dialog.locator(f"[name=element_{field}]").fill(value)
        snap(page, f"form-{section.lower()}")
    dialog.get_by_role("button", name="Pipelines", exact=True).click()
    dialog.get_by_label("Clear selected options").first.click()
    choose(dialog, "variants", "naive", "prefetch", "parallel map")
    snap(page, "form-pipelines")


@pytest.fixture(scope="module")
def run_id(browser, stack, airflow) -> str:
    """A run that was triggered with the form, and has ended."""
    with open_page(browser, stack.address("8080"), "form-last") as page:
        sign_in(page, "admin", stack.variables["AIRFLOW_ADMIN_PASSWORD"])
        page.goto(f"/dags/{DAG}")
        page.get_by_role("button", name="Trigger").first.click()
        dialog = page.get_by_role("dialog")
        fill_form(page, dialog)
        dialog.get_by_role("button", name="Trigger", exact=True).click()
        dialog.wait_for(state="hidden")
    run_id = airflow.get(f"/dags/{DAG}/dagRuns")["dag_runs"][0]["dag_run_id"]
    airflow.wait(run_id, 400)
    return run_id


class TestForm:
    def test_what_was_typed_is_what_ran(self, run_id, remote_store):
        settings = remote_store.run(run_id).read_run().settings
        assert settings.variants == ("naive", "prefetch", "parallel_map")
        assert (settings.accelerator, settings.emulated_step_ms, settings.photos) == ("emulated", 20, 60)


class TestGrid:
    def test_all_tasks_succeed_and_trials_are_named(self, run_id, airflow, signed_in):
        states = airflow.states(run_id)
        trials = {f"train[{name} #1]" for name in ("naive", "prefetch", "parallel_map", "ceiling")}
        assert states == dict.fromkeys({"download", "index", "plan", "compare", "gate"} | trials, "success")
        signed_in.goto(f"/dags/{DAG}/runs/{run_id}/tasks/train/mapped")
        signed_in.get_by_text("naive #1").first.wait_for()
        snap(signed_in, "grid")

    def test_a_trials_log_tells_what_it_does_and_found(self, run_id, airflow, signed_in):
        lines = [line["event"] for line in airflow.log(run_id, "train[naive #1]")]
        assert "starting TensorFlow" in lines
        assert any(re.fullmatch(r"training: \d+ of \d+ steps.*", line) for line in lines)
        assert any(re.fullmatch(r"naive #1: [\d.]+ ms a step over \d+ steps", line) for line in lines)


class TestReport:
    def test_the_tab_on_the_run_shows_the_verdict(self, run_id, remote_store, signed_in):
        verdict = remote_store.run(run_id).read_comparison().verdict
        signed_in.goto(f"/dags/{DAG}/runs/{run_id}")
        signed_in.get_by_role("link", name="Report", exact=True).click()
        frame = signed_in.frame_locator("iframe")
        frame.get_by_text(verdict).first.wait_for()
        snap(signed_in, "report-tab")

    def test_the_runs_page_lists_it(self, run_id, remote_store, signed_in):
        verdict = remote_store.run(run_id).read_comparison().verdict
        signed_in.goto("/benchmark/runs")
        signed_in.get_by_text(verdict).first.wait_for()
        snap(signed_in, "runs-page")
        signed_in.get_by_role("link", name="Report", exact=True).first.click()
        signed_in.get_by_text(verdict).first.wait_for()

    def test_a_viewer_reaches_it_by_the_link_on_the_compare_task(self, run_id, stack, airflow, remote_store, page):
        """Airflow shows a viewer no tabs of plugins; links of a task stand among its details."""
        airflow.add_user("reader", "Viewer", "reader-password")
        sign_in(page, "reader", "reader-password")
        page.goto(f"/dags/{DAG}/runs/{run_id}/tasks/compare/details")
        link = page.get_by_role("link", name="Benchmark report")
        link.wait_for()
        snap(page, "viewer-compare-task")
        page.goto(link.get_attribute("href"))
        page.get_by_text(remote_store.run(run_id).read_comparison().verdict).first.wait_for()


class TestObjectStore:
    def test_everything_of_the_run_is_there(self, run_id, remote_store):
        """Trials wrote on their worker's disk and uploaded at the end: records, profiles, event files."""
        run = remote_store.run(run_id)
        assert {"comparison.json", "report.html", "report.md"} <= set(run.files())
        for planned in run.read_run().trials:
            folder = run.trial(planned)
            assert folder.read_trial().status == "ok"
            assert len(folder.xplanes()) == 1

    def test_nothing_was_kept_on_the_workers_artefacts_folder(self, run_id, stack):
        assert not list(stack.native("/artifacts").iterdir())


class TestTensorBoard:
    def test_it_lists_the_profile_of_every_trial(self, run_id, stack):
        """On the object store too, and without TensorFlow: it runs from the slim image."""
        answer = httpx.get(f"{stack.address('6006')}/data/plugin/profile/runs", timeout=60)
        found = [profile for profile in answer.raise_for_status().json() if profile.startswith(f"{run_id}/")]
        assert {profile.split("/")[2] for profile in found} == {"naive", "prefetch", "parallel_map", "ceiling"}
        assert len(found) == 4
