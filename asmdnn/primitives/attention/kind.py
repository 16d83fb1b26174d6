"""Attention, as a kind of primitive."""

from asmdnn.primitives.attention import backward, forward, unpacked
from asmdnn.primitives.attention.backward_description import AttentionBackward
from asmdnn.primitives.attention.description import AttentionForward
from asmdnn.primitives.attributes.words import number_word
from asmdnn.primitives.core.any_batch import by_rows
from asmdnn.primitives.core.kind import Kind, Words, dims_word


def backward_words(desc: AttentionBackward) -> Words:
    return words(desc.forward(), desc.prop_kind.value)


def words(desc: AttentionForward, kind: str = "forward_inference") -> Words:
    auxiliary = f"scale:{number_word(desc.scale)} causal:{int(desc.causal)}"
    return Words("sdpa", auxiliary, f"{dims_word(desc.query)}:{dims_word(desc.key)}:{dims_word(desc.value)}", kind)


KINDS = (
    Kind(AttentionForward, (unpacked.plans, forward.plans), words, any_batch_refusal=by_rows),
    Kind(AttentionBackward, (backward.plans,), backward_words, any_batch_refusal=by_rows),
)
