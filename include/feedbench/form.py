"""The trigger form: every setting as the keyword arguments of an Airflow Param, without importing Airflow.

What a field accepts, `flow/checks.py` accepts: both come from `config.py`. What must fit together, and whether the
source is there, the first task tells.
"""

from collections.abc import Mapping
from typing import Any

from feedbench.config import Settings
from feedbench.pipelines.variants import VARIANTS

NIGHTLY: Mapping[str, Any] = {
    "source": "flower_photos",
    "weights": "imagenet",
    "variants": [variant.name for variant in VARIANTS],
    "rounds": 3,
}
"""What differs from the settings' own defaults when Airflow runs it: the real thing."""

EMBEDDED: Mapping[str, Any] = {
    "source": "synthetic",
    "photos": 240,
    "weights": "none",
    "variants": ["naive", "prefetch", "cache_memory_prefetch"],
    "rounds": 2,
    "image_size": 64,
    "batch_size": 16,
    "steps": 20,
    "profile_steps": 10,
}
"""What `make benchmark` passes: a few minutes on two cores, nothing downloaded."""

_PASSED_ON = ("title", "minimum", "maximum", "exclusiveMinimum", "minLength", "enum")


def form(defaults: Mapping[str, Any] = NIGHTLY) -> dict[str, dict[str, Any]]:
    """By setting: `default`, `description`, and the JSON schema keywords that the form shows and checks."""
    described = Settings.model_json_schema()["properties"]
    return {name: _param(name, described[name], defaults) for name in Settings.model_fields}


def _param(name: str, schema: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    kinds = schema.get("anyOf", [schema])  # an optional setting is "a number, or null"
    merged = {**schema, **kinds[0]}
    param = {key: merged[key] for key in _PASSED_ON if key in merged}
    types = [kind["type"] for kind in kinds]
    param |= {
        "default": defaults.get(name, schema.get("default")),
        "description": schema["description"],
        "section": Settings.model_fields[name].json_schema_extra["section"],
        "type": types if len(types) > 1 else types[0],
    }
    if merged["type"] == "array":
        param |= {"items": {"type": "string"}, "type": ["array", "null"]}  # or the form calls an empty one missing
    if name == "variants":
        names = {variant.name: variant.title for variant in VARIANTS}
        # Examples, not an enum: a user's own variant is named in the JSON of the trigger, beside its module.
        param |= {"examples": list(names), "values_display": names, "uniqueItems": True}
    return param
