"""A model file for the commands."""

from pathlib import Path

import pytest

from tests.network import wire
from tests.network.nets import random


@pytest.fixture
def model(tmp_path: Path) -> str:
    """The path of a convolution with a function and a factor after it, for images of any size."""
    nodes = [
        wire.node("Conv", ["x", "w"], ["c"], "first", pads=[1, 1, 1, 1]),
        wire.node("Relu", ["c"], ["r"]),
        wire.node("Mul", ["r", "s"], ["y"]),
    ]
    body = wire.graph(nodes, {"x": (1, 3, "h", "w"), "s": ()}, ["y"], {"w": random(8, 3, 3, 3)})
    path = tmp_path / "model.onnx"
    path.write_bytes(wire.model(body))
    return str(path)
