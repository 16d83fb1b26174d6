"""Non-maximum suppression against its definition, whose arithmetic is that of the kernels; what is refused."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.definitions.suppression import suppressed
from asmdnn.errors import InvalidArguments

F, S = dnn.f32, dnn.s32
SPECIAL = np.float32([np.nan, np.inf, -np.inf, 0.0, -0.0])


def boxes(draw: np.random.Generator, images: int, classes: int, count: int) -> tuple[Any, Any]:
    """Real numbers; every tenth is none, or infinite, and some boxes are the wrong way round."""
    corners = draw.uniform(0, 4, (images, 4, count)).astype(np.float32)
    corners[:, 2:] = np.where(draw.random((images, 1, count)) < 0.9, corners[:, :2] + 1.5, corners[:, 2:])
    scores = draw.integers(0, 20, (images, classes, count)).astype(np.float32) / 16
    for x in (corners, scores):
        x[:] = np.where(draw.random(x.shape) < 0.1, draw.choice(SPECIAL, x.shape), x)
    return corners, scores


def found(isa: Any, threads: int, given: tuple[Any, Any], most: int, **numbers: float) -> Any:
    corners, scores = (dnn.Memory.from_array(x) for x in given)
    dst = dnn.Memory(dnn.MemoryDesc((*scores.desc.dims[:2], most), S, "abc"))
    desc = dnn.NonMaxSuppression(corners.desc, scores.desc, dst.desc, **numbers)
    pd = dnn.primitive_desc(desc, engine=dnn.Engine(isa=isa, threads=threads))
    assert pd.implementation == f"suppression:{isa}"
    pd.plan.check()
    dnn.Primitive(pd).execute(corners=corners, scores=scores, dst=dst)
    return dst.numpy()


@pytest.mark.parametrize("count", [1, 7, 8, 9, 16, 33, 400])
def test_boxes_are_those_of_the_definition(isa: Any, count: int) -> None:
    draw = np.random.default_rng(count)
    for overlap, least in ((0.5, 0.25), (0.0, -np.inf), (1.0, 0.0), (0.3, 2.0)):
        given, most = boxes(draw, 2, 3, count), min(count, 20)
        wanted = suppressed(*given, most, overlap, least)
        for threads in (1, 2):
            np.testing.assert_array_equal(found(isa, threads, given, most, overlap=overlap, least=least), wanted)


GOOD: dict[str, Any] = {
    "corners": dnn.MemoryDesc((1, 4, 9), F, "abc"), "scores": dnn.MemoryDesc((1, 2, 9), F, "abc"),
    "dst": dnn.MemoryDesc((1, 2, 3), S, "abc"),
}  # fmt: skip
BAD = {
    "corners has dims \\(1, 9, 4\\), they must be \\(1, 4, 9\\)": {"corners": dnn.MemoryDesc((1, 9, 4), F, "abc")},
    "dst has dims \\(2, 2, 3\\), they must be \\(1, 2, 3\\)": {"dst": dnn.MemoryDesc((2, 2, 3), S, "abc")},
    "dst is f32, it must be s32": {"dst": dnn.MemoryDesc((1, 2, 3), F, "abc")},
    "scores has 2 dims, it must have 3": {"scores": dnn.MemoryDesc((2, 9), F, "ab")},
    "dst has room for 10 of 9: use 1 to 9": {"dst": dnn.MemoryDesc((1, 2, 10), S, "abc")},
    "overlap is 1.5, it must be from 0 to 1": {"overlap": 1.5},
    "overlap is nan|overlap must be": {"overlap": float("nan")},
    "least": {"least": "0.5"},
    "corners must be a MemoryDesc": {"corners": None},
}


@pytest.mark.parametrize("said", BAD)
def test_what_is_no_description_is_said(said: str) -> None:
    assert dnn.NonMaxSuppression(**GOOD).most == 3
    with pytest.raises(InvalidArguments, match=said):
        dnn.NonMaxSuppression(**(GOOD | BAD[said]))


def test_no_boxes_are_refused() -> None:
    corners, scores, dst = (dnn.MemoryDesc((1, n, 0), kind, "abc") for n, kind in ((4, F), (2, F), (2, S)))
    with pytest.raises(InvalidArguments, match="boxes are 0, use 1 to"):
        dnn.NonMaxSuppression(corners, scores, dst)
