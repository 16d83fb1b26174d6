"""What is wrong of a model with open dims whatever its shapes are is said when it is loaded, not by the first call."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from tests.network import wire
from tests.network.nets import engine

pytestmark = pytest.mark.isa("avx2")


def model() -> bytes:
    return wire.model(wire.graph([wire.node("Relu", ["x"], ["y"], "last")], {"x": ("batch", 4), "rate": ()}, ["y"]))


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"fallback": "numpi"}, "fallback must be None or 'numpy', not 'numpi': did you mean numpy"),
        ({"fallback": 3}, "fallback must be None or 'numpy', not 3"),
        ({"constants": {"rat": np.float32(1)}}, "'rat' is no input of the model: did you mean rate"),
        (
            {"precision": "bf16", "keep_f32": ["lost"]},
            "keep_f32 has 'lost', which no node is called: did you mean last",
        ),
    ],
)
def test_words(asked: dict[str, Any], said: str) -> None:
    assert dnn.load_onnx(model(), engine=engine()).is_open
    with pytest.raises(dnn.InvalidArguments, match=said):
        dnn.load_onnx(model(), engine=engine(), **asked)


@pytest.mark.parametrize("fallback", [None, "numpy"])
def test_operators_that_are_not_known(fallback: str | None) -> None:
    needed = wire.graph([wire.node("Mystery", ["x"], ["y"])], {"x": ("batch", 4)}, ["y"])
    with pytest.raises(dnn.Unimplemented, match="Mystery 'y' is an operator that is not known"):
        dnn.load_onnx(wire.model(needed), engine=engine(), fallback=fallback)


def test_what_does_not_scale_alone() -> None:
    nodes = [wire.node("DynamicQuantizeLinear", ["x"], ["y", "scale", "point"])]
    data = wire.model(wire.graph(nodes, {"x": ("batch", 4)}, ["y"]))
    with pytest.raises(dnn.Unimplemented, match="leave out deterministic='batch'"):
        dnn.load_onnx(data, engine=engine(), deterministic="batch")


def test_dims_that_are_no_integers() -> None:
    """Cut to integers they would be a shape that nobody asked for."""
    with pytest.raises(dnn.InvalidArguments, match=r"shapes\['x'\] must be integers, names or Dims, not \(2.5, 4\)"):
        dnn.load_onnx(model(), {"x": (2.5, 4)}, engine=engine())
    net = dnn.load_onnx(model(), engine=engine())
    with pytest.raises(dnn.InvalidArguments, match=r"shapes must be dims, tuples of integers, not .*2.5"):
        net.at({"x": (2.5, 4)})
