"""Random numbers, as a kind of primitive."""

from asmdnn.primitives.core.kind import Kind, Words, dims_word
from asmdnn.primitives.random_numbers import random_numbers
from asmdnn.primitives.random_numbers.random_numbers import RandomNumbers


def words(desc: RandomNumbers) -> Words:
    return Words("random", f"distribution:{desc.distribution}", dims_word(desc.dst))


KINDS = (Kind(RandomNumbers, (random_numbers.plans,), words),)
