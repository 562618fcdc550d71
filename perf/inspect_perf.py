"""How fast and how lean is reading a profile: against XProf on the same file, and on a file of a gigabyte.

    python perf/inspect_perf.py [--profile PATH] [--megabytes 40] [--large 1000] [--runs 3]

XProf is asked for its overview page, input pipeline analysis and op statistics, each in a process of its own, and all
three in one process, where the second and third come from the cache that the first leaves. Whole processes are timed,
interpreter start included, the contenders in turn. Exit code 1 where reading is less than five times faster than
XProf's three processes, takes more than 1.3 GB for the large file, or is slower there a megabyte.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from make_profile import make_profile

TOOLS = ("overview_page", "input_pipeline_analyzer", "framework_op_stats")
MIN_SPEEDUP = 5
MAX_RSS_MB = 1300
_INSPECT = "import sys; from feedbench.trace import read_profile; print(read_profile(sys.argv[1]).model_dump_json())"
_XPROF = """
import sys
from xprof.convert.raw_to_tool_data import xspace_to_tool_data
for tool in sys.argv[2:]:
    content, _ = xspace_to_tool_data([sys.argv[1]], tool, {})
    assert content, tool
"""


@dataclass(frozen=True)
class Cost:
    seconds: float
    cpu_s: float
    rss_mb: float


def measure(code: str, *arguments: str) -> Cost:
    """Wall time, CPU time and peak resident memory of a Python process of its own."""
    start = time.perf_counter()
    child = subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{code!r} {arguments}: exit code {child.returncode}")
    return Cost(time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1000)


def xprof(profile: Path, *tools: str) -> Cost:
    """XProf on a copy in an empty folder, since it would read its cache of an earlier run."""
    with tempfile.TemporaryDirectory(prefix="feedbench-perf-") as folder:
        copy = Path(folder) / "host.xplane.pb"
        shutil.copyfile(profile, copy)
        return measure(_XPROF, str(copy), *tools)


def against_xprof(profile: Path, runs: int) -> bool:
    ours, together, apart = [], [], []
    for _ in range(runs):
        ours.append(measure(_INSPECT, str(profile)))
        together.append(xprof(profile, *TOOLS))
        each = [xprof(profile, tool) for tool in TOOLS]
        apart.append(Cost(sum(c.seconds for c in each), sum(c.cpu_s for c in each), max(cost.rss_mb for cost in each)))
    print(f"{profile.name}, {profile.stat().st_size / 1e6:.0f} MB, whole processes, median (range) of {runs} runs:")
    for name, costs in (
        ("feedbench inspect", ours),
        ("XProf, one process", together),
        ("XProf, three processes", apart),
    ):
        wall, cpu = _ratio(costs, ours, "seconds"), _ratio(costs, ours, "cpu_s")
        print(f"  {name:24}{_spread(costs)}   {wall:5.1f} x our time, {cpu:5.1f} x our CPU time")
    return _ratio(apart, ours, "seconds") >= MIN_SPEEDUP


def _ratio(costs: list[Cost], ours: list[Cost], of: str) -> float:
    """Median over the runs, each against ours of the same run, since the machine may be busy by turns."""
    return statistics.median(getattr(a, of) / getattr(b, of) for a, b in zip(costs, ours, strict=True))


def large(folder: Path, megabytes: int, runs: int) -> bool:
    """Rates hold without the time that the interpreter takes to start, which would flatter the large file."""
    small = folder / "small.xplane.pb"
    make_profile(small, 10)
    big = folder / "large.xplane.pb"
    make_profile(big, megabytes)
    started = statistics.median(measure("import feedbench.trace").seconds for _ in range(runs))
    small_s = statistics.median(measure(_INSPECT, str(small)).seconds for _ in range(runs)) - started
    cost = measure(_INSPECT, str(big))
    small_rate, rate = small.stat().st_size / 1e6 / small_s, big.stat().st_size / 1e6 / (cost.seconds - started)
    print(
        f"{big.stat().st_size / 1e6:.0f} MB: {cost.seconds:.1f} s, {rate:.0f} MB/s, peak {cost.rss_mb:.0f} MB resident"
    )
    print(f"  against {small_rate:.0f} MB/s for 10 MB: {rate / small_rate:.2f} x the rate")
    return cost.rss_mb < MAX_RSS_MB and rate >= small_rate * 0.9  # a tenth is what runs differ by


def _spread(costs: list[Cost]) -> str:
    times = [cost.seconds for cost in costs]
    rss = max(cost.rss_mb for cost in costs)
    return f"{statistics.median(times):7.2f} s ({min(times):.2f} to {max(times):.2f}), peak {rss:5.0f} MB"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profile", type=Path, help="a profile of your own instead of a made one")
    parser.add_argument("--megabytes", type=float, default=40)
    parser.add_argument("--large", type=int, default=1000, help="0 leaves the large file out")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="feedbench-perf-") as name:
        folder = Path(name)
        profile = options.profile or folder / "made.xplane.pb"
        if options.profile is None:
            make_profile(profile, options.megabytes)
        good = against_xprof(profile, options.runs)
        if options.large:
            good &= large(folder, options.large, options.runs)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
