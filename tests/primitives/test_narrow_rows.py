"""Rows of f32 that fill a ymm register take no zmm register, which would be half empty: blocks of 8 channels, with a
number for each channel, on a CPU with AVX-512."""

from math import prod
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.planning.plan import Plan
from tests.support.plans import emulate_plan

INFERENCE = dnn.PropKind.forward_inference


def request(kind: str, channels: int, block: int) -> Any:
    x = dnn.MemoryDesc((2, channels, 5, 7), dnn.f32, f"aBcd{block}b")
    vector = dnn.MemoryDesc((channels,), dnn.f32, "a")
    each = dnn.MemoryDesc((1, channels, 1, 1), dnn.f32, f"aBcd{block}b")
    if kind == "binary":
        return dnn.BinaryForward("add", x, each, x)
    if kind == "prelu":
        return dnn.PReLUForward(INFERENCE, x, each, x)
    if kind == "fused":
        mask = dnn.MemoryDesc(x.dims, dnn.u8, f"aBcd{block}b")
        written = {"mean": vector, "variance": vector, "workspace": mask, "fuse": "norm_relu"}
        return dnn.BatchNormForward(dnn.PropKind.forward_training, x, x, 1e-5, scale=vector, shift=vector, **written)
    given = {"mean": vector, "variance": vector, "use_global_stats": True} if kind == "given" else {}
    return dnn.BatchNormForward(INFERENCE, x, x, 1e-5, scale=vector, shift=vector, **given)


def expected(plan: Plan) -> int:
    """Cycles."""
    return sum(int(phase.cycles.sum()) * prod(each.times for each in phase.repeats) for phase in plan.phases)


def planned(kind: str, block: int, isa: str) -> Plan:
    engine = dnn.Engine(isa=isa, threads=1, machine="sapphire_rapids")
    return dnn.primitive_desc(request(kind, 32, block), engine=engine).plan


@pytest.mark.parametrize("kind", ["binary", "prelu", "given", "computed", "fused"])
def test_wider_registers_are_not_expected_to_be_slower(kind: str) -> None:
    for block in (8, 16):
        assert expected(planned(kind, block, "avx512_core")) <= expected(planned(kind, block, "avx2"))


@pytest.mark.parametrize(("block", "level"), [(8, "avx2"), (16, "avx512_core")])
@pytest.mark.parametrize("kind", ["binary", "prelu", "given", "computed", "fused"])
def test_the_level_of_rows(kind: str, block: int, level: str) -> None:
    rows = [spec for spec in planned(kind, block, "avx512_core").specs if getattr(spec, "elements", 0) == block]
    assert {spec.name.rpartition("__")[2] for spec in rows} == {level}


@pytest.mark.parametrize("level", ["avx2", "avx512_core"])
def test_results(level: str) -> None:
    """Rows of ymm registers beside whole zmm registers: 3 blocks of 8 channels, each with its number, and padding."""
    random = np.random.default_rng(3)
    x, each = (random.standard_normal(dims).astype(np.float32) for dims in ((2, 21, 5, 7), (1, 21, 1, 1)))
    desc = request("binary", 21, 8)
    plan = dnn.primitive_desc(desc, engine=dnn.Engine(isa=level, threads=1, machine="sapphire_rapids")).plan
    memories = {
        "src0": dnn.Memory.from_numpy(x, desc.src0),
        "src1": dnn.Memory.from_numpy(each, desc.src1),
        "dst": dnn.Memory(desc.dst),
    }
    emulate_plan(plan, memories)
    assert np.array_equal(memories["dst"].numpy(), x + each)
