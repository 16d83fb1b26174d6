"""Every kind of primitive is planned for every size of L2 that an engine may be given, from one byte on."""

from collections.abc import Iterator
from typing import Any

import pytest

import asmdnn as dnn
from asmdnn.bench.drivers import driver_names, driver_of
from asmdnn.planning.codec import plan_text
from asmdnn.planning.plan import Plan
from asmdnn.primitives.core.registry import kinds
from asmdnn.primitives.products.gemm import Gemm
from tests.support.cases import read

SIZES = (1, 2, 3, 7, 8, 15, 63, 64, 1000, 4096, 1 << 15, 1 << 21, 1 << 40, 1 << 62)


def f32(*dims: int, tag: str = "any") -> dnn.MemoryDesc:
    return dnn.MemoryDesc(dims, dnn.f32, tag)


def convolution(*sizes: int, ic: int = 48, oc: int = 40, tag: str = "any", kernel: int = 3) -> dnn.ConvolutionForward:
    pad = (kernel // 2,) * len(sizes)
    src, dst = f32(2, ic, *sizes, tag=tag), f32(2, oc, *sizes, tag=tag)
    weights = f32(oc, ic, *[kernel] * len(sizes), tag="abx" if tag != "any" else tag)
    return dnn.ConvolutionForward(src, weights, dst, padding_l=pad, padding_r=pad)


DESCRIPTIONS = [
    convolution(9, 9),
    convolution(9, 9, ic=3, oc=100),
    convolution(40),
    convolution(4, 4, 4),
    convolution(9, 9, tag="abx"),
    convolution(9, 9, tag="axb", kernel=1),
    dnn.MatMul(f32(130, 300), f32(300, 200), f32(130, 200)),
    dnn.MatMul(f32(130, 300, tag="ab"), f32(300, 200, tag="ba"), f32(130, 200, tag="ba")),
    dnn.MatMul(f32(3, 7, 1024, tag="abc"), f32(1, 1024, 512, tag="abc"), f32(3, 7, 512)),
    dnn.MatMul(f32(1, 2000, tag="ab"), f32(2000, 33, tag="ab"), f32(1, 33)),
    dnn.InnerProductForward(f32(5, 24, 3, 3), f32(70, 24, 3, 3), f32(5, 70)),
    dnn.InnerProductBackwardData(f32(5, 24, 3, 3), f32(70, 24, 3, 3), f32(5, 70)),
    dnn.InnerProductBackwardWeights(f32(5, 24, 3, 3), f32(70, 24, 3, 3), f32(5, 70)),
    dnn.ConvolutionBackwardData(f32(1, 40, 9, 9), f32(70, 40, 3, 3), f32(1, 70, 7, 7)),
    dnn.DeconvolutionBackwardData(f32(1, 40, 7, 7), f32(70, 40, 3, 3), f32(1, 70, 9, 9)),
    dnn.PoolingBackward("avg_include_padding", f32(2, 24, 9, 9), f32(2, 24, 4, 4), (3, 3), (2, 2)),
    dnn.BatchNormBackward(*(f32(2, 24, 9, 9),) * 3, *(f32(24, tag="a"),) * 2, 1e-5, *(f32(24, tag="a"),) * 3),
    dnn.GroupNormBackward(*(f32(2, 24, 9, 9),) * 3, 4, *(f32(2, 4),) * 2, 1e-5, *(f32(24, tag="a"),) * 3),
    dnn.PReLUBackward(f32(2, 24, 9, 9), f32(1, 24, 1, 1), f32(2, 24, 9, 9), f32(2, 24, 9, 9), f32(1, 24, 1, 1)),
    dnn.ResamplingBackward("linear", f32(2, 24, 9, 9), f32(2, 24, 18, 18)),
    dnn.LRNBackward("lrn_across_channels", *(f32(2, 24, 9, 9),) * 3),
    dnn.AttentionBackward(*(f32(1, 2, 60, 32, tag="abcd"),) * 7),
    dnn.SoftmaxBackward("log", *(f32(40, 300, tag="ab"),) * 3, 1),
    dnn.LayerNormBackward(*(f32(40, 300, tag="ab"),) * 3, *(f32(40, tag="a"),) * 2, 1e-5, *(f32(300, tag="a"),) * 3),
    dnn.ConvolutionBackwardWeights(f32(2, 40, 9, 9), f32(70, 40, 3, 3), f32(2, 70, 7, 7), f32(70)),
    dnn.DeconvolutionBackwardWeights(f32(1, 40, 7, 7), f32(70, 40, 3, 3), f32(1, 70, 9, 9)),
    Gemm(f32(60, 500, tag="ab"), f32(500, 70, tag="ab"), f32(60, 70, tag="ab")),
    dnn.Reorder(f32(3, 40, 9, 9, tag="nchw"), f32(3, 40, 9, 9, tag="nChw16c")),
    dnn.Shuffle(f32(2, 24, 5, 5, tag="nhwc"), f32(2, 24, 5, 5, tag="nhwc"), axis=1, group_size=4),
    dnn.EltwiseForward(dnn.PropKind.forward_inference, "tanh", f32(9, 1000, tag="ab"), f32(9, 1000)),
    dnn.EltwiseBackward("tanh", f32(9, 1000, tag="ab"), f32(9, 1000), f32(9, 1000)),
    dnn.BinaryForward("add", f32(9, 1000, tag="ab"), f32(1, 1000, tag="ab"), f32(9, 1000)),
    dnn.AdaptivePooling("max", f32(2, 24, 9, 9, tag="nchw"), f32(2, 24, 4, 4, tag="nchw")),
    dnn.QuantizedMatMul(
        f32(5, 256, tag="ab"), dnn.MemoryDesc((128, 70), dnn.u8, "any"), f32(8, 70), f32(5, 70), f32(8, 70)
    ),
    dnn.Pad(f32(3, 40, 9, 9, tag="nchw"), f32(3, 40, 11, 12, tag="nchw"), (0, 0, 1, 2)),
    dnn.TreeEnsemble(
        src=f32(90, 30, tag="ab"),
        nodes=dnn.MemoryDesc((1024,), dnn.s32, "a"),
        order=dnn.MemoryDesc((1, 32), dnn.s32, "ab"),
        values=None,
        base=f32(1, tag="a"),
        dst=f32(90, 1, tag="ab"),
        trees=20,
    ),
    dnn.CumulativeProduct(*(f32(9, 1000, tag="ab"),) * 2, 1),
    dnn.StochasticRounding(f32(9, 1000, tag="ab"), dnn.MemoryDesc((9, 1000), dnn.bf16, "ab")),
]
RECURRENT = "--alg=VANILLA_RNN,VANILLA_LSTM,VANILLA_GRU,LBR_GRU --dir=FWD_I,BWD_DW l1t3mb5sic40slc24dhc40"


def examples() -> Iterator[Any]:
    """Of drivers whose primitives are not above; --rnn has one for every cell and pass."""
    known = {type(desc) for desc in DESCRIPTIONS}
    for name in driver_names():
        words = RECURRENT if name == "rnn" else driver_of(name).example
        for case in read(f"--{name} {words}")[: None if name == "rnn" else 1]:
            desc, _ = case.driver.work(case).describe()
            if type(desc) not in known:
                yield desc


DESCRIPTIONS.extend(examples())


def test_all_kinds_are_here() -> None:
    assert {type(desc) for desc in DESCRIPTIONS} == set(kinds())


def value_of(plan: Plan) -> tuple[object, ...]:
    """Everything that a plan is, to be compared."""
    arrays: list[object] = []
    text = plan_text(plan, lambda array: arrays.append((array.dtype.str, array.shape, array.tobytes())))
    return plan.specs, repr(text), *arrays


@pytest.mark.parametrize("desc", DESCRIPTIONS, ids=lambda desc: type(desc).__name__)
@pytest.mark.one_in(5)
def test_shares_of_l2_never_reach_zero(planned_isa: str, desc: object) -> None:
    """Sizes that lead to the same plan prove it once."""
    proved = set()
    for l2_bytes in SIZES:
        engine = dnn.Engine(isa=planned_isa, threads=1, l2_bytes=l2_bytes)
        plan = dnn.primitive_desc(desc, engine=engine).plan  # type: ignore[arg-type]
        value = value_of(plan)
        if value not in proved:
            plan.check()
            proved.add(value)


@pytest.mark.parametrize("desc", DESCRIPTIONS, ids=lambda desc: type(desc).__name__)
def test_plans_do_not_depend_on_threads(planned_isa: str, desc: object) -> None:
    one, many = (
        dnn.primitive_desc(desc, engine=dnn.Engine(isa=planned_isa, threads=threads, l2_bytes=1)).plan  # type: ignore[arg-type]
        for threads in (1, 256)
    )
    assert one.specs == many.specs
    assert all((a.records == b.records).all() for a, b in zip(one.phases, many.phases, strict=True))
    assert 1 <= many.parts(256) <= 256
