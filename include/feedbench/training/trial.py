"""One trial, in a process of its own: `python -m feedbench.training.trial JOB.json EVENTS_FD`.

Writes trial.json whatever a pipeline raises; progress goes to the parent as JSON lines over a pipe.
"""

import ctypes
import hashlib
import json
import math
import os
import re
import resource
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from feedbench.config import A_A_TWIN, BASELINE, CEILING
from feedbench.dataset.index import read_photos
from feedbench.errors import FeedbenchError, TrialFailed
from feedbench.pipelines.build import Built, build, cache_bytes, constant, source
from feedbench.pipelines.steps import RunValues
from feedbench.pipelines.variants import Variant, chosen
from feedbench.records import Trial
from feedbench.store import TrialFolder
from feedbench.training.job import Job
from feedbench.training.machine import allowed_memory_mb, fingerprint
from feedbench.units import BYTES_PER_MB, mb

DIGESTED_BATCHES = 2
MEMORY_SHARE = 0.8
"""A memory cache may take this share of the allowed memory; the rest is for TensorFlow and the shuffle buffer."""


class Reporter:
    """Progress to the parent, as JSON lines."""

    def __init__(self, fd: int) -> None:
        self._pipe = os.fdopen(fd, "w", buffering=1)

    def start(self, what: str, total: int | None, unit: str) -> None:
        self._send({"start": what, "total": total, "unit": unit})

    def advance(self, n: int = 1) -> None:
        self._send({"advance": n})

    def note(self, text: str) -> None:
        self._send({"note": text})

    def done(self) -> None:
        self._send({"done": True})

    def _send(self, event: dict[str, Any]) -> None:
        self._pipe.write(json.dumps(event) + "\n")


class Measurement:
    """Runs the phases of one trial and keeps what each one found, so that a failure loses nothing."""

    def __init__(self, job: Job, reporter: Reporter) -> None:
        self.job = job
        self.settings = job.settings
        self.reporter = reporter
        self.found: dict[str, Any] = {}
        self.phases_s: dict[str, float] = {}

    def run(self) -> None:
        with self._phase("import", "starting TensorFlow"):
            from feedbench.training import accelerator as accelerators
            from feedbench.training import model as models

            machine = self.found["machine"] = fingerprint()
            accelerator = self.found["accelerator"] = accelerators.choose(self.settings, machine)
            xla = accelerators.wants_xla(self.settings, accelerator)
            self.found["jit_compile"] = xla if accelerator.kind != "emulated" else None
            models.keras.utils.set_random_seed(self.settings.seed)
        photos = read_photos(Path(self.job.index))
        train = photos[photos["split"] == "train"]
        built = self._build(train)
        self._digest(built.dataset)
        classes = int(photos["label"].max()) + 1
        with self._phase("model"):
            model = models.build_model(self.settings, accelerator, classes, self.job.weights, xla)
        self._train(model, built.dataset, len(train))
        if self.job.variant != CEILING:
            self._drain(built.dataset)
            if self.job.variant == BASELINE:
                self._measure_rates(train)
            if accelerator.kind != "emulated":
                self._evaluate(model, photos[photos["split"] == "validation"])

    @property
    def _values(self) -> RunValues:
        s = self.settings
        return RunValues(s.image_size, s.batch_size, s.shuffle_buffer, s.seed, Path(self.job.scratch))

    def _build(self, train: Any) -> Built:
        job = self.job
        variant = _variant(job)
        _check_memory(variant, len(train), self.settings.image_size)
        built = build(variant, _paths(train, job), list(train["label"]), self._values)
        if job.variant == CEILING:
            return Built(constant(built.dataset), None)
        if built.to_fill is not None:
            self._fill(variant, built, len(train))
        return built

    def _fill(self, variant: Variant, built: Built, photos: int) -> None:
        """One whole pass to the end: a cache is complete only when the element after the last was asked for."""
        self.reporter.start("filling the cache", photos, "photos")
        seen = 0
        with self._phase("fill"):
            for _ in built.to_fill:
                self.reporter.advance()
                seen += 1
        self.reporter.done()
        self.found["fill_s"] = self.phases_s["fill"]
        if photos not in (seen, seen * self.settings.batch_size):
            raise TrialFailed(f"{seen:,} elements in the cache, not the {photos:,} training photos")
        if variant.cache.where == "memory":
            self.found["cache_mb"] = cache_bytes(variant, photos, self.settings.image_size) / BYTES_PER_MB
        else:
            files = (f for f in Path(self.job.scratch).rglob("*") if f.is_file())
            self.found["cache_mb"] = sum(f.stat().st_size for f in files) / BYTES_PER_MB

    def _digest(self, dataset: Any) -> None:
        """Digest of the first batches, as bytes: a cache in uint8 must not look like other photos."""
        import numpy as np

        digest = hashlib.sha256()
        with self._phase("first_batch"):
            batches = iter(dataset)
            first = next(batches)
        self.found["first_batch_s"] = self.phases_s["first_batch"]
        for images, labels in (first, *(next(batches) for _ in range(DIGESTED_BATCHES - 1))):
            digest.update(np.rint(images.numpy()).astype("uint8").tobytes() + labels.numpy().tobytes())
        self.found["batch_digest"] = digest.hexdigest()[:16]

    def _train(self, model: Any, dataset: Any, train_photos: int) -> None:
        from feedbench.training import window

        plan = window.StepPlan.of(self.settings, train_photos)
        logdir = TrialFolder(Path(self.job.out)).logdir
        self.found |= {"steps_per_pass": plan.per_pass, "first_measured_step": plan.warmup, "window": plan.window}
        self.reporter.start("training", plan.total, "steps")
        clock = window.StepClock(plan, logdir, self.reporter.advance)
        # Its event file is what makes TensorBoard list the profile; its own profiling is off.
        board = window.keras.callbacks.TensorBoard(str(logdir.parent), profile_batch=0, write_graph=False)
        try:
            history = model.fit(dataset, steps_per_epoch=plan.total, epochs=1, verbose=0, callbacks=[board, clock])
        finally:
            clock.stop_profiler()
        self.reporter.done()
        clock.check_complete()
        self.found["step_times_ms"] = tuple(clock.step_times_ms)
        self.phases_s |= clock.phases_s()
        if "accuracy" in history.history:
            self._keep_scores(loss=history.history["loss"][-1], accuracy=history.history["accuracy"][-1])

    def _drain(self, dataset: Any) -> None:
        """Time each batch of one pass with no model behind it; the first fills buffers and does not count."""
        batches = iter(dataset)
        next(batches)
        times = []
        with self._phase("input_only", "timing the input alone"):
            for _ in range(self.found["steps_per_pass"]):
                start = time.perf_counter()
                next(batches)
                times.append((time.perf_counter() - start) * 1000)
        self.found["input_only_ms"] = tuple(times)

    def _measure_rates(self, train: Any) -> None:
        from feedbench.training.rates import measure_rates

        with self._phase("rates"):
            self.found["rates"] = measure_rates(
                source(_paths(train, self.job), list(train["label"])), self._values, len(train)
            )

    def _evaluate(self, model: Any, photos: Any) -> None:
        from feedbench.pipelines.steps import AUTO, Decode

        dataset = source(_paths(photos, self.job), list(photos["label"]))
        decode = Decode(parallel=AUTO, image_size=self.settings.image_size)
        with self._phase("evaluate", "evaluating"):
            result = model.evaluate(
                decode(dataset).batch(self.settings.batch_size).prefetch(AUTO), verbose=0, return_dict=True
            )
        self._keep_scores(val_accuracy=result["accuracy"])

    def _keep_scores(self, **scores: float) -> None:
        """What the model learned is a side matter: where it diverged, the times are as good as ever."""
        for name, value in scores.items():
            self.found[name] = value if math.isfinite(value) else None
            if self.found[name] is None:
                self.reporter.note(f"{name} is {value}: training diverged; the step times count all the same")

    @contextmanager
    def _phase(self, name: str, told: str | None = None) -> Iterator[None]:
        if told:
            self.reporter.note(told)
        start = time.perf_counter()
        try:
            yield
        finally:  # how long a phase lasted that failed is worth knowing, too
            self.phases_s[name] = time.perf_counter() - start


def _variant(job: Job) -> Variant:
    """The ceiling and the twin run the baseline's steps. Raises SettingsError for a name that this worker lacks."""
    if job.variant == A_A_TWIN:
        return chosen([BASELINE], a_a=True)[-1]
    name = BASELINE if job.variant == CEILING else job.variant
    return chosen([name], job.settings.variant_modules)[-1]


def _paths(photos: Any, job: Job) -> list[str]:
    return [str(Path(job.photos_root) / path) for path in photos["path"]]


def _check_memory(variant: Variant, photos: int, image_size: int) -> None:
    needed, allowed = cache_bytes(variant, photos, image_size) / BYTES_PER_MB, allowed_memory_mb() * MEMORY_SHARE
    if needed > allowed:
        raise TrialFailed(
            f"the cache of {variant.name} needs {mb(needed)}, this worker allows {mb(allowed)}; "
            "use uint8_cache, a smaller image_size or fewer photos"
        )


def _reason(error: BaseException) -> str:
    """One line that a person can act on; TensorFlow's messages go on for pages and begin with its own node names."""
    if isinstance(error, FeedbenchError):
        return str(error)
    lines = [line.strip() for line in re.sub(r"\{\{.*?\}\}", "", str(error)).splitlines() if line.strip()]
    message = lines[0] if lines else "no message"
    in_step = re.fullmatch(
        r"Error in user-defined function passed to (\w+?)Dataset\S* .*? iterator: \S+: (.*)", message
    )
    if in_step:
        return f"in a function of {in_step[1]}: {in_step[2][:300]}"
    return f"{type(error).__name__}: {message[:300]}"


def _die_with_parent(parent_pid: int) -> None:
    """Ask Linux to kill this process when its parent dies, however that dies: no orphan keeps the GPU."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
    if os.getppid() != parent_pid:
        sys.exit("the parent died first")


def main(job_file: str, events_fd: str) -> int:
    job = Job.model_validate_json(Path(job_file).read_bytes())
    _die_with_parent(job.parent_pid)
    os.set_inheritable(int(events_fd), False)  # what a pipeline starts has no business with it
    started_at = datetime.now(UTC).isoformat(timespec="seconds")
    measurement = Measurement(job, Reporter(int(events_fd)))
    status, reason = "ok", None
    try:
        measurement.run()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a pipeline raises is this trial's result
        traceback.print_exc()
        status, reason = "failed", _reason(error)
    trial = Trial(
        run_id=job.run_id,
        variant=job.variant,
        round=job.round,
        status=status,
        reason=reason,
        started_at=started_at,
        finished_at=datetime.now(UTC).isoformat(timespec="seconds"),
        peak_rss_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / BYTES_PER_MB,
        phases_s=measurement.phases_s,
        **measurement.found,
    )
    TrialFolder(Path(job.out)).write_trial(trial)
    return 0 if status == "ok" else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
