"""The specs of the k best by sorting: every call, one group of columns and merges of several, both ends of results."""

from collections.abc import Iterator
from typing import Any

from asmdnn.corpus.conv import LANES, of_levels
from asmdnn.generators.functions.topk_lists import Order
from asmdnn.generators.functions.topk_sorted import SortedTopKSpec

SMALLEST = Order(largest=False, nan_last=True)


def whole(isa: str) -> Iterator[SortedTopKSpec]:
    """Of rows that fill all pairs or not, with a tail or without, results side by side and apart."""
    lanes = LANES[isa]
    for k, size, elements, more in (
        (1, 64, 1, {"has_values": True}), (64, 64, 64, {}), (35, 64, 35, {"order": SMALLEST, "has_values": True}),
        (33, 64, 2 * lanes, {"has_values": True, "dst_step_bytes": 12}), (100, 128, 127, {"order": Order(False)}),
        (500, 512, 512, {"order": Order(nan_last=True), "has_values": True}),
    ):  # fmt: skip
        yield SortedTopKSpec(isa=isa, call="whole", k=k, size=size, elements=elements, **more)


def steps(isa: str) -> Iterator[SortedTopKSpec]:
    """Of a longer row; of what there is room for, and there is none for."""
    lanes = LANES[isa]
    many: dict[str, Any] = {"isa": isa, "k": 200, "size": 256}
    few: dict[str, Any] = {"isa": isa, "k": 33, "size": 64, "order": SMALLEST}
    yield SortedTopKSpec(call="first", elements=256, **many)
    yield SortedTopKSpec(call="first", elements=64, **few)
    yield SortedTopKSpec(call="choose", elements=64, **many)
    for elements in (1, lanes, 3 * lanes + 2):
        yield SortedTopKSpec(call="choose", elements=elements, **few)
    yield SortedTopKSpec(call="merge", room=64, **many)
    for room in (16, 63):
        yield SortedTopKSpec(call="merge", room=room, **few)
    yield SortedTopKSpec(call="last", **many)
    yield SortedTopKSpec(call="last", has_values=True, dst_step_bytes=8, **few)


FAMILIES = of_levels("topk-sorted", whole=whole, steps=steps)
