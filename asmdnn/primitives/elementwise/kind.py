"""Element-wise functions and binary operations, as kinds of primitives."""

from asmdnn.primitives.attributes.words import number_word
from asmdnn.primitives.core.any_batch import by_rows
from asmdnn.primitives.core.kind import Kind, Words, dims_word
from asmdnn.primitives.elementwise import binary, eltwise, prelu
from asmdnn.primitives.elementwise.binary import BinaryForward
from asmdnn.primitives.elementwise.eltwise import EltwiseBackward, EltwiseForward
from asmdnn.primitives.elementwise.prelu import PReLUForward


def forward_words(desc: EltwiseForward) -> Words:
    return Words("eltwise", _auxiliary(desc), dims_word(desc.src), desc.prop_kind.value)


def backward_words(desc: EltwiseBackward) -> Words:
    return Words("eltwise", _auxiliary(desc), dims_word(desc.data), desc.prop_kind.value)


def binary_words(desc: BinaryForward) -> Words:
    return Words("binary", f"alg:binary_{desc.alg}", ":".join(map(dims_word, desc.sources.values())))


def prelu_words(desc: PReLUForward) -> Words:
    return Words("prelu", "", f"{dims_word(desc.src)}:{dims_word(desc.weights)}", desc.prop_kind.value)


def _auxiliary(desc: EltwiseForward | EltwiseBackward) -> str:
    return f"alg:eltwise_{desc.alg} alpha:{number_word(desc.alpha)} beta:{number_word(desc.beta)}"


KINDS = (
    Kind(EltwiseForward, (eltwise.plan_forward,), forward_words, any_batch_refusal=by_rows, rounds=True),
    Kind(EltwiseBackward, (eltwise.plan_backward,), backward_words, any_batch_refusal=by_rows),
    Kind(BinaryForward, (binary.plan,), binary_words, any_batch_refusal=by_rows, rounds=True),
    Kind(PReLUForward, (prelu.plan,), prelu_words, any_batch_refusal=by_rows, rounds=True),
)
