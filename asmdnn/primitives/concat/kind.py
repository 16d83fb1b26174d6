"""Concatenation and padding, as kinds of primitives."""

from asmdnn.primitives.concat import concat, pad
from asmdnn.primitives.concat.concat import Concat
from asmdnn.primitives.concat.pad import Pad
from asmdnn.primitives.core.any_batch import by_rows
from asmdnn.primitives.core.kind import Kind, Words, dims_word


def concat_words(desc: Concat) -> Words:
    return Words("concat", f"axis:{desc.axis}", ":".join(map(dims_word, desc.srcs)))


def pad_words(desc: Pad) -> Words:
    return Words("pad", f"alg:{desc.mode}", f"{dims_word(desc.src)}:{dims_word(desc.dst)}")


KINDS = (
    Kind(Concat, (concat.plans,), concat_words, any_batch_refusal=by_rows),
    Kind(Pad, (pad.plans,), pad_words, any_batch_refusal=by_rows),
)
