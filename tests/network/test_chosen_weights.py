"""Weights in the formats that primitives choose for a shape: lowering does not look at them, so that a template serves
shapes whose formats differ, and their buffers have names of their own."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.network.compiled import CompiledSegment
from asmdnn.network.template import store
from asmdnn.network.template.template import Template, template_of
from tests.network import wire
from tests.network.nets import engine, random, reference
from tests.network.test_templates import facts_of

WIDTHS = (40, 20, 60, 5, 119, 480, 32, 13, 8)  # some are numbers of channels, too


def text_reader() -> tuple[dnn.Graph, Any]:
    """Convolutions of many channels along a row, moves, and a wide product."""
    graph = dnn.Graph("reader")
    x = graph.input("x", (1, 32, 1, "width"))
    y = graph.apply("Conv", graph.apply("Conv", x, random(480, 32, 1, 1)), random(60, 480, 1, 3), pads=(0, 1, 0, 1))
    rows = graph.apply("Reshape", graph.apply("Transpose", y, perm=(0, 2, 3, 1)), np.array((-1, 60)))
    return graph, graph.apply("Softmax", rows @ random(60, 625))


@pytest.mark.parametrize("isa", ["avx2", "avx512_core"])
def test_one_template_serves_shapes_of_other_formats(isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Template | None] = []
    monkeypatch.setattr(store, "template_of", lambda *asked: made.append(template_of(*asked)) or made[-1])
    graph, end = text_reader()
    net: Any = graph.compile(y=end, engine=engine(1, isa))
    formats = set[str]()
    for width in WIDTHS:
        shape = {"x": (1, 32, 1, width)}
        (segment,) = net.at(shape).segments
        formats.add(str([str(weight.desc) for weight in segment.weights.values()]))
        alone = graph.compile(shape, y=end, engine=engine(1, isa))
        for found, wanted in zip(facts_of(net.at(shape)), facts_of(alone), strict=True):
            assert found == wanted
    assert len(formats) > 1
    assert len(made) == 1 and made[0] is not None


def test_a_value_may_be_called_as_a_weight_in_its_format() -> None:
    """One that is made before the weight is packed, and one that comes from outside."""
    constants = {name: random(32, 32, 1, 1) for name in ("v", "w")}
    plain = dnn.load_onnx(convolutions(constants, "x", "inner"), engine=engine())
    (segment,) = plain.segments
    assert isinstance(segment, CompiledSegment)
    (v, w), x = segment.weights, random(1, 32, 4, 5)
    named = dnn.load_onnx(convolutions(constants, v, w), engine=engine())
    named.check()
    assert plain.run({"x": x})["y"].tobytes() == named.run({v: x})["y"].tobytes()


def test_a_weight_that_two_layers_read_is_packed_once() -> None:
    net = dnn.load_onnx(convolutions({"w": random(32, 32, 1, 1)}, "x", "inner"), engine=engine())
    (segment,) = net.segments
    assert isinstance(segment, CompiledSegment)
    assert len(segment.steps) >= 2 and len(segment.weights) == 1
    x = random(1, 32, 4, 5)
    matrix = np.abs(net.model.body.constants["w"][:, :, 0, 0].astype(np.float64))
    bound = 2 * 32 * 2.0**-24 * np.einsum("oi,nihw->nohw", matrix @ matrix, np.abs(x))
    assert (np.abs(net.run({"x": x})["y"] - reference(net, {"x": x})["y"]) <= bound).all()


def convolutions(constants: dict[str, np.ndarray[Any, Any]], source: str, inner: str) -> bytes:
    """Two, of the first and the last constant."""
    first, *_, last = (*constants, *constants)
    nodes = [wire.node("Conv", [source, first], [inner]), wire.node("Conv", [inner, last], ["y"])]
    return wire.model(wire.graph(nodes, {source: (1, 32, 4, 5)}, ["y"], constants))
