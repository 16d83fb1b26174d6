"""Formats that are equal, since a dim of 0 or 1 has no distance from one element to the next, have equal plans."""

from itertools import product
from typing import Any

import pytest

import asmdnn as dnn
from asmdnn.primitives.products.matmul_tiles import plan

TAGS = ("ab", "ba", "aB8b", "aB16b", "Ba8b", "Ba16b", "Ab16a")
ENGINE = dnn.Engine(isa="avx2", threads=2, l2_bytes=512 << 10, machine="zen3")


def desc(m: int, k: int, n: int, which: str, tag: str) -> dnn.MatMul:
    dims = {"src": (m, k), "weights": (k, n), "dst": (m, n)}
    return dnn.MatMul(**{name: dnn.MemoryDesc(d, dnn.f32, tag if name == which else "ab") for name, d in dims.items()})


def planned(request: dnn.MatMul) -> Any:
    """What is planned anew, of whatever is kept for an equal request."""
    answers = plan(request, dnn.Attr(), ENGINE)
    first = next(answer for answer in answers if not isinstance(answer, dnn.Refusal))
    return first.implementation, [spec.name for spec in first.specs], [phase.records.tolist() for phase in first.phases]


@pytest.mark.parametrize("which", ["src", "weights", "dst"])
def test_products(which: str) -> None:
    compared = 0
    for m, k, n in product((0, 1, 20), (0, 1, 9), (0, 1, 20)):
        known: dict[dnn.MatMul, Any] = {}
        for tag in TAGS:
            request = desc(m, k, n, which, tag)
            compared += request in known
            found = planned(request)
            assert known.setdefault(request, found) == found
    assert compared > 30
