"""Convolutions with few output channels: shapes, layouts, post-ops against the reference, and when they are chosen."""

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.bench.problems import parse_problem
from tests.primitives.conv_case import ENGINE, ConvCase, case_of, planned_as
from tests.primitives.conv_reference import expected, make_data, tolerance
from tests.primitives.conv_run import check_results, memories_of
from tests.primitives.tensors import assert_within, read

# problem, src, dst, bias, post-ops, weights: and what is around the kernels
CASES = [
    ("mb2ic64oc1ih9kh3ph1 any any bias relu any", ""),
    ("mb1ic32oc2ih13kh1 axb abx - sum any", ""),
    ("mb2ic20oc3ih12kh3ph1sh2 axb~3 abx bias sum:0.5+relu any", ""),
    ("mb1ic37oc4ih20kh5ph2 any abx~2 bias - any", ""),
    ("mb1ic40oc3ih15kh3ph2dh1 aBx16b any - relu any", ""),
    ("mb1ic72oc2ih10kh3ph1 axb axb bias relu abx", "pack+reorder+"),
    ("mb1ic64oc3ih10kh3ph1 any aBx8b bias sum+relu any", "reorder+"),
    ("mb2ic24oc1ih7iw21kh3kw9ph1pw4 abx abx bias - any", "reorder+"),
    ("mb2ic24oc1iw50kw7pw3 any any bias relu any", ""),
    ("mb1ic16oc1id5ih6iw7kd3kh3kw3pd1ph1pw1 any any bias relu any", ""),
    ("mb2ic64oc2ih41iw1kh3kw1ph1 any axb bias - any", "reorder+"),  # a column of pixels that lie apart
    ("mb1ic64oc1ih4kh3ph5 any any bias relu any", ""),  # pixels whose whole window is padding
]


def planned(case: ConvCase, isa: str, around: str = "") -> dnn.PrimitiveDesc:
    return planned_as(f"{around}few_outputs", case, isa)


@pytest.mark.parametrize(("line", "around"), CASES, ids=[line for line, _ in CASES])
def test_values(isa: str, line: str, around: str) -> None:
    case = case_of(line)
    check_results(dnn.Primitive(planned(case, isa, around)), case)


@pytest.mark.parametrize(
    "dims", [(1, 1, 1, 1), (1, 3, 1, 1), (1, 1, 6, 7), (2, 3, 6, 7), (1, 1, 1, 7), (2, 1, 6, 1)], ids=str
)
def test_operands_of_every_broadcast(isa: str, dims: tuple[int, ...]) -> None:
    case = case_of("mb2ic32oc3ih6iw7kh3kw3ph1pw1 any any - - any")
    attr = dnn.Attr(dnn.Binary("mul", dnn.MemoryDesc(dims, dnn.f32, "any")))
    pd = dnn.primitive_desc(case.desc(), attr, dnn.Engine("cpu", isa=isa, **ENGINE))
    assert "few" in pd.implementation
    pd.plan.check()
    data, factor = make_data(case, False), np.random.default_rng(3).uniform(1, 2, dims).astype(np.float32)
    memories = {n: m for n, m in memories_of(pd, data).items() if n != "binary_0"}
    memories["binary_0"] = dnn.Memory.from_numpy(factor, pd.plan.tensors["binary_0"])
    dnn.Primitive(pd).execute(**memories)
    assert_within(read(memories["dst"]), expected(case, data) * factor, 4 * tolerance(case, data))


@pytest.mark.parametrize(
    ("problem", "name"),
    [
        ("mb1ic64oc9ih28kh3ph1", "direct"),  # more than eight
        ("mb1ic3oc3ih28kh3ph1", "few_inputs"),  # too few input channels: most lanes would be padding
        ("g2mb1ic64oc2ih28kh3ph1", "planes+depthwise"),
        ("mb1ic64oc8ih28kh3ph1", "direct"),  # a vector of outputs
    ],
)
def test_others_are_direct(problem: str, name: str) -> None:
    case = ConvCase(parse_problem(problem), "any", "any", True, ())
    pd = dnn.primitive_desc(case.desc(), case.attr(), dnn.Engine("cpu", isa="avx2", **ENGINE))
    assert pd.implementation == f"{name}:avx2"


@pytest.mark.parametrize(
    ("problem", "name"),
    [
        ("mb1ic512oc4ih112kh1", "direct"),  # 32 blocks of channels, which come from memory
        ("mb1ic512oc4ih28kh1", "few_outputs"),  # from a cache
        ("mb1ic128oc3ih112kh1", "few_outputs"),  # 8 blocks
        ("mb1ic256oc3ih112kh3ph1", "few_outputs"),  # multiplies take longer than lines
    ],
)
def test_many_blocks_from_memory(problem: str, name: str) -> None:
    case = ConvCase(parse_problem(problem), "any", "any", True, ())
    pd = dnn.primitive_desc(case.desc(), case.attr(), dnn.Engine("cpu", isa="avx512_core", **ENGINE))
    assert pd.implementation == f"{name}:avx512_core"
