"""Networks that may multiply and store bf16: where they do, how much they differ, and what stays f32."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.errors import InvalidArguments
from asmdnn.generators.functions.eltwise import gauss
from asmdnn.network.narrow.storage import Precision
from asmdnn.network.packs import kept
from tests.network import nets
from tests.network.nets import engine, residual_graph
from tests.support import functions

BF16 = "avx512_core_bf16"
ROUNDED = 0.03  # of the largest value: a handful of roundings to 8 bits one after another


def random(*dims: int) -> np.ndarray:
    """The same for every graph, and so large that values stay near 1."""
    fan = np.prod(dims[1:]) if len(dims) > 2 else dims[0] if len(dims) == 2 else 1
    return (np.random.default_rng(dims).standard_normal(dims) / max(1, fan**0.5)).astype(np.float32)


def images() -> tuple[dnn.Graph, dict[str, Any]]:
    """Convolutions of all kinds, a residual, both kinds of pooling, a join, and what has no kernel of bf16."""
    g = dnn.Graph("images")
    x = g.input("x", (1, 3, 40, 40))
    stem = g.apply("Relu", g.apply("Conv", x, random(32, 3, 3, 3), random(32), pads=(1,) * 4, name="stem"))
    wide = g.apply("Relu", g.apply("Conv", stem, random(64, 32, 1, 1), random(64), name="wide"))
    deep = g.apply("Conv", wide, random(64, 1, 3, 3), pads=(1,) * 4, group=64, name="depthwise")
    back = g.apply("Conv", g.apply("HardSwish", deep), random(32, 64, 1, 1), name="back")
    both = g.apply("Add", back, stem)
    joined = g.apply("Concat", both, g.apply("LRN", both, size=3), axis=1)
    small = g.apply("MaxPool", joined, kernel_shape=(2, 2), strides=(2, 2))
    last = g.apply("Relu", g.apply("Conv", small, random(48, 64, 1, 1), name="last"))
    rows = g.apply("Flatten", g.apply("GlobalAveragePool", last))
    return g, {
        "y": g.apply("Softmax", g.apply("Gemm", rows, random(48, 10) * np.float32(0.01), random(10), name="head"))
    }


def sentences() -> tuple[dnn.Graph, dict[str, Any]]:
    """A layer of an encoder."""
    g = dnn.Graph("sentences")
    x = g.input("x", (2, 24, 64))
    heads = [
        g.apply("Transpose", g.apply("Reshape", x @ random(64, 64), np.array((2, 24, 4, 16))), perm=perm)
        for perm in ((0, 2, 1, 3), (0, 2, 3, 1), (0, 2, 1, 3))
    ]
    scores = g.apply("Softmax", (heads[0] @ heads[1]) * 0.25)
    mixed = g.apply("Reshape", g.apply("Transpose", scores @ heads[2], perm=(0, 2, 1, 3)), np.array((2, 24, 64)))
    norm = g.apply("LayerNormalization", x + mixed @ random(64, 64), random(64), random(64))
    hidden = g.apply("Gelu", g.apply("MatMul", norm, random(64, 256), name="up") + random(256))
    return g, {"y": g.apply("LayerNormalization", norm + hidden @ random(256, 64), random(64), random(64))}


def residual() -> tuple[dnn.Graph, dict[str, Any]]:
    """With the same weights whichever tests ran before: what a softplus makes of errors depends on them."""
    nets.RANDOM.bit_generator.state = np.random.default_rng(7).bit_generator.state
    return residual_graph()


GRAPHS = {"images": images, "sentences": sentences, "residual": residual}


def feeds_of(net: dnn.Network) -> dict[str, np.ndarray]:
    data = np.random.default_rng(23)
    return {name: data.standard_normal(dims).astype(np.float32) for name, (dims, _) in net.inputs.items()}


def types(net: dnn.Network, argument: str) -> Mapping[str, str]:
    """By the name of the first node of each primitive."""
    (segment,) = net.segments
    steps = [step for step in segment.steps if step.nodes]  # type: ignore[union-attr]
    return {step.nodes[0].name: str(step.pd.plan.tensors[argument].dtype) for step in steps if step.nodes[0].name}


@pytest.mark.isa(BF16)
@pytest.mark.parametrize("name", GRAPHS)
def test_results_are_those_of_f32_but_for_rounding(name: str) -> None:
    check_rounding(*GRAPHS[name](), "fast")


def check_rounding(g: dnn.Graph, outputs: dict[str, Any], again: str) -> None:
    """Each primitive within its bound; on one thread and two with equal bits, asked for by another word."""
    net, exact = (g.compile(engine=engine(isa=BF16), precision=word, **outputs) for word in ("bf16", "f32"))
    feeds = feeds_of(net)
    net.check()
    assert [str(one) for one in net.verify(feeds) if not one.fits] == []
    found, wanted = net.run(feeds), exact.run(feeds)
    on_two = g.compile(engine=engine(2, BF16), precision=again, **outputs).run(feeds)
    for key, array in wanted.items():
        assert found[key].dtype == np.float32
        assert 0 < np.abs(found[key] - array).max() <= ROUNDED * np.abs(array).max()
        assert np.array_equal(found[key], on_two[key])


@pytest.mark.parametrize("is_read_again", [False, True])
def test_the_other_branch_of_a_block_is_bf16(is_read_again: bool) -> None:
    """Unless something of f32 reads it, too."""
    g = dnn.Graph()
    x = g.apply("Relu", g.apply("Conv", g.input("x", (1, 32, 24, 24)), random(32, 32, 1, 1), name="stem"))
    other = g.apply("Conv", x, random(64, 32, 1, 1), name="other")
    block = g.apply("Relu", g.apply("Conv", x, random(64, 32, 1, 1), name="block") + other)
    outputs = {"y": g.apply("Conv", block, random(32, 64, 1, 1), name="last")}
    net = g.compile(engine=engine(isa=BF16), precision="bf16", **outputs, **({"z": other} if is_read_again else {}))
    dst = types(net, "dst")
    assert (dst["block"], dst["other"]) == ("bf16", "f32" if is_read_again else "bf16")


def test_products_and_what_lies_between_are_bf16() -> None:
    g, outputs = images()
    net = g.compile(engine=engine(isa=BF16), precision="bf16", **outputs)
    src, dst = types(net, "src"), types(net, "dst")
    assert {src[name] for name in ("wide", "back", "last", "head")} == {"bf16"}
    assert dst["stem"] == dst["last"] == "bf16"
    assert dst["head"] == "f32"
    g, outputs = sentences()
    explained = g.compile(engine=engine(isa=BF16), precision="bf16", **outputs).explain()
    assert f"attention:{BF16}" in explained
    assert f"tiles:{BF16}" in explained


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("form", ["erf", "tanh"])
def test_short_gelus_are_as_near_as_bf16_needs(form: str) -> None:
    """Within 4.2e-5, and within half a rounding of bf16 where the result is beyond 0.05."""
    x = np.concatenate([np.linspace(-12, 12, 48_000), [-1e30, 1e30, np.inf, -np.inf, np.nan, -0.0]]).astype(np.float32)
    function = {"erf": gauss.short_gelu_erf, "tanh": gauss.short_gelu_tanh}[form]
    short = dnn.PostOp(lambda x: function(x.builder, x))
    found = dnn.ops.eltwise(x, "linear", alpha=1.0, post_ops=[short], engine=engine()).astype(np.float64)
    exact = functions.forward(f"gelu_{form}", x[:-4].astype(np.float64))
    off = np.abs(found[:-4] - exact)
    assert off.max() <= 4.2e-5
    assert (off <= 2.0**-10 * np.maximum(np.abs(exact), 0.05)).all()
    assert found[-4] == np.inf and abs(found[-3]) <= 4.2e-5 and np.isnan(found[-2]) and found[-1] == 0


@pytest.mark.isa(BF16)
def test_a_gelu_whose_result_is_bf16_is_short() -> None:
    def chain(keep: tuple[str, ...]) -> str:
        g = dnn.Graph("gelu")
        h = g.apply("Gelu", g.input("x", (64, 256)) @ random(256, 512), name="gelu")
        net = g.compile(y=h @ random(512, 256), precision="bf16", keep_f32=keep, engine=engine(isa=BF16))
        assert all(difference.fits for difference in net.verify({"x": random(64, 256)}))
        steps = (step for segment in net.segments for step in segment.steps)
        (op,) = (op for step in steps for op in step.pd.attr.post_ops)
        return str(op.program)

    assert "div" not in chain(()) and "div" in chain(("gelu",))


def test_memory_is_half_of_that_of_f32() -> None:
    g, outputs = sentences()
    wide, narrow = (
        g.compile(engine=engine(isa=BF16), precision=word, **outputs).segments[0].layout  # type: ignore[union-attr]
        for word in ("f32", "bf16")
    )
    assert narrow.weights_bytes < 0.52 * wide.weights_bytes
    assert narrow.arena_bytes < 0.8 * wide.arena_bytes


def test_winograds_algorithm_stays_where_it_is_faster() -> None:
    g = dnn.Graph()
    x = g.apply("Relu", g.apply("Conv", g.input("x", (1, 64, 56, 56)), random(64, 64, 1, 1), name="first"))
    y = g.apply("Conv", x, random(64, 64, 3, 3), pads=(1,) * 4, name="second")
    net = g.compile(y=y, engine=engine(isa=BF16), precision="bf16")
    assert "winograd" in net.explain()
    assert types(net, "src") == {"first": "bf16", "second": "f32"}
    assert types(net, "dst")["first"] == "f32"


def test_nodes_that_are_named_stay_f32() -> None:
    g, outputs = images()
    net = g.compile(engine=engine(isa=BF16), precision="bf16", keep_f32=["back", "last"], **outputs)
    src = types(net, "src")
    assert src["back"] == src["last"] == "f32"
    assert src["wide"] == "bf16"


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("word", ["bf16", "f16", "fast"])
def test_a_level_without_such_products_computes_in_f32(word: str) -> None:
    """With equal bits: the word is a permission, and `explain` says that it is of no use."""
    g, outputs = images()
    net, exact = (g.compile(engine=engine(), precision=one, **outputs) for one in (word, "f32"))
    feeds = feeds_of(net)
    assert np.array_equal(net.run(feeds)["y"], exact.run(feeds)["y"])
    *lines, batch = exact.explain().splitlines()
    said = f"  precision {word}: nothing is expected to gain by it, all is f32"
    assert net.explain().splitlines() == [*lines, said, batch]


@pytest.mark.isa(BF16)
def test_a_pack_of_such_a_network(tmp_path: Path) -> None:
    g, outputs = images()
    net = g.compile(engine=engine(isa=BF16), precision="bf16", **outputs)
    feeds = feeds_of(net)
    net.save(tmp_path / "net.pack")
    loaded = dnn.load_pack(tmp_path / "net.pack", threads=1)
    assert isinstance(loaded, dnn.Network)
    assert np.array_equal(loaded.run(feeds)["y"], net.run(feeds)["y"])


def test_keys_of_the_cache_know_the_precision() -> None:
    made = [Precision(), Precision("bf16"), Precision("bf16", ("a",)), Precision("fast")]
    keys = {kept.key_of(b"a model", None, None, engine(), None, precision) for precision in made}
    assert len(keys) in (1, len(made))  # 1: None, where nothing is kept


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"precision": "int3"}, "precision must be one of f32, bf16, f16, fast, not 'int3'"),
        ({"precision": None}, "precision must be one of"),
        ({"precision": ["bf16"]}, "precision must be one of"),
        ({"keep_f32": ["bakc"], "precision": "bf16"}, "keep_f32 has 'bakc', which no node is called.*back"),
        ({"keep_f32": [7]}, "keep_f32 must be names of nodes"),
        ({"keep_f32": 7}, "keep_f32 must be names of nodes"),
    ],
)
def test_words_that_are_none(said: dict[str, Any], words: str) -> None:
    g, outputs = images()
    with pytest.raises(InvalidArguments, match=words):
        g.compile(engine=engine(isa=BF16), **said, **outputs)


def mobile() -> tuple[dnn.Graph, dict[str, Any]]:
    """Pairs of a 1x1 and a depthwise convolution in large planes, and one row by a matrix after them."""
    g = dnn.Graph("mobile")
    x = g.input("x", (1, 16, 112, 112))
    for i in range(2):
        wide = g.apply("Relu", g.apply("Conv", x, random(96, 16, 1, 1), name=f"wide {i}"))
        deep = g.apply("Relu", g.apply("Conv", wide, random(96, 1, 3, 3), pads=(1,) * 4, group=96, name=f"deep {i}"))
        x = g.apply("Conv", deep, random(16, 96, 1, 1), name=f"thin {i}")
    rows = g.apply("Flatten", g.apply("GlobalAveragePool", g.apply("Conv", x, random(1280, 16, 1, 1), name="last")))
    return g, {"y": g.apply("Gemm", rows, random(1280, 1000), name="head")}


def test_a_cpu_that_multiplies_pairs_slowly_stores_weights_of_single_rows() -> None:
    """Of what waits for weights bf16 is half the bytes; other products stay f32, and pairs stay pairs."""
    g, outputs = mobile()
    machine = dnn.Engine(isa=BF16, machine="sapphire_rapids", threads=1)
    net, wide = (g.compile(engine=machine, precision=word, **outputs) for word in ("bf16", "f32"))
    src = types(net, "src")
    assert {name: dtype for name, dtype in src.items() if dtype == "bf16"} == {"head": "bf16"}
    assert [step.pd.implementation for step in wide.segments[0].steps].count("strips+direct+depthwise:avx512_core") == 2  # type: ignore[union-attr]
    names = [[step.pd.implementation for step in one.segments[0].steps] for one in (net, wide)]  # type: ignore[union-attr]
    assert names[0][:-2] == names[1][:-2]  # all but the mean and the product of its row
    assert expected(net) < expected(wide)


def expected(net: dnn.Network) -> int:
    """Cycles of all primitives."""
    return sum(step.pd.plan.cycles for step in net.segments[0].steps)  # type: ignore[union-attr]


FORESEEN = 1.01  # products are chosen by their own cycles and conversions, before formats bring copies around them


@pytest.mark.parametrize("machine", ["zen4", "zen5", "sapphire_rapids"])
@pytest.mark.parametrize("name", GRAPHS)
def test_expected_cycles_are_not_more_than_those_of_f32(name: str, machine: str) -> None:
    g, outputs = GRAPHS[name]()
    engine = dnn.Engine(isa=BF16, machine=machine, threads=1)  # type: ignore[arg-type]
    net, wide = (g.compile(engine=engine, precision=word, **outputs) for word in ("bf16", "f32"))
    assert expected(net) <= FORESEEN * expected(wide)
