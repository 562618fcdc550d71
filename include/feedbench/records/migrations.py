"""Documents of older schema versions as ones of today's: plain JSON in, plain JSON out."""

from typing import Any

from feedbench.records.base import SCHEMA_VERSION


def migrated(content: Any) -> Any:
    """A document of any known schema as one of today's. Raises ValueError for what is none, or from the future."""
    version = content.get("schema_version", SCHEMA_VERSION) if isinstance(content, dict) else SCHEMA_VERSION
    if type(version) is not int or version not in (*_MIGRATIONS, SCHEMA_VERSION):
        raise ValueError(f"schema_version {version}, but this Feedbench reads up to {SCHEMA_VERSION}")
    try:
        for known in range(version, SCHEMA_VERSION):
            content = _MIGRATIONS[known](content) | {"schema_version": known + 1}
    except (TypeError, AttributeError) as error:  # a migration takes for granted what only validation would find out
        raise ValueError(f"not built as schema_version {version} was: {error}") from None
    return content


def _next_steps_unmeasured(content: dict[str, Any]) -> dict[str, Any]:
    """Nobody ever wrote a next step's measured time: what was run stands among the variants, with its error."""
    steps = content.get("next_steps", ())
    unmeasured = [{name: value for name, value in step.items() if name != "measured_ms"} for step in steps]
    return content | {"next_steps": unmeasured} if steps else content


_MIGRATIONS = {1: dict, 2: _next_steps_unmeasured}
"""From each older schema version to the next one; 2 only has fields more, with defaults."""
