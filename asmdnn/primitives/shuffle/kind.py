"""Shuffle, as a kind of primitive."""

from asmdnn.primitives.core.any_batch import by_rows
from asmdnn.primitives.core.kind import Kind, Words, dims_word
from asmdnn.primitives.shuffle import shuffle
from asmdnn.primitives.shuffle.shuffle import Shuffle


def words(desc: Shuffle) -> Words:
    auxiliary = f"axis:{desc.axis} group:{desc.group_size}"
    return Words("shuffle", auxiliary, dims_word(desc.src), desc.prop_kind.value)


KINDS = (Kind(Shuffle, (shuffle.plans,), words, any_batch_refusal=by_rows),)
