"""Scatters, as a kind of primitive."""

from asmdnn.primitives.core.any_batch import by_rows
from asmdnn.primitives.core.kind import Kind, Words, dims_word
from asmdnn.primitives.gather.indices import check_memories, limits
from asmdnn.primitives.scatter import scatter
from asmdnn.primitives.scatter.description import Scatter


def words(desc: Scatter) -> Words:
    problem = f"{dims_word(desc.src)}:{dims_word(desc.indices)}"
    return Words("scatter", f"axis:{desc.axis} alg:{desc.alg}", problem)


KINDS = (Kind(Scatter, (scatter.plans,), words, any_batch_refusal=by_rows, guard=check_memories, limits=limits),)
