"""Who is told when a benchmark run ends red: an Airflow notifier of the user's choice, named in the environment.

    FEEDBENCH_NOTIFIER            its class, such as airflow.providers.smtp.notifications.smtp.SmtpNotifier
    FEEDBENCH_NOTIFIER_ARGUMENTS  its arguments as a JSON object, such as {"to": "team@example.org"}

Templated arguments may say {{ notice.subject }}, {{ notice.text }}, {{ notice.html }} and {{ notice.url }}; those that
carry a message and are not given do so by themselves. The notice names what the gate named: the variants that failed
or got slower, by how much, and why.
"""

import json
import os
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

from airflow.sdk import BaseNotifier

from benchmark_link import report_path

CLASS, ARGUMENTS = "FEEDBENCH_NOTIFIER", "FEEDBENCH_NOTIFIER_ARGUMENTS"
_MESSAGE = {
    "subject": "{{ notice.subject }}",
    "html_content": "{{ notice.html }}",
    "text": "{{ notice.text }}",
    "message": "{{ notice.text }}",
}
"""What notifiers call their message: e-mail the first two, chats one of the others."""


@dataclass(frozen=True)
class Notice:
    subject: str
    text: str
    html: str
    url: str


def on_failure(environment: Mapping[str, str] = os.environ) -> Callable[[Any], None] | None:
    """The callback for a failed run; None when no notifier is named.

    Raises ValueError naming the variable that is wrong: the DAG then does not load, and the UI says why, rather than
    that nobody is told on the night when it matters.
    """
    name = environment.get(CLASS)
    if not name:
        return None
    kind, arguments = _class(name), _arguments(environment.get(ARGUMENTS) or "{}")
    message = {field: text for field, text in _MESSAGE.items() if field in kind.template_fields}
    try:
        kind(**message | arguments)
    except Exception as error:  # noqa: BLE001 - a notifier of anybody's, which may refuse them by any kind of error
        raise ValueError(f"{ARGUMENTS}: not what {name} takes: {error}") from None

    def tell(context: Any) -> None:
        notice = notice_of(context["run_id"], context.get("reason"))
        kind(**message | arguments)({**context, "notice": notice})  # anew: a notifier fills its templates in place

    return tell


def _class(name: str) -> type[BaseNotifier]:
    try:
        kind = pkgutil.resolve_name(name)
    except Exception as error:  # noqa: BLE001 - anybody's module is run here, and may raise anything
        raise ValueError(f"{CLASS}={name}: no such notifier ({error}); give the import path of its class") from None
    if not (isinstance(kind, type) and issubclass(kind, BaseNotifier)):
        raise ValueError(f"{CLASS}={name}: not the class of an Airflow notifier")
    if kind.notify is BaseNotifier.notify:
        raise ValueError(f"{CLASS}={name}: tells nobody, for it has no `notify` of its own; name a class made from it")
    return kind


def _arguments(text: str) -> dict[str, Any]:
    try:
        arguments = json.loads(text)
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict):
        raise ValueError(f'{ARGUMENTS}: not a JSON object; write {{"to": "team@example.org"}}')
    return arguments


def notice_of(run_id: str, reason: str | None = None) -> Notice:
    """What is to be said of a run that failed. `reason`: Airflow's own word for it, when the gate has none."""
    text = _gate(run_id) or f"The run failed: {reason or 'see its tasks in Airflow'}."
    url = report_path(run_id, with_host=True)
    subject = f"Benchmark {run_id} is red: {text.splitlines()[0][:120]}"
    html = f'<p>{escape(text)}</p><p><a href="{escape(url)}">Report of {escape(run_id)}</a></p>'
    return Notice(subject, f"{text}\n{url}", html, url)


def _gate(run_id: str) -> str | None:
    """The gate's words; None where it has none."""
    from feedbench.errors import FeedbenchError, Regressed, TrialFailed
    from feedbench.flow.gate import gate
    from feedbench.store import Store

    try:
        gate(Store(), run_id)
    except (TrialFailed, Regressed) as error:
        return str(error)
    except (FeedbenchError, OSError) as error:
        return f"The run failed, and there is no comparison of it: {error}"
    return None
