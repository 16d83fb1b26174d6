"""Gathers, as a kind of primitive."""

from asmdnn.primitives.core.any_batch import by_rows
from asmdnn.primitives.core.kind import Kind, Words, dims_word
from asmdnn.primitives.gather import gather
from asmdnn.primitives.gather.description import Gather
from asmdnn.primitives.gather.indices import check_memories, limits


def words(desc: Gather) -> Words:
    return Words("gather", f"axis:{desc.axis}", f"{dims_word(desc.src)}:{dims_word(desc.indices)}")


KINDS = (Kind(Gather, (gather.plans,), words, any_batch_refusal=by_rows, guard=check_memories, limits=limits),)
