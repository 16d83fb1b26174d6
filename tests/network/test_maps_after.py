"""Maps after every node that has post-ops, of tensors that are broadcast along any axes: fused where there is a kernel
with them, by themselves where there is none, and never a reason to refuse the node."""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.network.fusion.maps import FUSED_INTO
from asmdnn.network.operators.own import OWN
from tests.network.nets import compiled, engine, random
from tests.network.test_lowering import implementations
from tests.network.test_network import check_values

pytestmark = pytest.mark.isa("avx2")
DIMS, LARGER, PLANES = (2, 6, 5, 8), (2, 6, 10, 16), (2, 6, 1, 1)
RESULTS = {"Gemm": (60, 8), "GlobalAveragePool": PLANES, "GlobalMaxPool": PLANES, "Resize": LARGER, "Upsample": LARGER}
WINDOW = {"kernel_shape": (3, 3), "pads": (1, 1, 1, 1)}
Make = Callable[[dnn.Graph, Any], Any]
NODES: dict[str, Make] = {
    "Conv": lambda g, x: g.apply("Conv", x, random(6, 6, 1, 1), random(6)),
    "ConvTranspose": lambda g, x: g.apply("ConvTranspose", x, random(6, 6, 1, 1)),
    "MatMul": lambda g, x: g.apply("MatMul", x, random(8, 8)),
    "Gemm": lambda g, x: g.apply("Gemm", g.apply("Reshape", x, np.array([60, 8])), random(8, 8), random(8)),
    "MaxPool": lambda g, x: g.apply("MaxPool", x, **WINDOW),
    "AveragePool": lambda g, x: g.apply("AveragePool", x, count_include_pad=1, **WINDOW),
    "GlobalAveragePool": lambda g, x: g.apply("GlobalAveragePool", x),
    "GlobalMaxPool": lambda g, x: g.apply("GlobalMaxPool", x),
    "LayerNormalization": lambda g, x: g.apply("LayerNormalization", x, random(5, 8), random(5, 8), axis=2),
    "RMSNormalization": lambda g, x: g.apply("RMSNormalization", x, random(8)),
    "InstanceNormalization": lambda g, x: g.apply("InstanceNormalization", x, random(6), random(6)),
    "GroupNormalization": lambda g, x: g.apply("GroupNormalization", x, random(6), random(6), num_groups=2),
    "Resize": lambda g, x: g.apply("Resize", x, None, None, np.array(LARGER), mode="linear"),
    "Upsample": lambda g, x: g.apply("Upsample", x, np.float32([1, 1, 2, 2]), mode="nearest"),
}


def test_every_node_is_here() -> None:
    assert {op for op in FUSED_INTO if not op.startswith(OWN)} == {*NODES}


@pytest.mark.parametrize("op", NODES)
def test_maps_of_any_broadcast_tensor(op: str) -> None:
    """A factor and a sum that are one number, or many, along each axis."""
    g, made = dnn.Graph(), {}
    first, *others = RESULTS.get(op, DIMS)
    for i, dims in enumerate([*product((1,), *((1, n) for n in others)), (first, *others), (first, *others[:-1], 1)]):
        y = NODES[op](g, g.input(f"x{i}", DIMS))
        made[f"y{i}"] = g.apply("Relu", y * random(*dims) + random(*dims))
    net = g.compile(**made, engine=engine())
    net.check()
    check_values(net, {f"x{i}": random(*DIMS) for i in range(len(made))})
    assert len(implementations(net)) >= len(made)


@pytest.mark.parametrize("sizes", [(5, 8), (6, 7), (7, 7), (10, 5)], ids=str)
def test_means_that_count_padding_but_not_what_ceil_mode_adds(sizes: tuple[int, int]) -> None:
    g = dnn.Graph()
    window = {"kernel_shape": (3, 2), "strides": (2, 3), "pads": (1, 1, 0, 1), "ceil_mode": 1}
    y = g.apply("AveragePool", g.input("x", (2, 9, *sizes)), count_include_pad=1, **window)
    net = g.compile(y=g.apply("Relu", y - 0.1), engine=engine())
    net.check()
    check_values(net, {"x": random(2, 9, *sizes)})


@pytest.mark.parametrize("op", ["Add", "Mul"])
def test_maps_of_two_values_in_either_order_are_one(op: str) -> None:
    """Layers that differ by it have one plan, and one kernel."""
    g = dnn.Graph()
    x, t = g.input("x", (4, 16)), g.input("t", (4, 16))
    weights, found = random(16, 16), []
    for turned in (False, True):
        product = x @ weights
        both = (t, product) if turned else (product, t)
        found.append(g.apply("Sigmoid", g.apply(op, *both)))
    net = g.compile(a=found[0], b=found[1], engine=engine())
    one, other = compiled(net).steps
    assert (one.pd.desc, one.pd.attr, one.pd.plan) == (other.pd.desc, other.pd.attr, other.pd.plan)
    feeds = {"x": random(4, 16), "t": random(4, 16)}
    check_values(net, feeds)
    results = net.run(feeds)
    assert results["a"].tobytes() == results["b"].tobytes()
