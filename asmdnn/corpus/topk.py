"""The specs of the k best: tails and loops, one result and several, their values, every order of ties and NaN."""

from collections.abc import Iterator
from typing import Any

from asmdnn.corpus.conv import LANES, of_levels
from asmdnn.generators.functions.topk import TopKSpec
from asmdnn.generators.functions.topk_lists import Order
from asmdnn.generators.functions.topk_shape import AT_ONCE

GAP = 3  # elements between rows
SMALLEST = Order(largest=False)


def one(isa: str) -> Iterator[TopKSpec]:
    """Of rows: parts of a vector, and around the turn of the loop, with and without values."""
    lanes = LANES[isa]
    for elements, more in (
        (1, {"has_values": True}), (lanes - 1, {"order": Order(last=True)}), (lanes, {"order": SMALLEST}),
        (2 * lanes + 1, {"order": Order(largest=False, last=True), "has_values": True, "dst_step_bytes": 12}),
        (3 * AT_ONCE * lanes + lanes + 2, {"order": Order(nan_last=True), "has_values": True}),
    ):  # fmt: skip
        yield of_rows(isa, 1, 2, elements, **more)


def several(isa: str) -> Iterator[TopKSpec]:
    """Of rows: all of a short one, a few of longer ones."""
    lanes = LANES[isa]
    yield of_rows(isa, 3, 2, 3, has_values=True)
    yield of_rows(isa, 2, 3, lanes + 2, order=Order(largest=False, nan_last=True))
    yield of_rows(isa, 5, 1, 2 * AT_ONCE * lanes + lanes, dst_step_bytes=8, has_values=True)


def down(isa: str) -> Iterator[TopKSpec]:
    """Of lanes: one row and some, one result and some."""
    lanes = LANES[isa]
    for k, rows, elements, more in (
        (1, 1, 3, {"has_values": True}), (1, 5, 2 * AT_ONCE * lanes + lanes + 2, {"order": Order(False, True)}),
        (1, 4, 3 * lanes, {}), (2, 5, 2 * lanes + 1, {"has_values": True}), (3, 3, lanes, {"order": SMALLEST}),
    ):  # fmt: skip
        row_bytes = 4 * (elements + GAP)
        yield TopKSpec(
            isa=isa,
            along="lanes",
            k=k,
            rows=rows,
            elements=elements,
            src_row_bytes=row_bytes,
            dst_row_bytes=row_bytes,
            **more,
        )


def of_rows(isa: str, k: int, rows: int, elements: int, **more: Any) -> TopKSpec:
    step = more.get("dst_step_bytes", 4)
    return TopKSpec(
        isa=isa,
        along="rows",
        k=k,
        rows=rows,
        elements=elements,
        src_row_bytes=4 * (elements + GAP),
        dst_row_bytes=step * (k + 1),
        **more,
    )


FAMILIES = of_levels("topk", one=one, several=several, down=down)
