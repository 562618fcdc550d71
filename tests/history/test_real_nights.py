"""Real trials night after night: what slows one down is found and named, the night it comes."""

import json
import os
import subprocess
import sys
import textwrap

import pytest

SMALL = ["--accelerator", "emulated", "--emulated-step-ms", "5", "--image-size", "32", "--batch-size", "8",
         "--steps", "12", "--profile-steps", "8", "--warmup-steps", "2"]  # fmt: skip
OWN = """
    import dataclasses, os, time
    from feedbench.pipelines.steps import Batch, Decode, Repeat, Shuffle
    from feedbench.pipelines.variants import Variant

    @dataclasses.dataclass(frozen=True)
    class Augment:
        operators = ("Map",)
        rank = Decode().rank if hasattr(Decode(), "rank") else 0

        def __call__(self, dataset):
            import tensorflow as tf

            def work(image):
                time.sleep(float(os.environ.get("PLANTED_SLEEP_S", 0)))
                return image

            def step(image, label):
                done = tf.numpy_function(work, [image], image.dtype)
                return tf.ensure_shape(done, image.shape), label

            return dataset.map(step)

    VARIANTS = (Variant("own", steps=(Decode(), Augment(), Shuffle(), Repeat(), Batch()), why="a user's own map"),)
"""


@pytest.mark.tensorflow
def test_the_third_of_three_nights_with_a_sleep_in_its_map_is_red_and_names_the_map(photos, tmp_path):
    """20 ms a photo, 8 photos a step: 160 ms on a step of some ten; the variant's spec is the same every night."""
    (tmp_path / "own_variants.py").write_text(textwrap.dedent(OWN))

    def night(sleep_s: float) -> subprocess.CompletedProcess:
        command = ["run", photos, *SMALL, "--variants", "own", "--variant-modules", "own_variants",
                   "--out", tmp_path / "artifacts", "--json"]  # fmt: skip
        env = os.environ | {"PYTHONPATH": str(tmp_path), "PLANTED_SLEEP_S": str(sleep_s)}
        return subprocess.run(
            [sys.executable, "-m", "feedbench.cli", *map(str, command)],
            capture_output=True, text=True, timeout=500, check=False, env=env,
        )  # fmt: skip

    for _ in range(2):
        good = night(0)
        assert good.returncode == 0, good.stderr[-3000:]
    third = night(0.02)
    assert third.returncode == 1, third.stderr[-3000:]
    own = next(c for c in json.loads(third.stdout)["history"]["changes"] if c["variant"] == "own")
    assert own["direction"] == "slower"
    assert own["causes"][0].startswith("self time of Map +")
    assert "own +" in third.stderr
    reports = sorted((tmp_path / "artifacts").glob("runs/*/report.md"))
    assert "self time of Map +" in reports[-1].read_text()
