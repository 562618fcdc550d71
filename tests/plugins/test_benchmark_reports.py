"""The plugin inside a real Airflow, under both auth managers: what it shows, and to whom."""

import itertools
import json
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote, urlsplit

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from planted.run_folders import BROKEN, DAG_ID, FINISHED, INSIDE, LINKED, PROFILE, QUEUED, RUNNING, SECRET, series_of

pytestmark = pytest.mark.airflow

RUNS, TRENDS = "/benchmark/runs", "/benchmark/trends"
TREND = f"{TRENDS}/{series_of(FINISHED)}"
VERDICT = b"1.43"
CLOSED = {401, 403, 404}
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
PROJECT = Path(__file__).parents[2]


def address(run_id, rest):
    return f"{RUNS}/{quote(run_id, safe='')}/{rest}"


def tab(run_id, dag_id=DAG_ID):
    return f"/benchmark/dags/{dag_id}/runs/{quote(run_id, safe='')}/report"


SERVED = [
    RUNS,
    f"{RUNS}?page=1",
    TRENDS,
    TREND,
    address(FINISHED, "report"),
    tab(FINISHED),
    address(FINISHED, "files"),
    address(FINISHED, "files/report.md"),
    address(FINISHED, "files/comparison.json"),
    address(FINISHED, "files/rejects.csv"),
    address(FINISHED, f"files/{PROFILE}"),
]
OTHERS = [
    "/benchmark/",
    "/benchmark/docs",
    "/benchmark/redoc",
    "/benchmark/openapi.json",
    f"{RUNS}/",
    f"{RUNS}?page=x",
    f"{RUNS}?dag_id=other",
    f"{address(FINISHED, 'report')}?dag_id=other",
    f"{address(FINISHED, 'report')}/",
    tab(FINISHED, "~"),
    tab(FINISHED, "other"),
    tab(RUNNING),
    address(BROKEN, "report"),
    address(LINKED, "report"),
    address("nowhere", "files"),
    f"{TRENDS}/nonsense",
    f"{TRENDS}/",
]


def is_safe(answer):
    """The headers of every answer of the plugin, as a browser needs them to keep a page from doing anything."""
    policy = answer.headers.get("content-security-policy", "")
    return (
        "default-src 'none'" in policy
        and "script-src" not in policy
        and "frame-ancestors 'self'" in policy
        and answer.headers.get("x-content-type-options") == "nosniff"
        and answer.headers.get("cache-control") == "no-store"
    )


# ---- nobody gets in ----------------------------------------------------------------------------------------------


def strangers(airflow):
    yield "anonymous", {}
    for token in ("nonsense", airflow.tokens["viewer"][:-4] + "AAAA", ""):
        yield f"token {token[-8:]!r}", {"Authorization": f"Bearer {token}"}
        yield f"cookie {token[-8:]!r}", {"Cookie": f"_token={token}"}
    yield "stranger", {"Authorization": f"Bearer {airflow.tokens['stranger']}"}
    yield "stranger by cookie", {"Cookie": f"_token={airflow.tokens['stranger']}"}


def test_those_without_rights_are_told_nothing_but_no(airflow):
    """Every address by every method: 401, 403 or 404, with the safe headers and without a word from any run."""
    targets, wrong = [*SERVED, *OTHERS], []
    for (who, headers), target, method in itertools.product(strangers(airflow), targets, METHODS):
        answer = airflow.ask(target, method=method, headers=headers)
        told = any(words in answer.body for words in (VERDICT, INSIDE, SECRET))
        if answer.status not in CLOSED or told or not is_safe(answer):
            wrong.append((who, method, target, answer.status))
    assert wrong == []


def test_the_walk_knows_every_route(airflow):
    """A route that the walk above does not reach is not guarded by a test."""
    reached = {
        "/runs": RUNS,
        "/runs/{run_id}/report": address(FINISHED, "report"),
        "/dags/{dag_id}/runs/{run_id}/report": tab(FINISHED),
        "/trends": TRENDS,
        "/trends/{series}": TREND,
        "/runs/{run_id}/files": address(FINISHED, "files"),
        "/runs/{run_id}/files/{name:path}": address(FINISHED, f"files/{PROFILE}"),
    }
    assert set(airflow.addresses) == set(reached)
    assert set(reached.values()) <= set(SERVED)


@pytest.mark.parametrize("who", ["viewer", "admin"])
def test_those_with_rights_are_served(airflow, who):
    """The same addresses answer 200 to GET and HEAD, by header or cookie, so that the refusals above mean something."""
    cookie = {"Cookie": f"_token={airflow.tokens[who]}"}
    for target in SERVED:
        answers = [airflow.ask(target, who), airflow.ask(target, method="HEAD", headers=cookie)]
        assert [answer.status for answer in answers] == [200, 200], target
        assert all(map(is_safe, answers)), target
        assert answers[0].body
        assert not answers[1].body
        assert airflow.ask(target, who, method="POST").status == 404


def test_a_right_on_another_dag_opens_no_run_of_this_one(airflow):
    """The stranger of FAB may read the DAG `other`; naming it in the request changes nothing."""
    for target in (f"{RUNS}?dag_id=other", f"{address(FINISHED, 'report')}?dag_id=other", tab(FINISHED)):
        assert airflow.ask(target, "stranger").status == 403


def test_who_is_not_signed_in_is_shown_the_way(airflow):
    answer = airflow.ask(f"{RUNS}?page=2")
    assert answer.status == 401
    assert "/api/v2/auth/login?next=" in answer.text


# ---- what it shows -----------------------------------------------------------------------------------------------


def test_the_runs_page_has_a_row_for_each_state(airflow):
    """Newest first: queued without a folder, running, broken, done; the linked folder is no run."""
    page = airflow.ask(RUNS, "viewer").text
    places = [page.index(word) for word in (QUEUED, "queued", RUNNING, "running", BROKEN, "broken file", FINISHED)]
    assert places == sorted(places)
    assert LINKED not in page
    assert "Ship prefetch" in page
    assert page.count(">Files</a>") == 3  # all but the queued one, which has no folder yet
    assert "<script" not in page


def test_the_report_stands_in_the_tab_with_links_above_it(airflow):
    page = airflow.ask(tab(FINISHED), "viewer")
    assert INSIDE in page.body
    assert page.text.index(address(FINISHED, "files")) < page.text.index("<h1>")


@pytest.mark.parametrize(
    ("target", "says"),
    [
        (tab(RUNNING), "The run is running"),
        (tab(QUEUED), "The run is queued"),
        (tab(BROKEN), "broken file"),
        (tab("nowhere"), "no such benchmark run"),
        (tab("any", "other"), f"Only the runs of the DAG {DAG_ID}"),
    ],
)
def test_a_tab_without_a_report_says_why(airflow, target, says):
    answer = airflow.ask(target, "admin")
    assert answer.status == 404
    assert says in answer.text
    assert answer.headers["content-type"].startswith("text/html")


def test_files_are_for_keeping(airflow):
    """Whole, byte for byte, as attachments that no browser opens by itself."""
    answer = airflow.ask(address(FINISHED, f"files/{PROFILE}"), "viewer")
    assert answer.body == INSIDE * 10_000
    assert answer.headers["content-disposition"].startswith("attachment")
    assert answer.headers["content-type"] == "application/octet-stream"


def test_links_out_of_the_folder_are_not_there(airflow):
    """A linked run, a linked report, a linked profile and a profile in a linked folder."""
    profiles = PROFILE.rpartition("/")[0]
    targets = [
        address(LINKED, "report"),
        address(LINKED, "files"),
        address(BROKEN, "report"),
        address(BROKEN, "files/report.html"),
        address(FINISHED, f"files/{profiles}/linked.xplane.pb"),
        address(FINISHED, f"files/{profiles.rpartition('/')[0]}/linked/worker.xplane.pb"),
    ]
    for target in targets:
        answer = airflow.ask(target, "admin")
        assert (answer.status, SECRET in answer.body) == (404, False), target


# ---- hostile names -----------------------------------------------------------------------------------------------

pieces = st.one_of(
    st.sampled_from(["..", ".", "/", "\\", "%2e%2e", "%2f", "%00", "\0", "\n", "~", "<script>", "'\"", "\u202e"]),
    st.sampled_from([FINISHED, LINKED, BROKEN, "runs", "etc/passwd", "report.html", "files", PROFILE, "summary.json"]),
    st.text(max_size=20),
)
names = st.lists(pieces, min_size=1, max_size=6).map("".join)


def encoded(text):
    """As it may come over the wire: escaped once, twice, or with the slashes and dots left alone."""
    once = quote(text, safe="", errors="replace")
    return st.sampled_from([once, quote(once, safe=""), quote(text, safe="/.~\\'", errors="replace")])


targets = st.one_of(
    names.flatmap(encoded).map(lambda name: f"{RUNS}/{name}/report"),
    names.flatmap(encoded).map(lambda name: f"{RUNS}/{name}/files/report.html"),
    names.flatmap(encoded).map(lambda name: address(FINISHED, f"files/{name}")),
    names.flatmap(encoded).map(lambda name: f"/benchmark/dags/{DAG_ID}/runs/{name}/report"),
    names.flatmap(encoded).map(lambda name: f"/benchmark/dags/{name}/runs/{quote(FINISHED)}/report"),
    names.flatmap(encoded).map(lambda name: f"{RUNS}?page={name}"),
)
AIRFLOWS_OWN = b'{"detail":"Not Found"}'
bounded = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def reached(airflow, target, *who):
    """A path with a line break never reaches the plugin: Airflow's own router answers, and may drop a slash before."""
    answer = airflow.ask(target, *who)
    if answer.status == 307 and "%0A" in target.upper():
        return airflow.ask(urlsplit(answer.headers["location"]).path, *who)
    return answer


@bounded
@given(target=targets)
@example(target=address(FINISHED, "files/%0A%2F"))
def test_hostile_names_reach_nothing(airflow, target):
    """To a reader: what a listing names, 404, or no for another DAG. To all others: no. Never a word from outside."""
    answer = reached(airflow, target, "viewer")
    assert answer.status in {200, 403, 404}
    assert is_safe(answer) or answer.body == AIRFLOWS_OWN  # a line break in the path never reaches the plugin
    assert SECRET not in answer.body
    assert b"root:" not in answer.body
    assert b"<script" not in answer.body
    assert reached(airflow, target).status in CLOSED
    assert reached(airflow, target, "stranger").status in CLOSED


# ---- in Airflow's eyes -------------------------------------------------------------------------------------------


def test_airflow_takes_the_plugin_whole(airflow):
    """A view that Airflow does not understand hides the whole plugin without a word."""
    assert airflow.api("/plugins/importErrors")["import_errors"] == []
    plugin = next(it for it in airflow.api("/plugins")["plugins"] if it["name"] == "benchmark_reports")
    views = {view["destination"]: view for view in plugin["external_views"]}
    assert set(views) == {"nav", "dag_run"}
    runs = airflow.ask(f"/{views['nav']['href']}", "viewer")
    href = views["dag_run"]["href"].replace("{DAG_ID}", DAG_ID).replace("{RUN_ID}", quote(FINISHED, safe=""))
    assert (runs.status, airflow.ask(f"/{href}", "viewer").status) == (200, 200)


def test_the_task_that_reports_has_a_link_and_no_other_has(airflow):
    base = f"/dags/{DAG_ID}/dagRuns/{quote(FINISHED, safe='')}/taskInstances"
    link = airflow.api(f"{base}/compare/links")["extra_links"]
    assert link == {"Benchmark report": address(FINISHED, "report")}
    assert airflow.ask(link["Benchmark report"], "viewer").status == 200
    assert airflow.api(f"{base}/gate/links")["extra_links"] == {}


# ---- what it imports ---------------------------------------------------------------------------------------------

HEAVY = {"tensorflow", "keras", "pandas", "numpy", "scipy", "matplotlib", "pyarrow", "feedbench.report.render"}


def imported(statement, tmp_path):
    """Modules in a fresh interpreter after a statement."""
    program = f"import json, sys\n{statement}\nprint(json.dumps(list(sys.modules)))"
    variables = {"PYTHONPATH": f"{PROJECT}/include:{PROJECT}/plugins", "AIRFLOW_HOME": str(tmp_path)}
    child = subprocess.run([sys.executable, "-c", program], env=variables, capture_output=True, text=True, check=True)
    return set(json.loads(child.stdout.splitlines()[-1]))


def test_the_pages_are_drawn_without_the_heavy_libraries(tmp_path):
    """Airflow itself imports some of them on some set-ups: what counts is what our import adds."""
    airflow_alone = imported("import airflow.api_fastapi.core_api.security", tmp_path)
    ours = imported("import airflow.api_fastapi.core_api.security, benchmark_reports, benchmark_pages.app", tmp_path)
    assert "feedbench.store" in ours
    assert HEAVY & (ours - airflow_alone) == set()


def test_a_task_process_does_not_pay_for_the_pages(tmp_path):
    """Every process that runs a task imports the plugin: of ours, two modules."""
    loaded = imported("import benchmark_reports", tmp_path)
    ours = {name for name in loaded if name.startswith(("feedbench", "benchmark"))}
    assert ours == {"benchmark_reports", "benchmark_link"}
    assert "airflow.api_fastapi.core_api.security" not in loaded
