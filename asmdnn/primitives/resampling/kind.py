"""Resampling and its gradient, as kinds of primitives."""

from asmdnn.primitives.core.any_batch import by_rows
from asmdnn.primitives.core.kind import Kind, Words
from asmdnn.primitives.resampling import backward, resampling
from asmdnn.primitives.resampling.backward_description import ResamplingBackward
from asmdnn.primitives.resampling.description import ResamplingForward

LETTERS = "dhw"


def words(desc: ResamplingForward) -> Words:
    return resampling_words(desc, "forward_inference")


def resampling_words(desc: ResamplingForward, prop_kind: str) -> Words:
    src, dst = desc.src.dims, desc.dst.dims
    sizes = zip(LETTERS[2 - len(src) :], src[2:], dst[2:], strict=True)
    problem = f"mb{src[0]}ic{src[1]}_" + "_".join(f"i{a}{i}o{a}{o}" for a, i, o in sizes)
    return Words("resampling", f"alg:resampling_{desc.alg}", problem, prop_kind)


def backward_words(desc: ResamplingBackward) -> Words:
    return resampling_words(desc.forward(), desc.prop_kind.value)


KINDS = (
    Kind(ResamplingForward, (resampling.plans,), words, any_batch_refusal=by_rows),
    Kind(ResamplingBackward, (backward.plans,), backward_words, any_batch_refusal=by_rows),
)
