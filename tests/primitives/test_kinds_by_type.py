"""The table of docs/low-precision.md that says which kind takes which type, and how, against what planners answer."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import asmdnn as dnn
from asmdnn.primitives.core.description import Description

PAGE = Path(__file__).resolve().parents[2] / "docs" / "low-precision.md"
HEADING = "## Other kinds"
INFERENCE = dnn.PropKind.forward_inference
IMAGE, LARGER, SMALLER = (2, 32, 8, 8), (2, 32, 16, 16), (2, 32, 4, 4)
ENGINE = dnn.Engine(isa="avx512_core_bf16", threads=1, machine="zen3")  # the level whose products are native


def t(kind: dnn.DataType, *dims: int, tag: str = "") -> dnn.MemoryDesc:
    return dnn.MemoryDesc(dims, kind, tag or "abcd"[: len(dims)])


def pooling(kind: dnn.DataType, tag: str) -> Description:
    return dnn.PoolingForward("max", t(kind, *IMAGE, tag=tag), t(kind, *SMALLER, tag=tag), (2, 2), (2, 2))


def resampling(alg: Any, kind: dnn.DataType, tag: str) -> Description:
    return dnn.ResamplingForward(alg, t(kind, *IMAGE, tag=tag), t(kind, *LARGER, tag=tag))


def attention(kind: dnn.DataType) -> Description:
    x = t(kind, 1, 2, 8, 16)
    return dnn.AttentionForward(INFERENCE, x, x, x, x)


KINDS: dict[str, Callable[[dnn.DataType], Description]] = {
    "eltwise": lambda kind: dnn.EltwiseForward(INFERENCE, "gelu_erf", t(kind, 8, 9), t(kind, 8, 9)),
    "binary, select": lambda kind: dnn.BinaryForward("add", *[t(kind, 8, 9)] * 3),
    "PReLU": lambda kind: dnn.PReLUForward(INFERENCE, t(kind, *IMAGE), t(kind, 1, 32, 1, 1), t(kind, *IMAGE)),
    "sum": lambda kind: dnn.SumForward([t(kind, 8, 9)] * 2, t(kind, 8, 9), (1.0, 2.0)),
    "softmax": lambda kind: dnn.SoftmaxForward(INFERENCE, "accurate", t(kind, 8, 99), t(kind, 8, 99), 1),
    "layer, RMS norm": lambda kind: dnn.LayerNormForward(INFERENCE, t(kind, 8, 99), t(kind, 8, 99)),
    "batch norm": lambda kind: dnn.BatchNormForward(INFERENCE, t(kind, *IMAGE), t(kind, *IMAGE)),
    "group, instance norm": lambda kind: dnn.GroupNormForward(INFERENCE, t(kind, *IMAGE), t(kind, *IMAGE), 4),
    "LRN": lambda kind: dnn.LRNForward(INFERENCE, "lrn_across_channels", t(kind, *IMAGE), t(kind, *IMAGE)),
    "pooling, channels last": lambda kind: pooling(kind, "acdb"),
    "pooling, planes": lambda kind: pooling(kind, "abcd"),
    "nearest resampling, channels last": lambda kind: resampling("nearest", kind, "acdb"),
    "nearest resampling, planes": lambda kind: resampling("nearest", kind, "abcd"),
    "linear resampling, channels last": lambda kind: resampling("linear", kind, "acdb"),
    "linear resampling, planes": lambda kind: resampling("linear", kind, "abcd"),
    "reduction to f32": lambda kind: dnn.ReductionForward("sum", t(kind, 8, 99), t(dnn.f32, 8, 1)),
    "reduction to src's type": lambda kind: dnn.ReductionForward("sum", t(kind, 8, 99), t(kind, 8, 1)),
    "running sums": lambda kind: dnn.CumulativeSum(t(kind, 8, 99), t(kind, 8, 99), 1),
    "top-k": lambda kind: dnn.TopKForward("max", t(kind, 8, 99), t(dnn.s32, 8, 3), 1, t(kind, 8, 3)),
    "concat, gather, shuffle": lambda kind: dnn.Concat([t(kind, 8, 9)] * 2, t(kind, 16, 9), 0),
    "attention": attention,
}  # fmt: skip


def rows() -> dict[str, dict[str, str]]:
    """The table: by kind and type."""
    lines = [line for line in PAGE.read_text().split(HEADING)[1].split("\n## ")[0].splitlines() if line[:1] == "|"]
    head, _, *body = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    return {kind: dict(zip(head[1:], cells, strict=True)) for kind, *cells in body}


def answer(desc: Description) -> str:
    try:
        name = dnn.primitive_desc(desc, engine=ENGINE).implementation
    except dnn.Unimplemented as error:
        assert re.search(r"is (bf16|f16|s8|u8|s32), only .* is implemented", str(error))
        return "refused"
    return "converted" if name.startswith("reorder+") else "native"


@pytest.mark.parametrize("kind", KINDS)
def test_table(kind: str) -> None:
    said = rows()[kind]
    assert said == {name: answer(KINDS[kind](getattr(dnn, name))) for name in said}


def test_every_row_is_tested() -> None:
    assert list(rows()) == list(KINDS)
