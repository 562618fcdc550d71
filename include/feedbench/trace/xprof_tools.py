"""What XProf itself says of a profile, to stand beside our reading of it.

XProf runs in a process of its own, on a copy in a temporary folder: it writes a cache beside the file that it would
read instead of a later file, gives no exception for a broken one, and a crash of it must not be ours.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from feedbench.records import XprofStatement

TIMEOUT_S = 300
_TOOL = "input_pipeline_analyzer"


def xprof_statement(path: str | Path, timeout_s: float = TIMEOUT_S) -> XprofStatement:
    """XProf's step time, input share and sentence; `available` is False with the reason where it gives none."""
    if find_spec("xprof") is None:
        return _none("XProf is not installed")
    with tempfile.TemporaryDirectory(prefix="feedbench-xprof-") as folder:
        copy = Path(folder) / "host.xplane.pb"
        try:
            shutil.copyfile(path, copy)
        except OSError as error:
            return _none(f"{path} cannot be read: {error.strerror}")
        try:
            done = subprocess.run(
                [sys.executable, "-m", __name__, str(copy)],
                capture_output=True,
                text=True,
                timeout=timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return _none(f"XProf gave no answer within {timeout_s:g} s")
    if done.returncode:
        return _none(f"XProf ended with exit code {done.returncode}: {_last_line(done.stderr)}")
    return _statement(json.loads(done.stdout.splitlines()[-1]))


def _statement(tables: list[dict[str, Any]] | None) -> XprofStatement:
    """From the tables of XProf's input pipeline page; their properties (`p`) hold what it says."""
    said: dict[str, str] = {}
    for table in tables or []:
        said.update(table.get("p") or {})
    step_ms, sentence = _number(said.get("steptime_ms_average")), said.get("input_conclusion") or None
    if not step_ms:
        return _none(sentence or "XProf found no step time in the profile")
    # XProf calls the wait for input `infeed`; its sentence gives the share only where it finds a wait worth a word.
    wait_ms = _number(said.get("infeed_time_ms_avg"))
    return XprofStatement(
        available=True,
        step_time_ms=step_ms,
        input_share=None if wait_ms is None else wait_ms / step_ms,
        statement=sentence,
    )


def _number(text: str | None) -> float | None:
    """XProf writes numbers as text, and `nan` for some that it lacks."""
    try:
        value = float(text or "nan")
    except ValueError:
        return None
    return value if 0 <= value < float("inf") else None


def _none(reason: str) -> XprofStatement:
    return XprofStatement(available=False, reason=reason)


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no message"])[-1][:300]


def _ask(path: str) -> None:
    """In the child: prints XProf's page as one line of JSON."""
    from xprof.convert import raw_to_tool_data

    data, _ = raw_to_tool_data.xspace_to_tool_data([path], _TOOL, {})
    print(data.decode().replace("\n", " ") if isinstance(data, bytes) else data or "null")


if __name__ == "__main__":
    _ask(sys.argv[1])
