"""Random formats of tensors: permuted, blocked once or twice, with gaps, shifted, or left to the library."""

from typing import Any

from hypothesis import strategies as st

import asmdnn as dnn
from asmdnn.memory.tags import LETTERS, tag_of

BLOCKS = (2, 3, 4, 8, 16)


@st.composite
def formats(draw: st.DrawFn, dims: tuple[int, ...], may_be_any: bool = True) -> dnn.MemoryDesc:
    """A descriptor of f32[dims]."""
    kinds = ["plain", "permuted", "blocked", "gaps"] + ["any"] * may_be_any
    kind = draw(st.sampled_from(kinds))
    if kind in ("plain", "any"):
        return dnn.MemoryDesc(dims, dnn.f32, LETTERS[: len(dims)] if kind == "plain" else "any")
    order = tuple(draw(st.permutations(range(len(dims)))))
    if kind == "gaps":
        strides, step = [0] * len(dims), draw(st.sampled_from((1, 1, 2)))
        for dim in reversed(order):
            strides[dim] = step
            step = step * max(dims[dim], 1) + draw(st.integers(0, 3))
        return dnn.MemoryDesc(dims, dnn.f32, strides=strides, offset0=draw(st.integers(0, 5)))
    blocks: list[tuple[int, int]] = []
    if kind == "blocked":
        pairs = st.tuples(st.integers(0, len(dims) - 1), st.sampled_from(BLOCKS))
        blocks = draw(st.lists(pairs, min_size=1, max_size=2))
    return dnn.MemoryDesc(dims, dnn.f32, tag_of(order, tuple(blocks)))


@st.composite
def broadcast(draw: st.DrawFn, dims: tuple[int, ...]) -> tuple[int, ...]:
    """Dims of a tensor that broadcasts to `dims`."""
    return tuple(draw(st.sampled_from((1, n))) for n in dims)


def resolved(desc: Any, pd: dnn.PrimitiveDesc, names: dict[str, str]) -> Any:
    """The description with the formats that the plan has chosen; names: of fields, by argument."""
    from dataclasses import replace

    return replace(desc, **{field: pd.plan.tensors[name] for name, field in names.items() if name in pd.plan.tensors})
