"""Reorder, as a kind of primitive."""

from asmdnn.primitives.core.any_batch import by_rows
from asmdnn.primitives.core.kind import Kind, Words, dims_word
from asmdnn.primitives.reorder import packed, plan, transformed
from asmdnn.primitives.reorder.reorder import Reorder


def words(desc: Reorder) -> Words:
    mask = desc.compensation
    return Words("reorder", "" if mask is None else f"oflag:s8s8_comp:{mask}", dims_word(desc.src))


PLANNERS, BOTH = (plan.plans, transformed.plan, packed.plan), ("src", "dst")
KINDS = (
    Kind(
        Reorder, PLANNERS, words, transformed=("dst",), summed=BOTH, packed=BOTH, any_batch_refusal=by_rows, rounds=True
    ),
)  # fmt: skip
