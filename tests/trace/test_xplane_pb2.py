"""Our small proto is a part of TensorFlow's, and the checked-in code is what it generates."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import feedbench
from feedbench.trace import xplane_pb2

INCLUDE = Path(feedbench.__file__).parents[1]


@pytest.mark.tensorflow
@pytest.mark.parametrize("message", sorted(xplane_pb2.DESCRIPTOR.message_types_by_name))
def test_every_field_is_tensorflows(message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Number, type, label, message and oneof of each field, against the descriptor that TensorFlow carries."""
    monkeypatch.setitem(os.environ, "TF_CPP_MIN_LOG_LEVEL", "3")
    theirs = importlib.import_module("tensorflow.tsl.profiler.protobuf.xplane_pb2").DESCRIPTOR
    known = theirs.message_types_by_name[message]
    for name, field in xplane_pb2.DESCRIPTOR.message_types_by_name[message].fields_by_name.items():
        assert _shape(field) == _shape(known.fields_by_name[name]), f"{message}.{name}"


def _shape(field) -> tuple:
    oneof = field.containing_oneof.name if field.containing_oneof else None
    message = field.message_type.name if field.message_type else None
    # TensorFlow puts an event's offset into a oneof of its own, which the wire does not show.
    return field.number, field.type, field.is_repeated, message, oneof if oneof != "data" else None


def test_generating_again_gives_the_checked_in_code(tmp_path: Path) -> None:
    pytest.importorskip("grpc_tools")
    proto = INCLUDE / "feedbench" / "trace" / "xplane.proto"
    command = [sys.executable, "-m", "grpc_tools.protoc", "-I", INCLUDE, f"--python_out={tmp_path}", proto]
    subprocess.run([str(part) for part in command], check=True)
    generated = tmp_path / "feedbench" / "trace" / "xplane_pb2.py"
    assert generated.read_text() == Path(xplane_pb2.__file__).read_text()
