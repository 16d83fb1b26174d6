"""Reductions, as a kind of primitive."""

from asmdnn.primitives.attributes.words import number_word
from asmdnn.primitives.kind import Kind, Words, dims_word
from asmdnn.primitives.reduction import reduction
from asmdnn.primitives.reduction.description import ReductionForward


def words(desc: ReductionForward) -> Words:
    auxiliary = f"alg:reduction_{desc.alg} p:{number_word(desc.p)} eps:{number_word(desc.eps)}"
    return Words("reduction", auxiliary, f"{dims_word(desc.src)}:{dims_word(desc.dst)}")


KINDS = (Kind(ReductionForward, (reduction.plan,), words),)
