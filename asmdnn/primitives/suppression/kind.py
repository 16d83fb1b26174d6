"""Non-maximum suppression, as a kind of primitive."""

from asmdnn.primitives.core.any_batch import by_rows
from asmdnn.primitives.core.kind import Kind, Words, dims_word
from asmdnn.primitives.suppression import schedule
from asmdnn.primitives.suppression.description import NonMaxSuppression


def words(desc: NonMaxSuppression) -> Words:
    auxiliary = f"overlap:{desc.overlap:g} least:{desc.least:g} most:{desc.most}"
    return Words("suppression", auxiliary, dims_word(desc.scores))


KINDS = (Kind(NonMaxSuppression, (schedule.plans,), words, any_batch_refusal=by_rows),)
