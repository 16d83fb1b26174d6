"""Dropout, as a kind of primitive."""

from asmdnn.primitives.core.kind import Kind, Words, dims_word
from asmdnn.primitives.dropout import dropout
from asmdnn.primitives.dropout.dropout import Dropout, check_memories


def words(desc: Dropout) -> Words:
    return Words("dropout", "", dims_word(desc.src), "forward_training")


KINDS = (Kind(Dropout, (dropout.plans,), words, guard=check_memories),)
