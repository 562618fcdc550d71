"""The command line's verbs about many runs: what changed over the nights, and what is kept of old ones.

Each imports what it needs: `inspect` starts through here, too.
"""

import argparse
import json
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from feedbench.errors import SettingsError, nearest
from feedbench.units import count, ms, signed_share

if TYPE_CHECKING:
    from feedbench.history.trend import Trend

_SHOWN = 30
_BARS = "▁▂▃▄▅▆▇█"
Verb = Callable[..., argparse.ArgumentParser]


def add_verbs(verbs: Any, verb: Verb) -> None:
    """The verbs of this module; `verb` makes one: name, function, help."""
    history = verb(verbs, "history", _history, "step times night by night, series by series, with what changed")
    history.add_argument("--variant", help="this variant only")
    compare = verb(verbs, "compare", _compare, "two runs side by side: step times, and what differs around them")
    compare.add_argument("run_a", metavar="RUN_A", help="id of the earlier run")
    compare.add_argument("run_b", metavar="RUN_B", help="id of the later run")
    accept = verb(verbs, "accept", _accept, "take a regression for good: later nights are held against the new level")
    accept.add_argument("run_id", metavar="RUN_ID")
    accept.add_argument("variant", metavar="VARIANT")
    accept.add_argument("--reason", required=True, help="why, for those who ask later; stands in the report")
    pinning = verb(verbs, "pin", _pin, "keep a run whole, its profiles too")
    pinning.add_argument("run_id", metavar="RUN_ID")
    pinning.add_argument("--off", action="store_true", help="no longer")
    pruning = verb(verbs, "prune", _prune, "remove the profiles of old runs; reports and results stay")
    pruning.add_argument("--keep-profiles", type=int, required=True, metavar="N", help="of the N newest finished runs")
    pruning.add_argument("--limit-gb", type=float, metavar="X", help="remove more while all runs take more than this")
    for parser in (history, compare, accept, pinning, pruning):
        parser.add_argument("--out", metavar="DIR", help="artefacts folder or fsspec address")


def _history(options: argparse.Namespace) -> int:
    from feedbench.flow.reach import reached
    from feedbench.history.nights import History
    from feedbench.history.trend import Trends

    nights = History(reached(options.out)).nights
    known = {name for night in nights for name in night.results}
    if options.variant and options.variant not in known:
        raise SettingsError(f"--variant {options.variant}: in no finished run{nearest(options.variant, sorted(known))}")
    found = list(Trends(nights).all(options.variant))
    if options.json:
        print(json.dumps([asdict(trend) | {"levels": trend.levels()} for trend in found], indent=1))
    else:
        print("\n\n".join(map(_table, found)) or "no finished run yet")
    return 0


def _table(trend: "Trend") -> str:
    points = trend.points[-_SHOWN:]
    lines = [
        f"{trend.variant} on {trend.title}: {count(len(trend.points), 'night')}  {_sparkline(trend)}",
        f"  {trend.in_common}",
    ]
    first, levels = len(trend.points) - len(points), trend.levels()
    for number, point in enumerate(points, first):
        change = f"changed {signed_share(point.change)}" if point.change is not None else ""
        half = (point.high_ms - point.low_ms) / 2
        level = "new level" if number in levels else ""
        said = "  ".join(filter(None, (change, level, "; ".join(point.around))))
        lines.append(f"  {point.date}  {ms(point.step_time_ms):>6} ± {ms(half)} ms  {point.run_id}  {said}")
    return "\n".join(lines)


def _sparkline(trend: "Trend") -> str:
    values = [point.step_time_ms for point in trend.points[-_SHOWN:]]
    low, width = min(values), (max(values) - min(values)) or 1
    return "".join(_BARS[min(int((value - low) / width * len(_BARS)), len(_BARS) - 1)] for value in values)


def _compare(options: argparse.Namespace) -> int:
    from feedbench.flow.reach import reached
    from feedbench.history.nights import night_in
    from feedbench.history.pair import side_by_side

    store = reached(options.out)
    a, b = (night_in(store.run(run_id)) for run_id in (options.run_a, options.run_b))
    found = side_by_side(a, b)
    if options.json:
        print(json.dumps(found, indent=1))
        return 0
    if found["conditions"]:
        print(f"not the same thing measured: {', '.join(found['conditions'])}")
    for row in found["variants"]:
        interval = f"{signed_share(row['change'])} [{signed_share(row['ci_low'])}, {signed_share(row['ci_high'])}]"
        print(f"{row['variant']}: {ms(row['a_ms'])} → {ms(row['b_ms'])} ms, {interval}")
        print("".join(f"    {cause}\n" for cause in row["stages"]), end="")
    for name in found["only_in_one"]:
        print(f"{name}: a valid result in one of the runs only")
    around = [difference for difference in found["around"] if difference not in found["conditions"]]
    print("\n".join(around) or "nothing differs around them")
    return 0


def _accept(options: argparse.Namespace) -> int:
    from feedbench.flow.acceptance import accept
    from feedbench.flow.reach import reached

    accept(reached(options.out), options.run_id, options.variant, options.reason)
    said = f"{options.variant} is held against its level of {options.run_id} from now on"
    print(json.dumps({"accepted": {options.run_id: {options.variant: options.reason}}}) if options.json else said)
    return 0


def _pin(options: argparse.Namespace) -> int:
    from feedbench.flow.reach import reached
    from feedbench.history.retention import pin

    pin(reached(options.out), options.run_id, not options.off)
    said = f"{options.run_id} is {'no longer pinned' if options.off else 'kept whole'}"
    print(json.dumps({"run_id": options.run_id, "pinned": not options.off}) if options.json else said)
    return 0


def _prune(options: argparse.Namespace) -> int:
    from feedbench.flow.reach import reached
    from feedbench.history.retention import prune

    limit_mb = options.limit_gb * 1000 if options.limit_gb is not None else None
    kept = prune(reached(options.out), options.keep_profiles, limit_mb)
    print(json.dumps(asdict(kept)) if options.json else kept.sentence)
    return 0
