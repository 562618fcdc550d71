"""Ops' scopes as Keras 2 and 3 write them, and the layer that each belongs to."""

import pytest

from feedbench.trace.layers import layers

PS = 1_000_000_000
KERAS_3 = "StatefulPartitionedCall/sequential_1/efficientnetb0_1"
GRADIENT = "StatefulPartitionedCall/gradient_tape/sequential_1/efficientnetb0_1"


def times(op_ms: dict[str, float], steps: int = 1) -> dict[str, tuple[float, float]]:
    found = layers({name: int(ms * PS) for name, ms in op_ms.items()}, steps, "host")
    return {layer.name: (layer.forward_ms, layer.backward_ms) for layer in found}


def test_inner_scopes_and_gradients_belong_to_the_layer() -> None:
    ops = {
        f"{KERAS_3}/block1a_bn_1/mul": 1,
        f"{KERAS_3}/block1a_bn_1/batchnorm/mul_1": 2,
        f"{KERAS_3}/block1a_bn_1/Cast_1/ReadVariableOp": 4,
        f"{GRADIENT}/block1a_bn_1/batchnorm/mul_1/Mul": 8,
        f"{KERAS_3}/top_conv_1/convolution": 16,
        f"{GRADIENT}/top_conv_1/convolution/Conv2DBackpropInput": 32,
        "StatefulPartitionedCall/sequential_1/dense_1/MatMul": 64,
    }
    assert times(ops) == {"dense_1": (64, 0), "top_conv_1": (16, 32), "block1a_bn_1": (7, 8)}


def test_times_are_means_over_the_steps() -> None:
    assert times({"model/dense/MatMul": 10}, steps=5) == {"dense": (2, 0)}


@pytest.mark.parametrize(
    "wrapped", ["replica_4/model/dense/MatMul", "multi_step_on_iterator/while/body/model/dense/MatMul"]
)
def test_wrappers_of_loops_and_replicas_are_no_layers(wrapped: str) -> None:
    assert times({wrapped: 1}) == {"dense": (1, 0)}


def test_equal_names_in_two_models_stay_apart() -> None:
    assert times({"model/encoder/dense/MatMul": 2, "model/decoder/dense/MatMul": 1}) == {
        "model/encoder/dense": (2, 0),
        "model/decoder/dense": (1, 0),
    }


def test_ops_without_scope_are_no_layer() -> None:
    """What Keras 3's optimizers and metrics leave: AddN_111, and reads for an op of that name."""
    assert times({"StatefulPartitionedCall/AddN_111": 5, "StatefulPartitionedCall/Add_1/ReadVariableOp": 1}) == {}


def test_no_steps_no_layers() -> None:
    assert layers({"model/dense/MatMul": PS}, 0, "host") == ()
