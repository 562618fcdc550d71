"""The order that a parent gives to a trial's process: one JSON file."""

from feedbench.config import Settings
from feedbench.records import Record


class Job(Record):
    """All paths are local to the worker and absolute."""

    run_id: str
    variant: str
    round: int
    settings: Settings
    index: str
    """index.parquet; its paths are relative to `photos_root`."""
    photos_root: str
    out: str
    """The trial's folder: trial.json and train/ are written here."""
    scratch: str
    """An empty folder of this try's own, on local disk; removed by the parent."""
    weights: str | None
    """Start weights without top, None for random ones."""
    parent_pid: int
