"""The addresses of the pages, and who may see them.

    /runs                                all runs, newest first
    /runs/{run_id}/report                the report of one run
    /runs/{run_id}/files                 what of it can be taken away
    /runs/{run_id}/files/{name}          one file
    /trends                              every variant's step time over the nights, in a line each
    /trends/{series}                     one of them as a picture, with all its nights
    /dags/{dag_id}/runs/{run_id}/report  the tab on a run, which Airflow shows on the runs of every DAG

Airflow puts no guard before a plugin's app. Here every route asks for a user, and for that user's right to read the
runs of the DAG; what nobody may ask for is not found. Run ids and file names are compared with listings of what is
there, never joined to a path.
"""

from http import HTTPStatus
from typing import Annotated
from urllib.parse import quote

from airflow.api_fastapi.common.db.common import SessionDep
from airflow.api_fastapi.core_api.security import DagAccessEntity, get_user, requires_access_dag
from airflow.models import DagRun
from fastapi import Depends, FastAPI, HTTPException, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, HTMLResponse, Response, StreamingResponse
from sqlalchemy import select
from starlette.exceptions import HTTPException as AnyHTTPException

from benchmark_pages.headers import SafeHeaders
from benchmark_pages.listing import ACTIVE, Known, Row, run_row, runs_page
from benchmark_pages.pages import notice, page, report_page
from benchmark_pages.trends import RECALLED, SPARK_HEIGHT, SPARK_NIGHTS, SPARK_WIDTH, overview, trend_page
from feedbench.store import RunFolder, Store

DAG_ID = "input_pipeline_benchmark"
CHUNK_BYTES = 1 << 20
READ = {"methods": ["GET", "HEAD"], "response_class": HTMLResponse}

# The DAG is named here, not taken from the request: a parameter dag_id would otherwise choose which right is asked for.
may_read_reports = Depends(requires_access_dag("GET", DagAccessEntity.RUN, DAG_ID))
may_read_that_dag = Depends(requires_access_dag("GET", DagAccessEntity.RUN))

RunId = Annotated[str, Path()]

# No redirects to an address with or without a last slash: they are sent before anybody has been asked who they are.
site = FastAPI(
    dependencies=[Depends(get_user)], docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False
)
app = SafeHeaders(site)


def known_runs(session: SessionDep) -> dict[str, Known]:
    """What Airflow knows of the DAG's runs, by run id."""
    found = session.execute(select(DagRun.run_id, DagRun.state, DagRun.run_after).where(DagRun.dag_id == DAG_ID))
    return {run_id: Known(str(state), run_after) for run_id, state, run_after in found}


KnownRuns = Annotated[dict[str, Known], Depends(known_runs)]


@site.api_route("/runs", **READ, dependencies=[may_read_reports])
def runs(request: Request, known: KnownRuns, number: Annotated[int, Query(alias="page", ge=1, le=10**6)] = 1):
    return page(request, "runs.html.j2", it=runs_page(Store(), known, number), dag_id=DAG_ID)


@site.api_route("/runs/{run_id}/report", **READ, dependencies=[may_read_reports])
def report(request: Request, run_id: RunId, known: KnownRuns):
    folder = find_run(run_id)
    if folder is not None and "report.html" in folder.files():
        return report_page(request, run_id, folder.report_html.read_bytes())
    if folder is None and run_id not in known:
        raise HTTPException(HTTPStatus.NOT_FOUND, "There is no such benchmark run.")
    return no_report(request, run_row(folder, run_id, known))


@site.api_route("/dags/{dag_id}/runs/{run_id}/report", **READ, dependencies=[may_read_that_dag])
def report_tab(request: Request, dag_id: str, run_id: RunId, known: KnownRuns):
    if dag_id != DAG_ID:
        text = f"Only the runs of the DAG {DAG_ID} have a benchmark report."
        return notice(request, HTTPStatus.NOT_FOUND, "No report here", text)
    return report(request, run_id, known)


@site.api_route("/runs/{run_id}/files", **READ, dependencies=[may_read_reports])
def files(request: Request, run_id: RunId, known: KnownRuns):
    folder = found_run(run_id)
    return page(request, "files.html.j2", run=run_row(folder, run_id, known), files=folder.files())


@site.api_route("/runs/{run_id}/files/{name:path}", **READ, dependencies=[may_read_reports])
def file(request: Request, run_id: RunId, name: str):
    folder = found_run(run_id)
    size = folder.files().get(name)
    if size is None:
        raise HTTPException(HTTPStatus.NOT_FOUND, "This run has no such file.")
    return download(request, folder, name, size)


@site.api_route("/trends", **READ, dependencies=[may_read_reports])
def trends(request: Request):
    sizes = {
        "spark_nights": SPARK_NIGHTS, "spark_width": SPARK_WIDTH, "spark_height": SPARK_HEIGHT, "recalled": RECALLED
    }  # fmt: skip
    return page(request, "trends.html.j2", groups=overview(Store()), **sizes)


@site.api_route("/trends/{series}", **READ, dependencies=[may_read_reports])
def trend(request: Request, series: str):
    found = trend_page(Store(), series)
    if found is None:
        raise HTTPException(HTTPStatus.NOT_FOUND, "There is no such series.")
    return page(request, "trend.html.j2", it=found)


def find_run(run_id: str) -> RunFolder | None:
    store = Store()
    return store.run(run_id) if run_id in store.run_ids() else None


def found_run(run_id: str) -> RunFolder:
    folder = find_run(run_id)
    if folder is None:
        raise HTTPException(HTTPStatus.NOT_FOUND, "There is no such benchmark run, or it has left no file yet.")
    return folder


def no_report(request: Request, run: Row) -> HTMLResponse:
    if run.state in ACTIVE:
        text = f"The run is {run.state}; its report is written at the end. This page looks again every 15 seconds."
        return notice(request, HTTPStatus.NOT_FOUND, "No report yet", text, refresh_s=15)
    return notice(request, HTTPStatus.NOT_FOUND, "No report", f"{run.state}. {run.verdict}")


def download(request: Request, folder: RunFolder, name: str, size: int) -> Response:
    """A file to keep, never one to look at in the browser: whatever is in it, it does not run here."""
    path, as_name = folder.path / name, f"{folder.run_id}-{name.removeprefix('trials/').replace('/', '-')}"
    if Store().is_local:
        return FileResponse(path, media_type="application/octet-stream", filename=as_name)
    headers = {"content-length": str(size), "content-disposition": f"attachment; filename*=utf-8''{quote(as_name)}"}
    if request.method == "HEAD":
        return Response(headers=headers, media_type="application/octet-stream")

    def chunks():
        with path.open("rb") as content:
            while chunk := content.read(CHUNK_BYTES):
                yield chunk

    return StreamingResponse(chunks(), headers=headers, media_type="application/octet-stream")


@site.exception_handler(AnyHTTPException)
def refused(request: Request, error: AnyHTTPException) -> HTMLResponse:
    """What is refused, and why. A method that is not served is not found: strangers learn nothing from a 405."""
    if error.status_code == HTTPStatus.UNAUTHORIZED:
        airflow = request.scope.get("app_root_path", "")
        sign_in = f"{airflow}/api/v2/auth/login?next={quote(str(request.url), safe='')}"
        return notice(request, 401, "Please sign in", "This page is for users of this Airflow.", sign_in=sign_in)
    if error.status_code == HTTPStatus.FORBIDDEN:
        return notice(request, 403, "Not allowed", "Reading this needs the right to read the runs of the DAG.")
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        return nothing_here(request, error)
    return notice(request, error.status_code, "Not found", str(error.detail))


@site.exception_handler(RequestValidationError)
def nothing_here(request: Request, error: Exception) -> HTMLResponse:
    return notice(request, HTTPStatus.NOT_FOUND, "Not found", "There is no such page.")
