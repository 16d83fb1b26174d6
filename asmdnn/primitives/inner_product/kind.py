"""Inner products, as kinds of primitives."""

from asmdnn.memory import MemoryDesc
from asmdnn.primitives.core.any_batch import of_f32, of_products, refused
from asmdnn.primitives.core.kind import Kind, Words
from asmdnn.primitives.core.ways import listed
from asmdnn.primitives.core.widening import widened
from asmdnn.primitives.inner_product import tiles
from asmdnn.primitives.inner_product.inner_product import (
    InnerProductBackwardData,
    InnerProductBackwardWeights,
    InnerProductForward,
)
from asmdnn.primitives.products.plan import candidates_of, thrice
from asmdnn.primitives.reorder.fpmath import float8, rounded
from asmdnn.primitives.reorder.fpmath_gradients import rounded_gradient


def forward_words(desc: InnerProductForward) -> Words:
    return _inner_product(desc.src, desc.weights, desc.prop_kind.value)


def backward_data_words(desc: InnerProductBackwardData) -> Words:
    return _inner_product(desc.diff_src, desc.weights, desc.prop_kind.value)


def backward_weights_words(desc: InnerProductBackwardWeights) -> Words:
    return _inner_product(desc.src, desc.diff_weights, desc.prop_kind.value)


def _inner_product(src: MemoryDesc, weights: MemoryDesc, prop_kind: str) -> Words:
    (mb, ic, *positions), oc = src.dims, weights.dims[0]
    axes = "dhw"[3 - len(positions) :]
    sizes = "".join(f"i{axis}{size}" for axis, size in zip(axes, positions, strict=True))
    return Words("inner_product", "", f"mb{mb}ic{ic}{sizes}oc{oc}", prop_kind)


FORWARD = (
    float8,
    widened(packs_blocks=True),
    thrice(),
    rounded(weights_alone=True),
    tiles.plan_forward,
)
KINDS = (
    Kind(
        InnerProductForward, listed(FORWARD), forward_words, candidates=candidates_of(tiles.plan_forward),
        letters=InnerProductForward.letters, summed=("weights",), transformed=("weights",), rounds=True,
        any_batch_refusal=of_products,
    ),
    *(
        Kind(
            description, listed((rounded_gradient(*factors), planner)), words, candidates=candidates_of(planner),
            letters=description.letters, any_batch_refusal=any_batch_refusal,
        )
        for description, planner, words, any_batch_refusal, factors in (
            (
                InnerProductBackwardData, tiles.plan_backward_data, backward_data_words,
                of_f32("diff_dst", "weights"), ("diff_dst", "weights"),
            ),
            (
                InnerProductBackwardWeights, tiles.plan_backward_weights, backward_weights_words,
                refused, ("src", "diff_dst"),
            ),
        )
    ),
)  # fmt: skip
