"""Inner products, forward and backward, against numpy in float64, for every pair of formats."""

from collections.abc import Callable
from math import prod

import numpy as np
import pytest

import asmdnn as dnn
from tests.primitives.tensors import assert_within, holding, read

UNIT_ROUNDOFF = 2.0**-24
Values = dict[str, np.ndarray]
Reference = Callable[[Values], Values]

SHAPES = [  # mb, oc, ic, positions
    (3, 5, 7, ()),
    (16, 40, 100, ()),
    (1, 33, 16, (1, 1)),
    (2, 40, 24, (3, 5)),
    (7, 20, 13, (2, 2)),
    (2, 3, 4, (2, 3, 2)),
    (5, 4, 8, (3,)),
]
SRC = {2: ["any", "ab", "ba", "aB8b"], 3: ["abc", "acb", "aBc8b"], 4: ["any", "abcd", "acdb", "aBcd8b"], 5: ["acdeb"]}
WEIGHTS = {
    2: ["any", "ab", "ba", "Ab16a", "Ba16b"],
    3: ["any", "abc"],
    4: ["any", "abcd", "cdba", "acdb", "ABcd8b16a"],
    5: ["any", "abcde"],
}
CASES = [
    (shape, src, weights)
    for shape in SHAPES
    for src in SRC[2 + len(shape[3])]
    for weights in WEIGHTS[2 + len(shape[3])]
]


def tensor(dims: tuple[int, ...], tag: str) -> dnn.MemoryDesc:
    return dnn.MemoryDesc(dims, dnn.f32, tag)


def forward(v: Values) -> Values:
    inputs = prod(v["src"].shape[1:])
    src, weights = (v[name].reshape(-1, inputs).astype(float) for name in ("src", "weights"))
    return {"dst": np.maximum(src @ weights.T + v["bias"], 0)}


def backward_data(v: Values) -> Values:
    return {"diff_src": v["diff_dst"].astype(float) @ v["weights"].reshape(len(v["weights"]), -1)}


def backward_weights(v: Values) -> Values:
    diff_dst = v["diff_dst"].astype(float)
    return {"diff_weights": diff_dst.T @ v["src"].reshape(-1, prod(v["src"].shape[1:])), "diff_bias": diff_dst.sum(0)}


def descriptions(
    shape: tuple[int, int, int, tuple[int, ...]], src: str, weights: str
) -> list[tuple[object, Reference, list[dnn.Eltwise]]]:
    mb, oc, ic, positions = shape
    s, w, d = tensor((mb, ic, *positions), src), tensor((oc, ic, *positions), weights), tensor((mb, oc), "ab")
    bias = tensor((oc,), "a")
    return [
        (dnn.InnerProductForward(s, w, tensor((mb, oc), "any"), bias), forward, [dnn.Eltwise("relu")]),
        (dnn.InnerProductBackwardData(s, w, d), backward_data, []),
        (dnn.InnerProductBackwardWeights(s, w, d, bias), backward_weights, []),
    ]


def values_of(pd: dnn.PrimitiveDesc, integers: bool) -> Values:
    random = np.random.default_rng(3)
    dims = {name: desc.dims for name, desc in pd.plan.tensors.items() if name not in pd.plan.outputs}
    if integers:
        return {name: random.integers(-3, 4, d).astype(np.float32) for name, d in dims.items()}
    return {name: random.uniform(-1, 1, d).astype(np.float32) for name, d in dims.items()}


def check(desc: object, reference: Reference, ops: list[dnn.Eltwise], engine: dnn.Engine) -> str:
    pd = dnn.primitive_desc(desc, dnn.Attr(ops), engine)  # type: ignore[arg-type]
    pd.plan.check()
    for integers in (True, False):
        values = values_of(pd, integers)
        memories = {name: holding(d, values.get(name)) for name, d in pd.plan.tensors.items()}
        dnn.Primitive(pd).execute(**memories)
        terms = 20 + max(prod(d.dims) for d in pd.plan.tensors.values())
        sizes = reference({name: np.abs(x) for name, x in values.items()})
        for name, wanted in reference(values).items():
            dims = pd.plan.tensors[name].dims
            bound = 0.0 if integers else sizes[name].reshape(dims) * terms * UNIT_ROUNDOFF
            assert_within(read(memories[name]), wanted.reshape(dims), bound)
    return pd.implementation


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.one_in(5)
def test_results(isa: str, case: tuple[tuple[int, int, int, tuple[int, ...]], str, str]) -> None:
    for desc, reference, ops in descriptions(*case):
        check(desc, reference, ops, dnn.Engine(isa=isa, threads=1))


@pytest.mark.parametrize(
    ("src", "weights"), [("abcd", "Abcd16a"), ("acdb", "Acdb16a"), ("aBcd8b", "ABcd8b16a")], ids=str
)
def test_no_source_is_copied(src: str, weights: str) -> None:
    """Weights that are any get the order of the source."""
    desc, _, _ = descriptions((16, 64, 24, (3, 5)), src, "any")[0]
    pd = dnn.primitive_desc(desc, engine=dnn.Engine(isa="avx2", threads=1))  # type: ignore[arg-type]
    assert pd.weights_desc == tensor((64, 24, 3, 5), weights)
    assert pd.implementation == "tiles:avx2"


def test_every_thread_count_gives_the_same_bytes(isa: str) -> None:
    results = []
    for threads in (1, 2, 5):
        for desc, _, _ in descriptions((40, 200, 300, ()), "ab", "ab"):
            pd = dnn.primitive_desc(desc, engine=dnn.Engine(isa=isa, threads=threads))  # type: ignore[arg-type]
            values = values_of(pd, integers=False)
            memories = {name: holding(d, values.get(name)) for name, d in pd.plan.tensors.items()}
            dnn.Primitive(pd).execute(**memories)
            results.append([memories[name].array.tobytes() for name in pd.plan.outputs])
    assert results[:3] == results[3:6] == results[6:]


def test_queries() -> None:
    s, w, d = tensor((4, 6), "ab"), tensor((5, 6), "any"), tensor((4, 5), "ab")
    engine = dnn.Engine(isa="avx2", threads=1)
    data = dnn.primitive_desc(dnn.InnerProductBackwardData(s, w, d), engine=engine)
    assert (data.diff_src_desc, data.diff_dst_desc, data.diff_weights_desc) == (s, d, None)
    weights = dnn.primitive_desc(dnn.InnerProductBackwardWeights(s, w, d, tensor((5,), "a")), engine=engine)
    assert (weights.diff_weights_desc, weights.diff_bias_desc) == (tensor((5, 6), "ab"), tensor((5,), "a"))


@pytest.mark.parametrize(
    ("src", "weights", "dst", "bias", "message"),
    [
        ((2, 3), (4, 5), (2, 4), None, "weights has dims"),
        ((2, 3, 2, 2), (4, 3, 2, 1), (2, 4), None, "weights has dims"),
        ((2, 3), (4, 3), (3, 4), None, "dst has dims"),
        ((2, 3), (4, 3), (2, 5), None, "dst has dims"),
        ((2, 3), (4, 3), (2, 4), (2,), "bias has dims"),
        ((2,), (4,), (2, 4), None, "src has 1 dim"),
    ],
)
def test_shapes_that_do_not_fit(
    src: tuple[int, ...], weights: tuple[int, ...], dst: tuple[int, ...], bias: tuple[int, ...] | None, message: str
) -> None:
    tensors = [tensor(dims, "abcd"[: len(dims)]) for dims in (src, weights, dst)]
    with pytest.raises(dnn.InvalidArguments, match=message):
        dnn.InnerProductForward(*tensors, None if bias is None else tensor(bias, "a"))


def test_refusals(planned_isa: str) -> None:
    engine = dnn.Engine(isa=planned_isa)
    s, w = tensor((2, 3), "ab"), tensor((4, 3), "any")
    with pytest.raises(dnn.Unimplemented, match="diff_dst is s8, use f32, bf16, f16"):
        dnn.primitive_desc(dnn.InnerProductBackwardData(s, w, dnn.MemoryDesc((2, 4), dnn.s8, "ab")), engine=engine)
    with pytest.raises(dnn.Unimplemented, match="post-ops and scales of a backward pass"):
        desc = dnn.InnerProductBackwardData(s, w, tensor((2, 4), "ab"))
        dnn.primitive_desc(desc, dnn.Attr([dnn.Eltwise("relu")]), engine)


def test_an_empty_batch_does_nothing(isa: str) -> None:
    for desc, reference, ops in descriptions((0, 5, 7, ()), "ab", "any"):
        check(desc, reference, ops, dnn.Engine(isa=isa, threads=1))
