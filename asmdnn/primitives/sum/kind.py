"""Sums of many tensors, as a kind of primitive."""

from asmdnn.primitives.attributes.words import number_word
from asmdnn.primitives.core.any_batch import by_rows
from asmdnn.primitives.core.kind import Kind, Words, dims_word
from asmdnn.primitives.sum import sum
from asmdnn.primitives.sum.sum import SumForward


def words(desc: SumForward) -> Words:
    scales = ":".join(map(number_word, desc.scales))
    return Words("sum", f"scales:{scales}", dims_word(desc.dst))


KINDS = (Kind(SumForward, (sum.plan,), words, any_batch_refusal=by_rows),)
