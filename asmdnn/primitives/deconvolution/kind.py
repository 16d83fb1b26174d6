"""Deconvolution, as a kind of primitive."""

from asmdnn.primitives.convolution.description import DeconvolutionForward
from asmdnn.primitives.convolution.kind import problem_word
from asmdnn.primitives.deconvolution import direct
from asmdnn.primitives.kind import Kind, Words


def words(desc: DeconvolutionForward) -> Words:
    return Words("deconvolution", f"alg:{desc.algorithm.value}", problem_word(desc), desc.prop_kind.value)


KINDS = (Kind(DeconvolutionForward, (direct.plans,), words),)
