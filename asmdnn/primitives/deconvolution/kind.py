"""Deconvolution, as a kind of primitive."""

from asmdnn.primitives.convolution.dequantized import of_numbers
from asmdnn.primitives.convolution.description import DeconvolutionForward
from asmdnn.primitives.convolution.kind import problem_word
from asmdnn.primitives.convolution.run_sums import run_sums
from asmdnn.primitives.convolution.scaled import scaling_src, scaling_weights
from asmdnn.primitives.core.any_batch import of_products
from asmdnn.primitives.core.kind import Kind, Words
from asmdnn.primitives.core.ways import Entries, listed
from asmdnn.primitives.core.widening import widened
from asmdnn.primitives.deconvolution import direct, few_outputs, grouped, tiles
from asmdnn.primitives.deconvolution import widened as widened_rows
from asmdnn.primitives.deconvolution.candidates import candidates
from asmdnn.primitives.deconvolution.parts import parts_of
from asmdnn.primitives.products.plan import thrice
from asmdnn.primitives.reorder.fpmath import float8, rounded


def words(desc: DeconvolutionForward) -> Words:
    return Words("deconvolution", f"alg:{desc.algorithm_name}", problem_word(desc), desc.prop_kind.value)


DIRECT = scaling_src((widened_rows.plans, grouped.plans, few_outputs.plans, direct.plans))
WAYS: Entries = (
    float8,
    widened(channels=1),
    thrice(),
    rounded(),
    run_sums,
    tiles.plans,
    scaling_weights(parts_of),
    *DIRECT,
)
PLANNERS = (*listed(WAYS), of_numbers(parts_of, DIRECT))
KINDS = (
    Kind(
        DeconvolutionForward, PLANNERS, words, candidates=candidates, letters=DeconvolutionForward.letters,
        any_batch_refusal=of_products, rounds=True, transformed=("weights",),
    ),
)  # fmt: skip
