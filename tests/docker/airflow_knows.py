"""Answers lines of ["command", words] or ["option", [section, name]] with true or false: does this Airflow know it?"""

import contextlib
import json
import sys

from airflow.cli.cli_parser import get_parser
from airflow.configuration import conf


def command(words: list[str]) -> bool:
    try:
        with contextlib.redirect_stdout(sys.stderr):
            get_parser().parse_args(words)
    except SystemExit:
        return False
    return True


def option(words: list[str]) -> bool:
    section, name = words
    return name in conf.configuration_description.get(section, {"options": {}})["options"]


for line in sys.stdin:
    kind, words = json.loads(line)
    known = {"command": command, "option": option}[kind](words)
    print(json.dumps(known), flush=True)
