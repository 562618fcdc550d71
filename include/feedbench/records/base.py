"""What all records share."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

SCHEMA_VERSION = 3
"""2: a change says whether it lasts. 3: a comparison names its machine, a next step has no measured time.

`migrations.py` reads the older ones."""

RUN_ID = r"[A-Za-z0-9_~][A-Za-z0-9_.~:+-]{0,249}"
"""What a run may be called: a plain name, for it is a folder's too."""
TIME = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+(?:Z|[+-][0-9:]+)?"
"""ISO 8601, so that text sorts as time does."""

RunId = Annotated[str, Field(pattern=f"^{RUN_ID}$")]
Time = Annotated[str, Field(pattern=f"^{TIME}$")]
VariantName = Annotated[str, Field(pattern=r"^\w+$")]
"""Letters, digits and _: it is a folder's name too."""
StepMs = Annotated[float, Field(ge=1e-6, le=1e12)]
"""From a nanosecond to thirty years. What lies beyond no clock has measured, and no logarithm or axis bears it."""
Share = Annotated[float, Field(ge=0)]
Verdict = Literal["input-bound", "balanced", "compute-bound", "not measured"]


class Record(BaseModel):
    """Base of all records: frozen, strict about keys, free of NaN and infinity."""

    # Schemas are built when first used: most commands need few of the records.
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)


class Document(Record):
    """A record that is a file of its own."""

    schema_version: int = SCHEMA_VERSION


class Interval(Record):
    """A value with its 95 % interval, in the unit that the field's name says."""

    value: float
    ci_low: float
    ci_high: float


def dump(record: Record) -> dict[str, Any]:
    """Plain JSON types of a record."""
    return record.model_dump(mode="json")
