"""A failed run is told to whom the environment names, in the gate's own words, by a real mail to a real SMTP server."""

import json
import socket
import subprocess
import sys
from email import message_from_bytes, policy
from pathlib import Path

import pytest
from aiosmtpd.controller import Controller

from benchmark_notice import ARGUMENTS, CLASS, notice_of, on_failure
from planted.run_folders import FINISHED, finish

pytestmark = pytest.mark.airflow
SMTP = "airflow.providers.smtp.notifications.smtp.SmtpNotifier"
PLUGINS = Path(__file__).parents[2] / "plugins"


OWN_NOTIFIER = """
from airflow.sdk import BaseNotifier
class Own(BaseNotifier):
    def __init__(self): raise RuntimeError("not today")
    def notify(self, context): ...
"""


class Inbox:
    """What the server was handed."""

    def __init__(self):
        self.mails = []

    async def handle_DATA(self, server, session, envelope):
        self.mails.append((envelope, message_from_bytes(envelope.content, policy=policy.default)))
        return "250 OK"


@pytest.fixture
def inbox():
    inbox = Inbox()
    with socket.create_server(("127.0.0.1", 0)) as free:
        inbox.port = free.getsockname()[1]
    server = Controller(inbox, hostname="127.0.0.1", port=inbox.port)
    server.start()
    yield inbox
    server.stop()


@pytest.fixture
def red_run(store, monkeypatch):
    """A run of which one variant failed."""
    folder = finish(store, FINISHED)
    comparison = folder.read_comparison()
    failed = comparison.variants[1].model_copy(
        update={"status": "failed", "reason": "signal 9, probably <out of memory>"}
    )
    folder.write_comparison(
        comparison.model_copy(update={"variants": (comparison.variants[0], failed, *comparison.variants[2:])})
    )
    monkeypatch.setenv("FEEDBENCH_ARTIFACTS", str(store.root))
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://airflow.example.org/team")
    return failed.name


def test_nobody_is_named_nobody_is_told():
    assert on_failure({}) is None


@pytest.mark.parametrize("name", ["nonsense", "airflow.providers.smtp.NoSuch", "no.such.module.Class"])
def test_a_notifier_that_does_not_exist_is_told_when_the_dag_loads(name):
    with pytest.raises(ValueError, match=f"{CLASS}={name}: no such notifier"):
        on_failure({CLASS: name})


@pytest.mark.parametrize("name", ["os.path.join", "feedbench.store.Store"])
def test_what_is_no_notifier_is_told_when_the_dag_loads(name):
    with pytest.raises(ValueError, match="not the class of an Airflow notifier"):
        on_failure({CLASS: name})


def test_a_notifier_that_tells_nobody_is_told_when_the_dag_loads():
    with pytest.raises(ValueError, match=f"{CLASS}=airflow.sdk.BaseNotifier: tells nobody"):
        on_failure({CLASS: "airflow.sdk.BaseNotifier"})


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("raise RuntimeError('not today')", f"{CLASS}=own_notifier.Own: no such notifier .*not today"),
        (OWN_NOTIFIER, f"{ARGUMENTS}: not what own_notifier.Own takes: not today"),
    ],
)
def test_whatever_a_notifiers_code_raises_is_told_with_the_variable(tmp_path, monkeypatch, code, told):
    (tmp_path / "own_notifier.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own_notifier", raising=False)
    with pytest.raises(ValueError, match=told):
        on_failure({CLASS: "own_notifier.Own"})


def test_arguments_that_the_notifier_does_not_take_are_told_when_the_dag_loads():
    with pytest.raises(ValueError, match=f"{ARGUMENTS}: not what {SMTP} takes.*'to'"):
        on_failure({CLASS: SMTP, ARGUMENTS: '{"too": "team@example.org"}'})


@pytest.mark.parametrize("arguments", ["to=me", "[1]", '"me"', "[]", '[["to", "x@y"]]'])
def test_arguments_that_are_no_object_are_told_when_the_dag_loads(arguments):
    with pytest.raises(ValueError, match=ARGUMENTS):
        on_failure({CLASS: SMTP, ARGUMENTS: arguments})


def test_the_notice_has_the_gates_words_and_the_address_of_the_report(red_run):
    notice = notice_of(FINISHED)
    assert f"{red_run}: signal 9, probably <out of memory>" in notice.text
    assert "&lt;out of memory&gt;" in notice.html
    assert notice.url == (
        "https://airflow.example.org/team/benchmark/runs/scheduled__2026-03-04T02%3A30%3A00%2B00%3A00/report"
    )


def test_a_run_that_left_nothing_is_told_too(store, monkeypatch):
    monkeypatch.setenv("FEEDBENCH_ARTIFACTS", str(store.root))
    notice = notice_of("manual__2026-03-04T02:30:00+00:00", "task_failure")
    assert "The run failed, and there is no comparison of it" in notice.subject


def test_a_mail_reaches_the_server(red_run, inbox, tmp_path, monkeypatch):
    """In a process of its own, as Airflow's DAG processor has it: with the smtp provider's notifier, as it comes."""
    connection = {"conn_type": "smtp", "host": "127.0.0.1", "port": inbox.port}
    connection["extra"] = {"disable_ssl": True, "disable_tls": True}
    monkeypatch.setenv("AIRFLOW_CONN_SMTP_DEFAULT", json.dumps(connection))
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path))
    monkeypatch.setenv(CLASS, SMTP)
    monkeypatch.setenv(ARGUMENTS, json.dumps({"to": "team@example.org", "from_email": "benchmark@example.org"}))
    code = f"""
import sys
sys.path.insert(0, {str(PLUGINS)!r})
from benchmark_notice import on_failure
on_failure()({{"run_id": {FINISHED!r}, "reason": "task_failure"}})
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    [(envelope, mail)] = inbox.mails
    assert envelope.rcpt_tos == ["team@example.org"]
    assert mail["subject"].startswith(f"Benchmark {FINISHED} is red: {red_run}: signal 9")
    assert "https://airflow.example.org/team/benchmark/runs/" in mail.get_body().get_content()
