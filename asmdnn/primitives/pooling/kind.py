"""Pooling, as a kind of primitive."""

from asmdnn.primitives.core.any_batch import by_rows
from asmdnn.primitives.core.kind import Kind, Words, dims_word
from asmdnn.primitives.pooling import pooling
from asmdnn.primitives.pooling.description import AdaptivePooling, PoolingForward

LETTERS = "dhw"


def words(desc: PoolingForward) -> Words:
    src, dst = desc.src.dims, desc.dst.dims
    axes = zip(
        LETTERS[-len(desc.kernel) :], src[2:], dst[2:], desc.kernel, desc.strides, desc.padding_l, desc.dilations,
        strict=True,
    )  # fmt: skip
    sizes = "_".join(f"i{a}{i}o{a}{o}k{a}{k}s{a}{s}p{a}{p}d{a}{d}" for a, i, o, k, s, p, d in axes)
    kind = "forward_training" if desc.indices else "forward_inference"
    return Words("pooling", f"alg:pooling_{desc.alg}", f"mb{src[0]}ic{src[1]}_{sizes}", kind)


def adaptive_words(desc: AdaptivePooling) -> Words:
    kind = "forward_training" if desc.indices else "forward_inference"
    return Words("pooling", f"alg:adaptive_{desc.alg}", f"{dims_word(desc.src)}:{dims_word(desc.dst)}", kind)


KINDS = (
    Kind(PoolingForward, (pooling.plans,), words, any_batch_refusal=by_rows),
    Kind(AdaptivePooling, (pooling.plans,), adaptive_words, any_batch_refusal=by_rows),
)
