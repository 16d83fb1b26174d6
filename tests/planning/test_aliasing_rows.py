"""Tiles whose rows of src share the sets of L1: so few that their lines stay there, or a copy."""

import re
from collections.abc import Iterable
from typing import Any

import pytest

import asmdnn as dnn
from asmdnn.planning.machine import MACHINES

WAYS = {"icelake_sp": 12, "sapphire_rapids": 12, "zen5": 12}  # others have 8
WIDE = [name for name, row in MACHINES.items() if "avx512_core" in {isa.name for isa in row.isas}]
F32, BF16 = dnn.f32, dnn.bf16


def matmul(m: int, k: int, n: int, tag: str = "ab", dtype: Any = F32) -> dnn.MatMul:
    a, b, c = (dnn.MemoryDesc(dims, dtype, tag) for dims, tag in (((m, k), "ab"), ((k, n), tag), ((m, n), "ab")))
    return dnn.MatMul(a, b, c)


def convolution(ic: int, oc: int, size: int, kernel: int, stride: int = 1) -> dnn.ConvolutionForward:
    edge, out = kernel // 2, (size - 1) // stride + 1
    src, dst = (dnn.MemoryDesc((1, c, n, n), F32, "acdb") for c, n in ((ic, size), (oc, out)))
    weights = dnn.MemoryDesc((oc, ic, kernel, kernel), F32, "any")
    pads = (edge, edge)
    return dnn.ConvolutionForward(src, weights, dst, None, (stride, stride), padding_l=pads, padding_r=pads)


def tile_rows(names: Iterable[str]) -> list[int]:
    """The rows, or pixels, of the tiles among kernels of these names."""
    found = (re.match(r"(?:matmul|conv)_(?:f32|bf16)_(\d+)x\d+", name) for name in names)
    return [int(match[1]) for match in found if match]


@pytest.mark.parametrize("machine", WIDE)
@pytest.mark.parametrize(
    "request_",
    [
        matmul(96, 4096, 256), matmul(384, 2048, 384, "any"), matmul(256, 2048, 10), matmul(13, 1024, 500, "any"),
        matmul(64, 3072, 32), convolution(1024, 256, 14, 1), convolution(1024, 64, 14, 3), convolution(2048, 512, 7, 1),
        convolution(512, 256, 28, 1, 2),
    ],
    ids=str,
)  # fmt: skip
def test_lines_of_rows_that_are_read_in_place_fit_a_set(request_: Any, machine: str) -> None:
    pd = dnn.primitive_desc(request_, engine=dnn.Engine(isa="avx512_core", threads=1, machine=machine))
    assert not {"pack_src", "copying_tiles"} & set(pd.implementation.partition(":")[0].split("+"))
    rows = tile_rows(kernel.name for phase in pd.plan.phases for kernel, _, _ in phase.uses())
    assert rows
    assert max(rows) <= WAYS.get(machine, 8)


def test_rows_that_do_not_share_sets_are_as_many_as_registers_hold() -> None:
    engine = dnn.Engine(isa="avx512_core", threads=1, machine="zen4")
    for request in (matmul(96, 4112, 256), convolution(1040, 256, 14, 1)):
        pd = dnn.primitive_desc(request, engine=engine)
        assert max(tile_rows(kernel.name for phase in pd.plan.phases for kernel, _, _ in phase.uses())) == 14


def test_a_copy_serves_all_groups_of_columns() -> None:
    """Weights that are packed in groups: the columns of one are too few to pay for a copy, all are not."""
    for machine in WIDE:
        engine = dnn.Engine(isa="avx512_core", threads=1, l2_bytes=1 << 20, machine=machine)
        pd = dnn.primitive_desc(matmul(1024, 3072, 768), engine=engine)
        assert pd.implementation == "packing_tiles+copying_tiles+tiles:avx512_core"


def test_few_rows_that_read_panels_are_one_tile() -> None:
    """Weights from beyond L2 are then read once."""
    engine = dnn.Engine(isa="avx512_core", threads=1, machine="zen4")
    for m, wanted in ((8, {8}), (10, {10}), (12, {6})):
        pd = dnn.primitive_desc(matmul(m, 1024, 4096, "any"), engine=engine)
        assert set(tile_rows(kernel.name for phase in pd.plan.phases for kernel, _, _ in phase.uses())) == wanted
