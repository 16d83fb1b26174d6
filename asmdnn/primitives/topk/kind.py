"""The k best, as a kind of primitive."""

from asmdnn.primitives.core.any_batch import by_rows
from asmdnn.primitives.core.kind import Kind, Words, dims_word
from asmdnn.primitives.topk import schedule
from asmdnn.primitives.topk.description import TopKForward


def words(desc: TopKForward) -> Words:
    flags = " select_last" * desc.select_last + " nan_last" * desc.nan_last
    return Words("topk", f"alg:{desc.alg} axis:{desc.axis} k:{desc.k}{flags}", dims_word(desc.src))


KINDS = (Kind(TopKForward, (schedule.plans,), words, any_batch_refusal=by_rows),)
