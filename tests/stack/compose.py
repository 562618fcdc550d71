"""docker-compose.yaml as the native stack and the tests read it: anchors merged, variables put in."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "docker-compose.yaml"
DOCKERFILE = ROOT / "docker" / "Dockerfile"
VARIABLE = re.compile(r"\$(?:(?P<escaped>\$)|\{(?P<name>\w+)(?::(?P<kind>[-?])(?P<text>[^}]*))?\})")


def services(variables: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """The services by name, as Compose would run them. Raises KeyError for a required variable that is not set."""
    return _filled(yaml.safe_load(FILE.read_text())["services"], variables)


def read_env(file: Path) -> dict[str, str]:
    """The variables of an .env file."""
    lines = (line for line in file.read_text().splitlines() if line and not line.startswith("#"))
    return dict(line.split("=", 1) for line in lines)


def environment(service: Mapping[str, Any], variables: Mapping[str, str]) -> dict[str, str]:
    """What a service's process sees: a name without a value is passed on where it is set."""
    given = {name: variables.get(name) if value is None else value for name, value in service["environment"].items()}
    return {name: value for name, value in given.items() if value is not None}


def image_environment() -> dict[str, str]:
    """What every image sets, by the Dockerfile's first ENV."""
    [first, *_] = re.findall(r"^ENV ((?:.*\\\n)*.*)$", DOCKERFILE.read_text(), re.MULTILINE)
    return dict(word.split("=", 1) for word in first.replace("\\\n", " ").split())


def health_command(service: Mapping[str, Any]) -> list[str]:
    how, *command = service["healthcheck"]["test"]
    return command if how == "CMD" else ["sh", "-c", *command]


def _filled(value: Any, variables: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _filled(item, variables) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, variables) for item in value]
    return VARIABLE.sub(lambda found: _value(found, variables), value) if isinstance(value, str) else value


def _value(found: re.Match[str], variables: Mapping[str, str]) -> str:
    if found["escaped"]:
        return "$"
    if found["kind"] == "-":
        return variables.get(found["name"]) or found["text"]
    return variables[found["name"]]
