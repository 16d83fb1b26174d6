"""Gradients of convolutions and deconvolutions, as kinds of primitives."""

from asmdnn.primitives.convolution.kind import problem_word
from asmdnn.primitives.convolution_backward import data
from asmdnn.primitives.convolution_backward.description import (
    BackwardData,
    ConvolutionBackwardData,
    DeconvolutionBackwardData,
)
from asmdnn.primitives.kind import Kind, Words


def data_words(desc: BackwardData) -> Words:
    p = desc.forward()
    primitive = "convolution" if isinstance(desc, ConvolutionBackwardData) else "deconvolution"
    return Words(primitive, f"alg:{p.algorithm_name}", problem_word(p), "backward_data")


KINDS = (
    Kind(
        ConvolutionBackwardData,
        (data.plan_convolution,),
        data_words,
        transformed=("weights",),
        letters=ConvolutionBackwardData.letters,
    ),
    Kind(DeconvolutionBackwardData, (data.plan_deconvolution,), data_words, letters=DeconvolutionBackwardData.letters),
)
