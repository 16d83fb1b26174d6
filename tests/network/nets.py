"""Small networks for tests, and the answer by the operators' definitions in double precision."""

from typing import Any

import numpy as np

import asmdnn as dnn
from asmdnn.network.compiled import CompiledSegment
from asmdnn.network.graph import NOTHING
from asmdnn.network.operators.definition import listed
from asmdnn.network.operators.table import operator_of
from tests.support.drawing import RANDOM


def random(*shape: int) -> np.ndarray:
    return (RANDOM.standard_normal(shape) * 0.3).astype(np.float32)


def engine(threads: int = 1, isa: str = "avx2") -> dnn.Engine:
    return dnn.Engine(isa=isa, threads=threads, l2_bytes=512 << 10, machine="zen3")


def compiled(net: dnn.Network) -> CompiledSegment:
    """The only segment of a network that is native as a whole."""
    (segment,) = net.segments
    assert isinstance(segment, CompiledSegment)
    return segment


def implementations(net: dnn.Network) -> list[str]:
    """Of its primitives but for reorders, without levels."""
    return [step.pd.implementation.split(":")[0] for step in compiled(net).steps if not step.is_reorder]


def reference(net: dnn.Network, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The outputs, node by node in f64, of the model as it was given."""
    known: dict[str, Any] = {**net.model.body.constants, **feeds}
    wide = {name: x.astype(np.float64) if x.dtype == np.float32 else x for name, x in known.items()}
    for node in net.model.body.nodes:
        operator = operator_of(node)
        assert operator is not None
        results = listed(operator.evaluate(node, *(None if x == NOTHING else wide[x] for x in node.inputs)))
        wide |= zip(node.outputs, results, strict=False)
    return {name: wide[name] for name in net.model.body.outputs}


def residual_graph() -> tuple[dnn.Graph, dict[str, Any]]:
    """A stem with hardswish written out, a block with a residual, two branches, and a product."""
    g = dnn.Graph("residual")
    x = g.input("x", (1, 3, 16, 16))
    stem = g.apply("Conv", x, random(16, 3, 3, 3), random(16), pads=(1, 1, 1, 1), strides=(2, 2), name="stem")
    norm = [abs(random(16)) + 0.5 for _ in range(4)]
    stem = g.apply("BatchNormalization", stem, *norm, name="norm")
    swish = stem * g.apply("Clip", stem + 3.0, 0.0, 6.0) / 6.0
    conv = g.apply("Conv", swish, random(16, 16, 3, 3), pads=(1, 1, 1, 1), name="block")
    joined = g.apply("Relu", conv + swish)
    both = g.apply("Concat", joined, swish, axis=1)
    rows = g.apply("Flatten", both)
    y = g.apply("Softplus", g.apply("Gemm", rows, random(10, 32 * 64), random(10), transB=1, name="head"))
    return g, {"y": y, "joined": joined}


def residual(threads: int = 1, isa: str = "avx2") -> dnn.Network:
    g, outputs = residual_graph()
    return g.compile(engine=engine(threads, isa), **outputs)
