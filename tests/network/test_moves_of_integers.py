"""Moves between floats of integers are done to the integers: enlarging to the nearest elements, depth and space."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from tests.network.nets import compiled, engine, random
from tests.support.drawing import integers

Move = Callable[[dnn.Graph, Any], Any]
MOVES: dict[str, tuple[Move, Callable[[Any], Any]]] = {
    "Resize": (
        lambda g, x: g.apply("Resize", x, None, np.array([1, 1, 2, 3], np.float32), mode="nearest"),
        lambda x: x.repeat(2, 2).repeat(3, 3),
    ),
    "DepthToSpace": (
        lambda g, x: g.apply("DepthToSpace", x, blocksize=2),
        lambda x: np.einsum("nabchw->nchawb", x.reshape(2, 2, 2, 2, 6, 4)).reshape(2, 2, 12, 8),
    ),
    "SpaceToDepth": (
        lambda g, x: g.apply("SpaceToDepth", x, blocksize=2),
        lambda x: np.einsum("nchawb->nabchw", x.reshape(2, 8, 3, 2, 2, 2)).reshape(2, 32, 3, 2),
    ),
}


def types(net: dnn.Network) -> set[str]:
    """In which primitives read their operand."""
    return {str(step.pd.plan.tensors["src"].dtype) for step in compiled(net).steps}


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("op", MOVES)
def test_moves_between_equal_scales(op: str, dtype: Any) -> None:
    g, given = dnn.Graph(), integers(dtype, 2, 8, 6, 4)
    numbers = np.float32(0.03), dtype(5)
    moved = MOVES[op][0](g, g.apply("DequantizeLinear", g.input("x", given.shape, dtype), *numbers))
    net = g.compile(y=g.apply("QuantizeLinear", moved, *numbers), engine=engine())
    net.check()
    assert net.is_native and types(net) == {str(dnn.u8 if dtype == np.uint8 else dnn.s8)}
    assert np.array_equal(net.run({"x": given})["y"], MOVES[op][1](given))


@pytest.mark.isa("avx2")
def test_enlarging_between_elements_computes_in_f32() -> None:
    """It makes new numbers, which are rounded once."""
    g, given = dnn.Graph(), integers(np.uint8, 1, 2, 3, 4)
    numbers = np.float32(0.5), np.uint8(5)
    x = g.apply("DequantizeLinear", g.input("x", given.shape, np.uint8), *numbers)
    wide = g.apply("Resize", x, None, np.array([1, 1, 1, 2], np.float32), mode="linear")
    net = g.compile(y=g.apply("QuantizeLinear", wide, *numbers), engine=engine())
    edged = np.pad(given.astype(np.float64), ((0, 0), (0, 0), (0, 0), (1, 1)), mode="edge")
    halves = np.stack([(edged[..., :-2] + 3 * edged[..., 1:-1]) / 4, (3 * edged[..., 1:-1] + edged[..., 2:]) / 4], -1)
    assert "f32" in types(net)
    assert np.array_equal(net.run({"x": given})["y"], np.rint(halves - 5).astype(np.int64).reshape(1, 2, 3, 8) + 5)


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("op", MOVES)
def test_static_quantization_keeps_moves_in_bytes(op: str) -> None:
    """Between convolutions, with the numbers of the operand."""
    g = dnn.Graph()
    x = g.apply("Relu", g.apply("Conv", g.input("x", (2, 3, 6, 4)), random(8, 3, 1, 1), name="first"))
    moved = MOVES[op][0](g, x)
    channels = {"Resize": 8, "DepthToSpace": 2, "SpaceToDepth": 32}[op]
    y = g.apply("Conv", moved, random(4, channels, 1, 1), name="second")
    feeds = {"x": random(2, 3, 6, 4)}
    plain = g.compile(y=y, engine=engine())
    small = dnn.quantize(plain, feeds, method="static")
    net = dnn.load_onnx(small.data, engine=dnn.Engine(isa="avx512_core_vnni", threads=1))
    kinds = {step.label.split(" ")[0]: str(step.pd.plan.tensors["src"].dtype) for step in compiled(net).steps}
    assert kinds.get(op, "u8") == "u8" and kinds["Conv"] == "u8"
    found, wanted = dnn.load_onnx(small.data, engine=engine()).run(feeds)["y"], plain.run(feeds)["y"]
    assert np.abs(found - wanted).max() <= 0.05 * np.abs(wanted).max()


@pytest.mark.isa("avx512_core_bf16")
@pytest.mark.parametrize("op", MOVES)
def test_moves_between_products_of_bf16(op: str) -> None:
    g = dnn.Graph()
    x = g.apply("Relu", g.apply("Conv", g.input("x", (1, 256, 6, 4)), random(256, 256, 1, 1)))
    moved = MOVES[op][0](g, x)
    channels = {"Resize": 256, "DepthToSpace": 64, "SpaceToDepth": 1024}[op]
    y = g.apply("Conv", moved, random(64, channels, 1, 1))
    nets = [
        g.compile(y=y, engine=dnn.Engine(isa="avx512_core_bf16", threads=1, machine="zen4"), precision=word)
        for word in ("f32", "bf16")
    ]
    feeds = {"x": random(1, 256, 6, 4)}
    wanted, found = (net.run(feeds)["y"] for net in nets)
    nets[1].check()
    assert "bf16" in types(nets[1])
    assert np.abs(found - wanted).max() <= 2.0**-6 * np.abs(wanted).max()
