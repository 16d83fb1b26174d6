"""deterministic="batch" of networks: what an item becomes does not depend on the others in its batch."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.errors import InvalidArguments, Unimplemented
from tests.network.nets import engine
from tests.primitives.test_any_batch import LEVELS, same

BATCHES = ((1, 1), (1, 2), (2, 1), (5, 3), (8, 1))  # and threads
RANDOM = np.random.default_rng(7)
X = RANDOM.standard_normal((16, 3, 32, 32)).astype(np.float32)
TOKENS = RANDOM.standard_normal((16, 9, 96)).astype(np.float32)


def weights(*dims: int) -> np.ndarray:
    """Of such a size that values stay near 1; the same for every graph."""
    fan = dims[0] if len(dims) == 2 else np.prod(dims[1:])
    return (np.random.default_rng(dims).standard_normal(dims) / np.sqrt(fan)).astype(np.float32)


def images(batch: int) -> tuple[dnn.Graph, Any]:
    """3x3 convolutions, which may be Winograd's; a depthwise pair; channels that are scaled; a product of few rows."""
    g, same_size = dnn.Graph(), {"pads": (1, 1, 1, 1)}
    x = g.input("x", (batch, 3, 32, 32))
    x = g.apply("Relu", g.apply("Conv", x, weights(64, 3, 3, 3), strides=(2, 2), **same_size))
    x = x + g.apply("Relu", g.apply("Conv", x, weights(64, 64, 3, 3), **same_size))
    wide = g.apply("Relu", g.apply("Conv", x, weights(128, 64, 1, 1)))
    wide = g.apply("Conv", wide, weights(128, 1, 3, 3), group=128, strides=(2, 2), **same_size)
    means = g.apply("GlobalAveragePool", wide)
    scales = g.apply("Sigmoid", g.apply("Conv", means, weights(128, 128, 1, 1)))
    x = g.apply("Conv", wide * scales, weights(64, 128, 1, 1))
    x = g.apply("Relu", g.apply("Conv", x, weights(256, 64, 3, 3), **same_size))
    return g, g.apply("Gemm", g.apply("Flatten", x), weights(256 * 64, 10))


def normal(g: dnn.Graph, x: Any) -> Any:
    return g.apply("LayerNormalization", x, np.ones(96, np.float32), np.zeros(96, np.float32))


def heads(g: dnn.Graph, x: Any) -> Any:
    return g.apply("Transpose", g.apply("Reshape", x, np.array([0, 9, 3, 32])), perm=(0, 2, 1, 3))


def tokens(batch: int) -> tuple[dnn.Graph, Any]:
    """Attention, norms and a network of two products."""
    g = dnn.Graph()
    x = g.input("x", (batch, 9, 96))
    q, k, v = (heads(g, g.apply("MatMul", normal(g, x), weights(96, 96) * s)) for s in (1, 2, 3))
    scores = g.apply("MatMul", q, g.apply("Transpose", k, perm=(0, 1, 3, 2))) * np.float32(0.2)
    y = g.apply("Transpose", g.apply("MatMul", g.apply("Softmax", scores, axis=-1), v), perm=(0, 2, 1, 3))
    x = x + g.apply("MatMul", g.apply("Reshape", y, np.array([0, 9, 96])), weights(96, 96))
    x = x + g.apply("MatMul", g.apply("Gelu", g.apply("MatMul", normal(g, x), weights(96, 384))), weights(384, 96))
    return g, g.apply("Gemm", g.apply("Gather", x, np.int64(0), axis=1), weights(96, 1000))


NETWORKS = {"images": (images, X), "tokens": (tokens, TOKENS)}


def outputs(name: str, batch: int, on: dnn.Engine, deterministic: Any) -> np.ndarray:
    graph_of, x = NETWORKS[name]
    graph, y = graph_of(batch)
    net = graph.compile(y=y, engine=on, deterministic=deterministic)
    assert net.is_native
    net.check()
    return np.array(net(x[:batch]))


def differing(name: str, isa: str, deterministic: Any) -> list[tuple[int, int]]:
    whole = outputs(name, 16, engine(1, isa), deterministic)
    return [
        (batch, threads)
        for batch, threads in BATCHES
        if not same(outputs(name, batch, engine(threads, isa), deterministic), whole[:batch])
    ]


@pytest.mark.parametrize("isa", LEVELS)
@pytest.mark.parametrize("name", NETWORKS)
def test_an_item_alone_and_among_others(name: str, isa: str) -> None:
    assert differing(name, isa, "batch") == []


@pytest.mark.isa("avx2")
def test_the_comparison_can_fail() -> None:
    assert differing("images", "avx2", False)


@pytest.mark.isa("avx2")
def test_winograd_stays() -> None:
    """What is left out is only what depends on the number of items."""
    graph, y = images(1)
    net = graph.compile(y=y, engine=engine(), deterministic="batch")
    assert "winograd" in net.explain()


@pytest.mark.isa("avx2")
def test_a_network_knows_whether_it_is_so() -> None:
    """Convolutions need nothing; of a product of few columns `explain` counts the primitive."""
    graph = dnn.Graph()
    y = graph.apply("Conv", graph.input("x", (1, 32, 14, 14)), weights(64, 32, 3, 3), pads=(1, 1, 1, 1))
    y = graph.apply("Gemm", graph.apply("Flatten", graph.apply("GlobalAveragePool", y)), weights(64, 10))
    net = graph.compile(y=y, engine=engine())
    assert net.any_batch and "bits of an item are those that it has alone" in net.explain()
    graph = dnn.Graph()
    x = graph.input("x", (64, 768))
    y = graph.apply("MatMul", graph.apply("Relu", x), weights(768, 2))
    net = graph.compile(y=y, engine=engine())
    assert not net.any_batch and "bits of an item depend on its batch in 1 primitives" in net.explain()
    assert graph.compile(y=y, engine=engine(), deterministic="batch").any_batch


def test_numpy_and_scales_of_a_batch_have_no_such_bits() -> None:
    graph = dnn.Graph()
    x = graph.input("x", (4, 5, 5))
    assert not graph.compile(y=graph.apply("Det", x), engine=engine(), fallback="numpy").any_batch
    graph = dnn.Graph()
    q, *_ = graph.apply("DynamicQuantizeLinear", graph.input("x", (4, 8)), results=3)
    assert not graph.compile(q=q, engine=engine()).any_batch


def test_what_is_refused() -> None:
    graph = dnn.Graph()
    x = graph.input("x", (4, 8, 5, 5))
    ones = np.ones(8, np.float32)
    y = graph.apply("BatchNormalization", x, ones, ones, ones, ones, training_mode=1)
    with pytest.raises(Unimplemented, match="deterministic='batch'"):
        graph.compile(y=y[0] if isinstance(y, tuple) else y, engine=engine(), deterministic="batch")
    q, *_ = graph.apply("DynamicQuantizeLinear", x, results=3)
    with pytest.raises(Unimplemented, match="scales every item by the range of all of them"):
        graph.compile(q=q, engine=engine(), deterministic="batch")
    with pytest.raises(InvalidArguments, match="deterministic must be True or False, or 'batch', not 'rows'"):
        graph.compile(y=x, engine=engine(), deterministic="rows")  # type: ignore[arg-type]
    with pytest.raises(InvalidArguments, match="deterministic must be True or False, or 'batch', not 3"):
        dnn.load_onnx(b"", deterministic=3)  # type: ignore[arg-type]


@pytest.mark.isa("avx512_core_bf16")
def test_permission_to_round_is_not_used() -> None:
    """Costs decide what is rounded, and they depend on the number of items."""
    graph, y = images(8)
    nets = [
        graph.compile(y=y, engine=engine(1, "avx512_core_bf16"), deterministic="batch", precision=word)
        for word in ("f32", "bf16")
    ]
    plain, permitted = (net.explain().splitlines() for net in nets)
    assert permitted.pop(permitted.index("  precision bf16: nothing is expected to gain by it, all is f32"))
    assert permitted == plain
