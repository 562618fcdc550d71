"""The command line: the verbs of a run without Airflow, and the parts by themselves. Each imports what it needs.

Exit codes: 0 done, 1 a variant failed, was invalid or regressed (the report is written), or nothing can be kept where
the artefacts go, 2 bad usage or settings (nothing was run), 3 unusable input.
"""

import argparse
import json
import os
import signal
import sys
import types
import typing
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from feedbench import cli_history
from feedbench.config import Settings
from feedbench.errors import FeedbenchError, InputError, OutputError, TrialFailed
from feedbench.records import Comparison, dump
from feedbench.units import printable

if typing.TYPE_CHECKING:
    from feedbench.store import RunFolder


def main(arguments: Sequence[str] | None = None) -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that `finally` runs and no trial is left behind
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a star that a terminal cannot show must not end a run
            stream.reconfigure(errors="replace")
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        code = options.verb(options)
        sys.stdout.flush()  # else what it does not take is found out after the last handler
        return code
    except FeedbenchError as error:
        print(printable(f"feedbench: {error}"), file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:  # `| head` has seen enough
        _drop_output()
        return 128 + signal.SIGPIPE
    except OSError as error:  # of files that nobody expected to fail: a full disk, a folder in a file's place
        print(f"feedbench: {error.filename or 'output'}: {error.strerror or error}", file=sys.stderr)
        _drop_output()
        return OutputError.exit_code
    except KeyboardInterrupt:
        print("feedbench: interrupted; nothing is left running", file=sys.stderr)
        return 130


def _drop_output() -> None:
    """What standard output does not take must not fail once more when Python ends."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(options: argparse.Namespace) -> int:
    from feedbench.flow.checks import check
    from feedbench.flow.reach import reached

    settings, store = check(_given(options)), reached(options.out)  # told before the rest is loaded: that takes seconds

    from feedbench.flow.gate import gate
    from feedbench.flow.preparation import download, index, plan
    from feedbench.flow.results import compare_run
    from feedbench.flow.trials import train
    from feedbench.progress import progress_for

    run_id, progress = _new_run_id(), progress_for(sys.stderr)
    fetched = download(store, settings, progress)
    index(store, run_id, settings, fetched, progress)
    trials, folder = plan(store, run_id, settings, fetched), store.run(run_id)
    for planned in trials:
        try:
            train(store, run_id, planned, progress)
        except TrialFailed as error:
            progress.note(f"failed: {error}")
        except KeyboardInterrupt:
            progress.note(f"what was measured until now is kept: `feedbench report {folder.path}` makes a report of it")
            raise
    compare_run(store, run_id, progress)
    _show(folder, folder.read_comparison(), options.json)
    gate(store, run_id)
    return 0


def _show(folder: "RunFolder", comparison: Comparison, as_json: bool) -> None:
    if as_json:
        print(json.dumps(dump(comparison), indent=1))
        return
    from feedbench.report.terminal import summary

    print(summary(comparison))
    print(f"report: {folder.report_html}")


def _index(options: argparse.Namespace) -> int:
    from feedbench.dataset.index import build_index
    from feedbench.dataset.sources import localise
    from feedbench.flow.preparation import download
    from feedbench.flow.reach import reached
    from feedbench.progress import progress_for

    # Nothing is trained: a photo is a whole batch, no cache has to fit, and what cannot be used is what is asked for.
    settings = Settings.parse(
        {"source": options.source, "photos": options.photos, "batch_size": 1, "max_reject_share": 1}
    )
    progress = progress_for(sys.stderr)
    store = reached(options.out)
    fetched = download(store, settings, progress)
    found = build_index(localise(store, fetched["path"], progress), settings, progress)
    if options.json:
        print(json.dumps({"photos": found.photos.to_dict("records"), "rejects": found.rejects.to_dict("records")}))
    else:
        print(found.photos.groupby("class_name").agg(photos=("path", "size"), bytes=("bytes", "sum")).to_string())
        print(f"{len(found.photos)} photos, {len(found.rejects)} rejects")
        for row in found.rejects.itertuples():
            print(printable(f"  {row.file}: {row.reason}"))
    return 0


def _inspect(options: argparse.Namespace) -> int:
    from feedbench.trace.describe import describe
    from feedbench.trace.profile import read_profile

    profile = read_profile(Path(options.xplane))
    print(json.dumps(dump(profile), indent=1) if options.json else describe(profile))
    return 0 if profile.status == "ok" else InputError.exit_code


def _report(options: argparse.Namespace) -> int:
    from feedbench.flow.results import compare_run
    from feedbench.progress import progress_for
    from feedbench.store import Store

    path = Path(options.run_dir).absolute()
    if path.parent.name != "runs" or not (path / "run.json").is_file():  # elsewhere the id would name another folder
        raise InputError(f"{path}: no folder runs/<run_id> with a run.json in it; give one")
    store = Store(path.parent.parent)
    compare_run(store, path.name, progress_for(sys.stderr))
    folder = store.run(path.name)
    _show(folder, folder.read_comparison(), options.json)
    return 0


def _variants(options: argparse.Namespace) -> int:
    from feedbench.pipelines.variants import available

    known = available(options.variant_modules or ()).values()
    if options.json:
        print(json.dumps([dump(variant.spec()) for variant in known], indent=1))
        return 0
    for variant in known:
        print(f"{variant.name}\n    {variant.why}\n    {' > '.join(variant.written)}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="feedbench", description="Does your input pipeline feed your accelerator?")
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    run = _verb(verbs, "run", _run, "compare tf.data variants on photos and write a report")
    run.add_argument("source", help=Settings.model_fields["source"].description)
    _add_settings(run)
    index = _verb(verbs, "index", _index, "decode every photo of a source once and list what cannot be used")
    index.add_argument("source", help=Settings.model_fields["source"].description)
    index.add_argument("--photos", type=int, help=Settings.model_fields["photos"].description)
    for verb in (run, index):
        verb.add_argument(
            "--out",
            metavar="DIR",
            help="artefacts folder or fsspec address (default: $FEEDBENCH_ARTIFACTS or ./artifacts)",
        )
    inspect = _verb(verbs, "inspect", _inspect, "say what one xplane.pb profile says")
    inspect.add_argument("xplane", help="an xplane.pb file")
    report = _verb(verbs, "report", _report, "compare a run's trials again and write its report anew")
    report.add_argument("run_dir", help="a folder runs/<run_id>")
    variants = _verb(verbs, "variants", _variants, "list the variants")
    variants.add_argument("--variant-modules", type=_names, help=Settings.model_fields["variant_modules"].description)
    cli_history.add_verbs(verbs, _verb)
    return parser


def _verb(verbs: Any, name: str, run: Any, help: str) -> argparse.ArgumentParser:
    verb = verbs.add_parser(name, help=help, description=help)
    verb.add_argument("--json", action="store_true", help="print JSON")
    verb.set_defaults(verb=run)
    return verb


def _add_settings(parser: argparse.ArgumentParser) -> None:
    """One option for each setting, in the sections of the trigger form; config.py checks the values."""
    groups: dict[str, Any] = {}
    for name, field in Settings.model_fields.items():
        if name == "source":
            continue
        section = field.json_schema_extra["section"]
        group = groups.setdefault(section, parser.add_argument_group(section))
        flag = "--" + name.replace("_", "-")
        help = f"{field.description} (default: {_default(field.default)})"
        if field.annotation is bool:
            group.add_argument(flag, dest=name, action=argparse.BooleanOptionalAction, default=None, help=help)
        elif typing.get_origin(field.annotation) is tuple:
            group.add_argument(flag, dest=name, type=_names, metavar="A,B", help=help)
        else:
            group.add_argument(flag, dest=name, metavar=_metavar(field.annotation), help=help)


def _default(value: Any) -> str:
    return "empty" if value in (None, ()) else str(value)


def _metavar(annotation: Any) -> str:
    if typing.get_origin(annotation) is typing.Literal:
        return "|".join(typing.get_args(annotation))
    kinds = typing.get_args(annotation) if isinstance(annotation, types.UnionType) else (annotation,)
    return {int: "N", float: "X"}.get(kinds[0], "TEXT")


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _given(options: argparse.Namespace) -> dict[str, Any]:
    return {name: value for name in Settings.model_fields if (value := getattr(options, name, None)) is not None}


def _new_run_id() -> str:
    return f"cli__{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%f}"


if __name__ == "__main__":
    sys.exit(main())
