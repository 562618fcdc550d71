"""Time by Keras layer, forward and backward, from the scopes in op names.

An op is named by its scopes, as in `StatefulPartitionedCall/sequential_1/efficientnetb0/block1a_bn/batchnorm/mul`, and
its gradient ops carry the same scopes below `gradient_tape`. A model holds layers and no op of its own, so the layer is
the outermost scope that directly holds an op. What has no scope (optimizer, metrics) is no layer.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Literal

from feedbench.records import Layer
from feedbench.units import PS_PER_MS

_WRAPPERS = re.compile(
    r"(?:(?:StatefulPartitionedCall|PartitionedCall|while|body|cond|then|else|replica_\d+|jit\([^/]*\)|[^/]*_on_iterator)/)+"
)
_BACKWARD = re.compile(r"(?:gradient_tape|gradients|transpose\(jvp\([^/]*\)\))/")


def layers(op_ps: Mapping[str, int], steps: int, where: Literal["host", "device"]) -> tuple[Layer, ...]:
    """Layers with their mean time a step, longest first. `op_ps` is self time in ps by the op's full name."""
    if not steps:
        return ()
    split = {name: _scopes(name) for name in op_ps}
    # `Add/ReadVariableOp` is how TensorFlow names the read for an op Add: that makes no layer of it.
    holders = {
        scopes[:-1]
        for scopes, backward in split.values()
        if not backward and len(scopes) > 1 and not scopes[-1].startswith("ReadVariableOp")
    }
    times: dict[tuple[str, ...], list[int]] = defaultdict(lambda: [0, 0])
    for name, ps in op_ps.items():
        scopes, backward = split[name]
        layer = _outermost(scopes, holders)
        if layer:
            times[layer][backward] += ps
    names = _short_names(times)
    found = (
        Layer(
            name=names[scopes],
            where=where,
            forward_ms=forward / PS_PER_MS / steps,
            backward_ms=backward / PS_PER_MS / steps,
        )
        for scopes, (forward, backward) in times.items()
        if forward + backward > 0
    )
    return tuple(sorted(found, key=lambda layer: -layer.forward_ms - layer.backward_ms))


def _scopes(name: str) -> tuple[tuple[str, ...], bool]:
    """An op's scopes and own name, without what TensorFlow wraps around them, and whether it is a gradient."""
    match = _WRAPPERS.match(name)
    bare = name[match.end() :] if match else name
    gradient = _BACKWARD.match(bare)
    return tuple((bare[gradient.end() :] if gradient else bare).split("/")), gradient is not None


def _outermost(scopes: tuple[str, ...], holders: set[tuple[str, ...]]) -> tuple[str, ...] | None:
    return next((scopes[:depth] for depth in range(1, len(scopes)) if scopes[:depth] in holders), None)


def _short_names(layers: Iterable[tuple[str, ...]]) -> dict[tuple[str, ...], str]:
    """A layer's own name, or with its model's where two models have a layer of that name."""
    last: dict[str, int] = defaultdict(int)
    every = list(layers)
    for scopes in every:
        last[scopes[-1]] += 1
    return {scopes: scopes[-1] if last[scopes[-1]] == 1 else "/".join(scopes) for scopes in every}
