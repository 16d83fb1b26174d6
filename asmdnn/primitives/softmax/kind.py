"""Softmax, as a kind of primitive."""

from asmdnn.primitives.core.any_batch import by_rows
from asmdnn.primitives.core.kind import Kind, Words, dims_word
from asmdnn.primitives.softmax import schedule
from asmdnn.primitives.softmax.description import SoftmaxForward


def words(desc: SoftmaxForward) -> Words:
    return Words("softmax", f"alg:softmax_{desc.alg} axis:{desc.axis}", dims_word(desc.src), desc.prop_kind.value)


KINDS = (Kind(SoftmaxForward, (schedule.plans,), words, any_batch_refusal=by_rows),)
