"""Reductions and cumulative sums, as kinds of primitives."""

from asmdnn.primitives.attributes.words import number_word
from asmdnn.primitives.core.any_batch import by_rows
from asmdnn.primitives.core.kind import Kind, Words, dims_word
from asmdnn.primitives.reduction import cumulative, reduction
from asmdnn.primitives.reduction.cumulative import CumulativeProduct, CumulativeSum
from asmdnn.primitives.reduction.description import ReductionForward


def words(desc: ReductionForward) -> Words:
    auxiliary = f"alg:reduction_{desc.alg} p:{number_word(desc.p)} eps:{number_word(desc.eps)}"
    return Words("reduction", auxiliary, f"{dims_word(desc.src)}:{dims_word(desc.dst)}")


def cumulative_words(desc: CumulativeSum) -> Words:
    flags = " exclusive" * desc.exclusive + " reverse" * desc.reverse
    return Words(f"cumulative_{cumulative.ALGORITHMS[desc.alg]}", f"axis:{desc.axis}{flags}", dims_word(desc.src))


KINDS = (
    Kind(ReductionForward, (reduction.plans,), words, any_batch_refusal=by_rows),
    Kind(CumulativeSum, (cumulative.plans,), cumulative_words, any_batch_refusal=by_rows),
    Kind(CumulativeProduct, (cumulative.plans,), cumulative_words, any_batch_refusal=by_rows),
)
