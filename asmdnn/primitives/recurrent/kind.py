"""Recurrent layers, as kinds of primitives."""

from asmdnn.primitives.kind import Kind, Words
from asmdnn.primitives.recurrent import planner
from asmdnn.primitives.recurrent.description import (
    GRUForward,
    LBRGRUForward,
    LSTMForward,
    RecurrentForward,
    VanillaRNNForward,
)


def words(desc: RecurrentForward) -> Words:
    """As oneDNN's verbose lines and benchdnn say it."""
    s = desc.sizes
    auxiliary = f"alg:{desc.NAME} direction:{desc.direction}"
    if isinstance(desc, VanillaRNNForward):
        auxiliary += f" activation:eltwise_{desc.activation}"
    problem = f"l{s.layers}t{s.steps}mb{s.sequences}sic{s.out}slc{s.src}dhc{s.hidden}dic{s.out}"
    return Words("rnn", auxiliary, problem, desc.prop_kind.value)


KINDS = tuple(
    Kind(description, (planner.plan,), words)
    for description in (VanillaRNNForward, LSTMForward, GRUForward, LBRGRUForward)
)
