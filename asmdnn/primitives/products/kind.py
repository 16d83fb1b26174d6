"""Matrix products, as kinds of primitives: matmul, inner products, gemm."""

from collections.abc import Callable
from typing import Any

from asmdnn.memory import MemoryDesc
from asmdnn.primitives.attributes.words import mask_of
from asmdnn.primitives.core.implementation import Planner
from asmdnn.primitives.core.kind import Kind, Letters, Words, dims_word, no_letters
from asmdnn.primitives.core.widening import with_widening
from asmdnn.primitives.products import gemm, inner_product_tiles, matmul_tiles
from asmdnn.primitives.products.candidates import candidates_of
from asmdnn.primitives.products.gemm import Gemm
from asmdnn.primitives.products.inner_product import (
    InnerProductBackwardData,
    InnerProductBackwardWeights,
    InnerProductForward,
)
from asmdnn.primitives.products.matmul import MatMul
from asmdnn.primitives.reorder.fpmath import with_roundings

SUMMED = ("weights",)
BETAS = {"zero": "0", "one": "1", "any": "any"}


def matmul_words(desc: MatMul) -> Words:
    mask = None if desc.bias is None else mask_of(desc.bias)
    return Words("matmul", "", f"{dims_word(desc.src)}:{dims_word(desc.weights)}", bias_mask=mask)


def gemm_words(desc: Gemm) -> Words:
    scales = f"alpha:{'1' if desc.unit_alpha else 'any'} beta:{BETAS[desc.beta]}"
    return Words("gemm", scales, f"{dims_word(desc.a)}:{dims_word(desc.b)}")


def forward_words(desc: InnerProductForward) -> Words:
    return _inner_product(desc.src, desc.weights, desc.prop_kind.value)


def backward_data_words(desc: InnerProductBackwardData) -> Words:
    return _inner_product(desc.diff_src, desc.weights, "backward_data")


def backward_weights_words(desc: InnerProductBackwardWeights) -> Words:
    return _inner_product(desc.src, desc.diff_weights, "backward_weights")


def _inner_product(src: MemoryDesc, weights: MemoryDesc, prop_kind: str) -> Words:
    (mb, ic, *positions), oc = src.dims, weights.dims[0]
    axes = "dhw"[3 - len(positions) :]
    sizes = "".join(f"i{axis}{size}" for axis, size in zip(axes, positions, strict=True))
    return Words("inner_product", "", f"mb{mb}ic{ic}{sizes}oc{oc}", prop_kind)


def kind(
    description: type[Any],
    planner: Planner[Any],
    words: Callable[[Any], Words],
    letters: Letters = no_letters,
    summed: tuple[str, ...] = (),
) -> Kind:
    """Of products, whose planners have the same candidates.  `summed`: of forward ones, which may round f32."""
    planners = with_widening(*with_roundings(planner, weights_alone=True)) if summed else (planner,)
    return Kind(description, planners, words, candidates=candidates_of(planner), letters=letters, summed=summed)


KINDS = (
    kind(MatMul, matmul_tiles.plan, matmul_words, MatMul.letters, SUMMED),
    kind(Gemm, gemm.plan, gemm_words),
    kind(InnerProductForward, inner_product_tiles.plan_forward, forward_words, InnerProductForward.letters, SUMMED),
    *(
        kind(description, planner, words, description.letters)
        for description, planner, words in (
            (InnerProductBackwardData, inner_product_tiles.plan_backward_data, backward_data_words),
            (InnerProductBackwardWeights, inner_product_tiles.plan_backward_weights, backward_weights_words),
        )
    ),
)
