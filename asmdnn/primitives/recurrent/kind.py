"""Recurrent layers, as kinds of primitives."""

from asmdnn.primitives.core.any_batch import of_sequences
from asmdnn.primitives.core.kind import Kind, Words
from asmdnn.primitives.recurrent import backward, forward, rounded
from asmdnn.primitives.recurrent.backward_description import (
    GRUBackward,
    LBRGRUBackward,
    LSTMBackward,
    RecurrentBackward,
    VanillaRNNBackward,
)
from asmdnn.primitives.recurrent.description import (
    GRUForward,
    LBRGRUForward,
    LSTMForward,
    RecurrentForward,
    VanillaRNNForward,
)

SUMMED = ("weights_layer", "weights_iter")  # of bytes
FORWARD = (rounded.plans, forward.plans)


def words(desc: RecurrentForward) -> Words:
    return rnn_words(desc, desc.prop_kind.value)


def backward_words(desc: RecurrentBackward) -> Words:
    return rnn_words(desc.forward, desc.prop_kind.value)


def rnn_words(desc: RecurrentForward, prop_kind: str) -> Words:
    """As oneDNN's verbose lines and benchdnn say it."""
    s = desc.sizes
    auxiliary = f"alg:{desc.NAME} direction:{desc.direction}"
    if isinstance(desc, VanillaRNNForward):
        auxiliary += f" activation:eltwise_{desc.activation}"
    problem = f"l{s.layers}t{s.steps}mb{s.sequences}sic{s.state}slc{s.src}dhc{s.hidden}dic{s.out}"
    return Words("rnn", auxiliary, problem, prop_kind)


KINDS = (
    *(
        Kind(description, FORWARD, words, letters=description.letters, any_batch_refusal=of_sequences, summed=summed)
        for description, summed in (
            (VanillaRNNForward, ()),
            (LSTMForward, SUMMED),
            (GRUForward, SUMMED),
            (LBRGRUForward, ()),
        )
    ),
    *(
        Kind(description, (backward.plans,), backward_words, letters=description.letters)
        for description in (VanillaRNNBackward, LSTMBackward, GRUBackward, LBRGRUBackward)
    ),
)
