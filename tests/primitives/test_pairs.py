"""A convolution with a depthwise post-op: by strips and in phases, on integers, whose results must be equal."""

from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import asmdnn as dnn
from asmdnn.planning.codec import decode_plan, encode_plan
from asmdnn.primitives.convolution.pairs.plan import every_height, plan_strips, prepared, takes_strips
from tests.primitives.guarded import check_at_pages
from tests.primitives.tensors import assert_within, holding, read
from tests.primitives.test_guard_pages import run_guarded
from tests.support.plans import execute

MACHINE = "zen3"
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Pair:
    """ic channels of `rows` x `cols` pixels to c, and a depthwise `kernel` with `padding` before and after."""

    mb: int
    ic: int
    c: int
    rows: int
    cols: int
    kernel: tuple[int, int] = (3, 3)
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (0, 0)
    tags: tuple[str, str] = ("any", "any")
    first: tuple[int, int] = (1, 1)  # kernel of the first, padded to keep its size

    def __str__(self) -> str:
        return "_".join(str(value).replace(" ", "") for value in astuple(self))

    def desc(self) -> dnn.ConvolutionForward:
        padding = tuple(k // 2 for k in self.first)
        return dnn.ConvolutionForward(
            src=dnn.MemoryDesc((self.mb, self.ic, self.rows, self.cols), dnn.f32, self.tags[0]),
            weights=dnn.MemoryDesc((self.c, self.ic, *self.first), dnn.f32, "any"),
            dst=dnn.MemoryDesc((self.mb, self.c, self.rows, self.cols), dnn.f32, self.tags[1]),
            bias=dnn.MemoryDesc((self.c,), dnn.f32, "a"),
            padding_l=padding,
            padding_r=padding,
        )

    def depthwise(self, bias: bool = True) -> dnn.Depthwise:
        weights = dnn.MemoryDesc((self.c, 1, 1, *self.kernel), dnn.f32, "any")
        vector = dnn.MemoryDesc((self.c,), dnn.f32, "a") if bias else None
        return dnn.Depthwise(weights, vector, self.stride, self.dilation, self.padding, self.padding)

    def attr(self) -> dnn.Attr:
        return dnn.Attr([dnn.Eltwise("relu"), self.depthwise(), dnn.Eltwise("relu", 1.0)])


def reference(pair: Pair, arrays: Mapping[str, npt.NDArray[Any]]) -> npt.NDArray[np.float64]:
    """Both sums in float64, relu between them; what the post-ops after do is left to the caller."""
    data = {name: array.astype(np.float64) for name, array in arrays.items()}
    middle = np.zeros((pair.mb, pair.c, pair.rows, pair.cols))
    p, q = (k // 2 for k in pair.first)
    padded = np.pad(data["src"], ((0, 0), (0, 0), (p, p), (q, q)))
    for r, s in product(range(pair.first[0]), range(pair.first[1])):
        window = padded[:, :, r : r + pair.rows, s : s + pair.cols]
        middle += np.einsum("nihw,oi->nohw", window, data["weights"][:, :, r, s])
    middle = np.maximum(middle + data["bias"][:, None, None], 0)
    (p, q), (sh, sw), (dh, dw) = pair.padding, pair.stride, (d + 1 for d in pair.dilation)
    padded = np.pad(middle, ((0, 0), (0, 0), (p, p), (q, q)))
    oh = (pair.rows + 2 * p - (pair.kernel[0] - 1) * dh - 1) // sh + 1
    ow = (pair.cols + 2 * q - (pair.kernel[1] - 1) * dw - 1) // sw + 1
    total = np.zeros((pair.mb, pair.c, oh, ow))
    for r, s in product(range(pair.kernel[0]), range(pair.kernel[1])):
        window = padded[:, :, r * dh : r * dh + (oh - 1) * sh + 1 : sh, s * dw : s * dw + (ow - 1) * sw + 1 : sw]
        total += data["dw_weights_1"][:, 0, 0, r, s][:, None, None] * window
    bias = data.get("dw_bias_1")
    return total if bias is None else total + bias[:, None, None]


def integers(pd: dnn.PrimitiveDesc) -> dict[str, Floats]:
    random = np.random.default_rng(3)
    tensors = {name: desc for name, desc in pd.plan.tensors.items() if name != "dst"}
    return {name: random.integers(-3, 4, desc.dims).astype(np.float32) for name, desc in tensors.items()}


def run(pd: dnn.PrimitiveDesc, arrays: dict[str, Floats], emulated: bool = False) -> Floats:
    memories = {name: holding(desc, arrays.get(name)) for name, desc in pd.plan.tensors.items()}
    execute(pd, memories, emulated)
    return read(memories["dst"])


def engine_of(isa: str, threads: int = 1) -> dnn.Engine:
    return dnn.Engine(isa=isa, threads=threads, l2_bytes=512 << 10, machine=MACHINE)


def by_strips(pair: Pair, isa: str, rows: int, attr: dnn.Attr | None = None, threads: int = 1) -> dnn.PrimitiveDesc:
    """In strips of so many rows, which the planner might not choose."""
    desc, attr, engine = pair.desc(), attr or pair.attr(), engine_of(isa, threads)
    plan = prepared(desc, attr, engine).in_strips(rows)
    assert plan.implementation == f"strips+direct+depthwise:{isa}"
    plan.check()
    return dnn.PrimitiveDesc(desc, attr, engine, plan)


STRIPS = [
    (Pair(1, 8, 16, 9, 9), 9), (Pair(2, 3, 21, 9, 7), 2), (Pair(2, 19, 40, 11, 6, stride=(2, 2)), 2),
    (Pair(1, 5, 17, 12, 9, (5, 5), padding=(2, 2), tags=("axb", "axb")), 3),
    (Pair(1, 16, 35, 8, 10, (5, 3), (2, 1), (2, 0), tags=("aBx16b", "axb")), 1),
    (Pair(2, 8, 32, 13, 9, (3, 3), (1, 2), (2, 1), (1, 0), tags=("axb", "aBx16b")), 4),
    (Pair(3, 8, 8, 20, 5, (2, 3), padding=(0, 1)), 3), (Pair(1, 40, 16, 16, 4, (1, 7), padding=(0, 3)), 5),
]  # fmt: skip


@pytest.mark.parametrize(("pair", "rows"), STRIPS, ids=str)
def test_strips(isa: str, pair: Pair, rows: int) -> None:
    pd = by_strips(pair, isa, rows)
    arrays = integers(pd)
    assert_within(run(pd, arrays), reference(pair, arrays), 0.0)


@pytest.mark.emulated("avx512_core")
@pytest.mark.parametrize(("pair", "rows"), STRIPS[1:3], ids=str)
def test_strips_emulated(pair: Pair, rows: int) -> None:
    small = replace(pair, mb=1, cols=4)
    pd = by_strips(small, "avx512_core", rows)
    arrays = integers(pd)
    assert_within(run(pd, arrays, emulated=True), reference(small, arrays), 0.0)


@pytest.mark.parametrize(("pair", "rows"), STRIPS, ids=str)
def test_plans_of_the_other_level(pair: Pair, rows: int) -> None:
    pd = by_strips(pair, "avx512_core", rows)
    decoded, _ = decode_plan(encode_plan(pd.plan))
    assert decoded.tensors == pd.plan.tensors


@pytest.mark.parametrize(("pair", "rows"), STRIPS[1:4], ids=str)
def test_guard_pages(isa: str, pair: Pair, rows: int) -> None:
    pd = by_strips(pair, isa, rows)
    arrays, primitive = integers(pd), dnn.Primitive(pd)
    wanted = reference(pair, arrays)
    check_at_pages(lambda at_end: run_guarded(primitive, arrays, wanted, at_end))


def test_every_count_of_threads_gives_the_same_bytes(isa: str) -> None:
    pair, found = Pair(2, 19, 40, 11, 6, stride=(2, 2)), set()
    for threads in (1, 2, 5):
        pd = by_strips(pair, isa, 2, threads=threads)
        random = np.random.default_rng(1)
        arrays = {name: random.standard_normal(array.shape, np.float32) for name, array in integers(pd).items()}
        found.add(run(pd, arrays).tobytes())
    phases = run(dnn.primitive_desc(pair.desc(), pair.attr(), engine_of(isa)), arrays)
    assert found == {phases.tobytes()}


def in_rounds(pair: Pair, isa: str) -> dnn.PrimitiveDesc:
    """Under a tuning that writes out less."""
    engine = engine_of(isa)
    tuning = replace(engine.tuning, convolution=replace(engine.tuning.convolution, written_out=4, round_records=1))
    engine = replace(engine, tuning=tuning)
    return dnn.PrimitiveDesc(pair.desc(), pair.attr(), engine, prepared(pair.desc(), pair.attr(), engine).in_strips(3))


def test_many_records_are_rounds(planned_isa: str) -> None:
    plan = in_rounds(Pair(2, 4, 40, 19, 6), planned_isa).plan
    plan.check()
    assert len(plan.phases) > 2
    assert all(phase.repeats or phase.count < 20 for phase in plan.phases)


def test_results_in_rounds(isa: str) -> None:
    pair = Pair(2, 4, 40, 19, 6)
    pd = in_rounds(pair, isa)
    arrays = integers(pd)
    assert_within(run(pd, arrays), reference(pair, arrays), 0.0)


PHASES = [
    ("direct+depthwise", Pair(1, 8, 24, 9, 9, first=(3, 3))),
    ("direct+depthwise", Pair(1, 8, 16, 6, 9, stride=(2, 2))),
    ("direct+reorder+depthwise", Pair(1, 8, 24, 9, 9, tags=("axb", "abcd"))),
    ("reorder+direct+depthwise", Pair(1, 24, 24, 5, 9, tags=("abcd", "axb"))),
]


@pytest.mark.parametrize(("name", "pair"), PHASES, ids=str)
def test_phases(isa: str, name: str, pair: Pair) -> None:
    pd = dnn.primitive_desc(pair.desc(), pair.attr(), engine_of(isa))
    assert pd.implementation == f"{name}:{isa}"
    pd.plan.check()
    arrays = integers(pd)
    assert_within(run(pd, arrays), reference(pair, arrays), 0.0)


def test_post_ops_between_and_after(isa: str) -> None:
    """Tensors of every broadcast on both sides, and a sum after; by strips as in phases."""
    pair, depthwise = Pair(2, 8, 21, 9, 6, stride=(2, 1)), Pair(2, 8, 21, 9, 6, stride=(2, 1)).depthwise(bias=False)
    shapes = {"binary_1": (1, 21, 1, 1), "binary_2": (2, 21, 9, 6), "binary_4": (2, 21, 5, 6), "prelu_6": (1, 21, 1, 1),
              "binary_7": (2, 1, 5, 6)}  # fmt: skip
    md = {name: dnn.MemoryDesc(shape, dnn.f32, "any") for name, shape in shapes.items()}
    attr = dnn.Attr([
        dnn.Eltwise("relu"), dnn.Binary("mul", md["binary_1"]), dnn.Binary("add", md["binary_2"]), depthwise,
        dnn.Binary("add", md["binary_4"]), dnn.Sum(2.0), dnn.PReLU(md["prelu_6"]), dnn.Binary("max", md["binary_7"]),
    ])  # fmt: skip
    phases = dnn.implementations(pair.desc(), attr, engine_of(isa))[1]
    assert isinstance(phases, dnn.PrimitiveDesc)
    arrays = integers(phases)
    arrays["dst"] = np.random.default_rng(9).integers(-3, 4, phases.dst_desc.dims).astype(np.float32)
    outcomes = [run(pd, arrays) for pd in (phases, by_strips(pair, isa, 2, attr))]
    assert np.array_equal(*outcomes)
    factor, added = arrays["binary_1"].astype(np.float64), arrays["binary_2"]
    x = np.einsum("nihw,oi->nohw", arrays["src"], arrays["weights"][:, :, 0, 0]) + arrays["bias"][:, None, None]
    x = np.maximum(x, 0) * factor + added
    identity = {
        "weights": np.eye(21)[:, :, None, None],
        "bias": np.full(21, 1e6),
        "dw_weights_1": arrays["dw_weights_3"],
    }
    moved, still = (
        reference(replace(pair, ic=21), {**identity, "src": src}) for src in (x, 0 * x)
    )  # a bias keeps signs
    total = moved - still + arrays["binary_4"] + 2 * arrays["dst"]
    wanted = np.maximum(np.where(total > 0, total, total * arrays["prelu_6"]), arrays["binary_7"])
    assert_within(outcomes[0], wanted, 0.0)


def test_strips_are_chosen_where_the_middle_leaves_l2() -> None:
    """Of 16 to 96 channels at 112x112 it has 4.8 MB; of 64 at 7x7 it stays."""
    engine = engine_of("avx2")
    names = [dnn.primitive_desc(pair.desc(), pair.attr(), engine).implementation for pair in (
        Pair(1, 16, 96, 112, 112, stride=(2, 2)), Pair(1, 160, 960, 7, 7))]  # fmt: skip
    assert names == ["strips+direct+depthwise:avx2", "direct+depthwise:avx2"]
    refused = dnn.implementations(Pair(1, 160, 960, 7, 7).desc(), Pair(1, 160, 960, 7, 7).attr(), engine)[0]
    assert "are expected to take" in str(refused)
    candidates = [what for what, _ in every_height(Pair(1, 8, 16, 9, 9).desc(), Pair(1, 8, 16, 9, 9).attr(), engine)]
    assert candidates == [f"strips of {rows} rows" for rows in (9, 5, 3, 2, 1)]


def test_what_a_pair_is_compared_by_is_planned_once(planned_isa: str) -> None:
    """Where no strips are taken, both convolutions are asked for next: they get the plans that were compared."""
    pair, engine = Pair(1, 160, 960, 7, 7), engine_of(planned_isa)
    made = prepared(pair.desc(), pair.attr(), engine)
    alone = replace(made.pair.second, algorithm=pair.desc().algorithm)
    first = dnn.primitive_desc(made.pair.first, made.pair.first_attr, engine)
    second = dnn.primitive_desc(alone, made.pair.second_attr, engine)
    assert (first.plan is made.plans[0], second.plan is made.plans[1]) == (True, True)


Chain = Callable[[Pair], list[Any]]
BAD: list[tuple[Chain, str]] = [
    (lambda p: [p.depthwise(), p.depthwise()], "two depthwise post-ops"),
    (lambda p: [dnn.Sum(), p.depthwise()], "a sum in front of a depthwise post-op"),
    (lambda p: [replace(p, c=17).depthwise()], "17 input channels in 17 groups, src has 16"),
    (lambda p: [dnn.Depthwise(dnn.MemoryDesc((16, 1, 1, 3), dnn.f32, "any"))], "has 1 spatial axes, src has 2"),
    (lambda p: [replace(p, kernel=(15, 3)).depthwise()], "exceeds the padded src"),
]


@pytest.mark.parametrize(("chain", "message"), BAD)
def test_bad_input(chain: Chain, message: str) -> None:
    pair = Pair(1, 8, 16, 9, 9)
    with pytest.raises((dnn.Unimplemented, dnn.InvalidArguments), match=message):
        dnn.primitive_desc(pair.desc(), dnn.Attr(chain(pair)), engine_of("avx2"))


def test_what_takes_no_depthwise_post_op_says_so() -> None:
    pair = Pair(1, 8, 16, 9, 9)
    with pytest.raises(dnn.Unimplemented, match="after convolutions only"):
        tensor = dnn.MemoryDesc((1, 16, 9, 9), dnn.f32, "abcd")
        relu = dnn.EltwiseForward(dnn.PropKind.forward_inference, "relu", tensor, tensor)
        dnn.primitive_desc(relu, dnn.Attr([pair.depthwise()]), engine_of("avx2"))
    with pytest.raises(dnn.Unimplemented, match="scales and zero points with a depthwise post-op"):
        attr = dnn.Attr([pair.depthwise()], scales={"src": 0})
        dnn.primitive_desc(pair.desc(), attr, engine_of("avx2"))
    for weights, message in (((16, 3, 3), "they must be"), ((16, 2, 1, 3, 3), "they must be")):
        with pytest.raises(dnn.InvalidArguments, match=message):
            dnn.Depthwise(dnn.MemoryDesc(weights, dnn.f32, "any"))
    with pytest.raises(dnn.InvalidArguments, match=r"Depthwise\.strides must be two integers from 1"):
        replace(pair, stride=(0, 1)).depthwise()


@pytest.mark.parametrize("stride", [(1, 1), (2, 2), (3, 3)])
@pytest.mark.parametrize("size", [7, 20, 56, 96])
def test_what_takes_strips_is_known_without_their_plan(planned_isa: str, size: int, stride: tuple[int, int]) -> None:
    """A network asks before it plans: both answers are the same, of images that lie in L2 and of larger ones."""
    pair = Pair(1, 24, 72, size, size, kernel=(2, 2), stride=stride, padding=(0, 0))
    request = pair.desc(), pair.attr(), engine_of(planned_isa)
    assert takes_strips(*request) == (not isinstance(plan_strips(*request), dnn.Refusal))
