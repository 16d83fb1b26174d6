"""More products that may be of bf16: after scales of channels, attention after splits, transposed, recurrent."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from tests.network.nets import engine
from tests.network.test_precision import BF16, GRAPHS, check_rounding, expected, random, types


def excited() -> tuple[dnn.Graph, dict[str, Any]]:
    """Squeeze-and-excite in front of a 1x1 convolution."""
    g = dnn.Graph("excited")
    x = g.apply("Relu", g.apply("Conv", g.input("x", (1, 64, 28, 28)), random(256, 64, 1, 1), name="up"))
    x = g.apply("Relu", g.apply("Conv", x, random(256, 1, 3, 3), pads=(1,) * 4, group=256, name="deep"))
    mean = g.apply("Relu", g.apply("Conv", g.apply("GlobalAveragePool", x), random(64, 256, 1, 1), name="squeeze"))
    scale = g.apply("HardSigmoid", g.apply("Conv", mean, random(256, 64, 1, 1), name="excite"))
    y = g.apply("Conv", g.apply("Mul", x, scale, name="scale"), random(64, 256, 1, 1), name="back")
    return g, {"y": g.apply("Relu", g.apply("Conv", y, random(64, 64, 1, 1), name="last"))}


def split_heads() -> tuple[dnn.Graph, dict[str, Any]]:
    """q, k and v of one product, by Split, q scaled by itself."""
    g = dnn.Graph("split heads")
    x = g.apply("LayerNormalization", g.input("x", (1, 50, 96)), random(96), random(96))
    cut = g.apply("Reshape", g.apply("MatMul", x, random(96, 288), name="qkv"), np.array((1, 50, 3, 3, 32)))
    parts = g.apply("Split", g.apply("Transpose", cut, perm=(2, 0, 3, 1, 4)), np.array((1, 1, 1)), axis=0, results=3)
    q, k, v = (g.apply("Squeeze", part, np.array((0,))) for part in parts)
    scores = g.apply("Softmax", (q * 0.17) @ g.apply("Transpose", k, perm=(0, 1, 3, 2)))
    mixed = g.apply("Reshape", g.apply("Transpose", scores @ v, perm=(0, 2, 1, 3)), np.array((1, 50, 96)))
    return g, {"y": g.apply("MatMul", mixed, random(96, 96), name="out")}


def upwards() -> tuple[dnn.Graph, dict[str, Any]]:
    """The nearest elements, and a transposed convolution, between convolutions."""
    g = dnn.Graph("upwards")
    x = g.apply("Relu", g.apply("Conv", g.input("x", (1, 64, 24, 24)), random(64, 64, 1, 1), name="first"))
    x = g.apply("Resize", x, None, np.float32((1, 1, 2, 2)), mode="nearest", nearest_mode="floor",
                coordinate_transformation_mode="asymmetric", name="resize")  # fmt: skip
    x = g.apply("Relu", g.apply("Conv", x, random(128, 64, 3, 3), pads=(1,) * 4, name="second"))
    x = g.apply("ConvTranspose", x, random(128, 64, 2, 2), strides=(2, 2), name="transposed")
    return g, {"y": g.apply("Conv", g.apply("Relu", x), random(32, 64, 1, 1), name="last")}


def recurrent() -> tuple[dnn.Graph, dict[str, Any]]:
    """Two layers whose states come and go, and a product after them."""
    g = dnn.Graph("recurrent")
    x, h, c = g.input("x", (12, 2, 48)), g.input("h", (1, 2, 64)), g.input("c", (1, 2, 64))
    y, last, cells = g.apply("LSTM", x, random(1, 256, 48), random(1, 256, 64), random(1, 512), None, h, c,
                             hidden_size=64, results=3, name="lstm")  # fmt: skip
    y = g.apply("Squeeze", y, np.array((1,)))
    z, _ = g.apply("GRU", y, random(1, 96, 64), random(1, 96, 32), random(1, 192), hidden_size=32, results=2,
                   linear_before_reset=1, name="gru")  # fmt: skip
    return g, {"y": g.apply("MatMul", g.apply("Squeeze", z, np.array((1,))), random(32, 16)), "hn": last, "cn": cells}


def written_out() -> tuple[dnn.Graph, dict[str, Any]]:
    """Attention whose probabilities something else reads, too, so that it is products of data."""
    g = dnn.Graph("written out")
    x = g.apply("LayerNormalization", g.input("x", (1, 96, 128)), random(128), random(128))
    heads = []
    for name, perm in (("q", (0, 2, 1, 3)), ("k", (0, 2, 3, 1)), ("v", (0, 2, 1, 3))):
        rows = g.apply("Reshape", g.apply("MatMul", x, random(128, 128), name=name), np.array((1, 96, 2, 64)))
        heads.append(g.apply("Transpose", rows, perm=perm))
    shares = g.apply("Softmax", g.apply("MatMul", *heads[:2], name="scores") * 0.125, name="shares")
    mixed = g.apply("Transpose", g.apply("MatMul", shares, heads[2], name="mixed"), perm=(0, 2, 1, 3))
    y = g.apply("MatMul", g.apply("Reshape", mixed, np.array((1, 96, 128))), random(128, 64), name="out")
    return g, {"y": y, "most": g.apply("ReduceMax", shares, np.array((-1,)))}


MORE = {
    "written out": written_out,
    "excited": excited,
    "split heads": split_heads,
    "upwards": upwards,
    "recurrent": recurrent,
}


@pytest.mark.isa(BF16)
@pytest.mark.parametrize("name", MORE)
def test_results_are_those_of_f32_but_for_rounding(name: str) -> None:
    check_rounding(*MORE[name](), "bf16")


@pytest.mark.parametrize("machine", ["zen4", "zen5", "sapphire_rapids"])
@pytest.mark.parametrize("name", MORE)
def test_expected_cycles_are_never_more_than_those_of_f32(name: str, machine: str) -> None:
    g, outputs = MORE[name]()
    engine = dnn.Engine(isa=BF16, machine=machine, threads=1)  # type: ignore[arg-type]
    net, wide = (g.compile(engine=engine, precision=word, **outputs) for word in ("bf16", "f32"))
    assert expected(net) <= expected(wide)


def implementations(name: str, **words: Any) -> dict[str, str]:
    """By the name of the first node of each primitive."""
    g, outputs = {**MORE, **GRAPHS}[name]()
    machine = dnn.Engine(isa=BF16, machine="zen4", threads=1)
    (segment,) = g.compile(engine=machine, precision="bf16", **words, **outputs).segments
    return {step.nodes[0].name: step.pd.implementation for step in segment.steps if step.nodes}  # type: ignore[union-attr]


def test_scales_of_channels_are_a_product_of_their_own_in_front_of_bf16() -> None:
    found = implementations("excited")
    assert found["back"] == f"direct:{BF16}"
    assert found["scale"] == "eltwise:avx512_core"
    assert "scale_" in implementations("excited", keep_f32=["back"])["scale"]
    g, outputs = excited()
    net = g.compile(engine=dnn.Engine(isa=BF16, machine="zen4", threads=1), precision="bf16", **outputs)
    assert types(net, "src")["back"] == types(net, "dst")["deep"] == types(net, "dst")["scale"] == "bf16"


def test_attention_reads_parts_of_a_split_and_functions_of_them() -> None:
    assert f"attention:{BF16}" in implementations("split heads").values()


def test_products_of_data_multiply_bf16() -> None:
    """Softmax and the products in front store what they read."""
    g, outputs = written_out()
    net = g.compile(engine=dnn.Engine(isa=BF16, machine="zen4", threads=1), precision="bf16", **outputs)
    src, dst = types(net, "src"), types(net, "dst")
    assert {src[name] for name in ("scores", "mixed", "out")} == {"bf16"}
    assert {dst[name] for name in ("q", "k", "v", "shares", "mixed")} == {"bf16"}
    assert dst["scores"] == src["shares"] == "f32"
    kept = g.compile(
        engine=dnn.Engine(isa=BF16, machine="zen4", threads=1), precision="bf16", keep_f32=["mixed"], **outputs
    )
    assert types(kept, "src")["mixed"] == types(kept, "dst")["shares"] == "f32"


def test_a_norm_that_a_residual_sum_reads_stays_f32() -> None:
    """The others of the same network do not."""
    g = dnn.Graph("residual sums")
    x = g.apply("LayerNormalization", g.input("x", (1, 24, 64)), random(64), random(64), name="added")
    y = g.apply("MatMul", x, random(64, 64), name="first") + x
    z = g.apply("LayerNormalization", y, random(64), random(64), name="alone")
    net = g.compile(y=z @ random(64, 64), engine=dnn.Engine(isa=BF16, machine="zen4", threads=1), precision="bf16")
    dst = types(net, "dst")
    assert dst["added"] == "f32"
    assert dst["alone"] == types(net, "src")["first"] == "bf16"


def test_what_is_between_convolutions_keeps_bf16() -> None:
    found = implementations("upwards")
    assert found["resize"] == "words:avx512_core"
    assert found["second"].endswith(BF16)
    assert found["transposed"].endswith(BF16)


def test_recurrent_layers_multiply_pairs_where_the_cpu_is_quick_at_it() -> None:
    found = implementations("recurrent")
    assert found["lstm"].endswith(f"pairs:{BF16}")
    assert found["gru"].endswith(f"pairs:{BF16}")
    g, outputs = recurrent()
    slow = g.compile(engine=dnn.Engine(isa=BF16, machine="sapphire_rapids", threads=1), precision="bf16", **outputs)
    assert f"pairs:{BF16}" not in slow.explain()


@pytest.mark.isa(BF16)
@pytest.mark.parametrize(("op", "gates"), [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
@pytest.mark.parametrize("steps", [1, 50])
def test_errors_of_recurrent_layers_are_within_their_bound_for_any_number_of_steps(
    op: str, gates: int, steps: int
) -> None:
    """Rows of large numbers, so that gates are sums of many."""
    g = dnn.Graph(op)
    x = g.input("x", (steps, 1, 48))
    y = g.apply(op, x, *(random(1, gates * 64, n) for n in (48, 64)), random(1, gates * 128), hidden_size=64)
    net = g.compile(y=g.apply("Squeeze", y, np.array((1,))), engine=engine(isa=BF16), precision="bf16")
    found = net.verify({"x": 8 * random(steps, 1, 48) * 48**0.5})
    assert [str(one) for one in found if not one.fits] == []
    assert f"pairs:{BF16}" in net.explain()
