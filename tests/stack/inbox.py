"""A mail server that keeps what it is handed, for those whom Airflow tells of a red run."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

from aiosmtpd.controller import Controller

from stack.native import free_port


class Inbox:
    def __init__(self) -> None:
        self.port = free_port()
        self.mails: list[EmailMessage] = []

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        self.mails.append(message_from_bytes(envelope.content, policy=policy.default))
        return "250 OK"

    @property
    def variables(self) -> dict[str, str]:
        """What a team writes into .env to be told here."""
        plain = {"disable_ssl": True, "disable_tls": True}
        connection = {"conn_type": "smtp", "host": "127.0.0.1", "port": self.port, "extra": plain}
        addresses = {"to": "team@example.org", "from_email": "benchmark@example.org"}
        return {
            "FEEDBENCH_NOTIFIER": "airflow.providers.smtp.notifications.smtp.SmtpNotifier",
            "FEEDBENCH_NOTIFIER_ARGUMENTS": json.dumps(addresses),
            "AIRFLOW_CONN_SMTP_DEFAULT": json.dumps(connection),
        }

    def about(self, run_id: str) -> list[EmailMessage]:
        return [mail for mail in self.mails if f" {run_id} " in mail["subject"]]


@contextmanager
def open_inbox() -> Iterator[Inbox]:
    inbox = Inbox()
    server = Controller(inbox, hostname="127.0.0.1", port=inbox.port)
    server.start()
    try:
        yield inbox
    finally:
        server.stop()
