"""The ordered implementation list of every kind of primitive: best first, each refuses with a reason."""

from typing import Any

from asmdnn.errors import InvalidArguments
from asmdnn.primitives.convolution import direct as conv_direct
from asmdnn.primitives.convolution import reordered as conv_reordered
from asmdnn.primitives.convolution.description import ConvolutionForward
from asmdnn.primitives.elementwise import binary, eltwise
from asmdnn.primitives.elementwise.binary import BinaryForward
from asmdnn.primitives.elementwise.eltwise import EltwiseBackward, EltwiseForward
from asmdnn.primitives.implementation import Planner
from asmdnn.primitives.products import gemm, inner_product_tiles, matmul_tiles
from asmdnn.primitives.products.gemm import Gemm
from asmdnn.primitives.products.inner_product import (
    InnerProductBackwardData,
    InnerProductBackwardWeights,
    InnerProductForward,
)
from asmdnn.primitives.products.matmul import MatMul
from asmdnn.primitives.reorder import reorder
from asmdnn.primitives.reorder.reorder import Reorder
from asmdnn.primitives.shuffle import shuffle
from asmdnn.primitives.shuffle.shuffle import Shuffle

InnerProduct = InnerProductForward | InnerProductBackwardData | InnerProductBackwardWeights
Elementwise = BinaryForward | EltwiseBackward | EltwiseForward
Description = ConvolutionForward | Elementwise | Gemm | InnerProduct | MatMul | Reorder | Shuffle

IMPLEMENTATIONS: dict[type, tuple[Planner[Any], ...]] = {
    BinaryForward: (binary.plan,),
    ConvolutionForward: (
        conv_direct.plan,
        conv_reordered.plan_packed,
        conv_reordered.plan,
        conv_reordered.plan_both,
    ),
    EltwiseBackward: (eltwise.plan_backward,),
    EltwiseForward: (eltwise.plan_forward,),
    Reorder: (reorder.plan,),
    Shuffle: (shuffle.plan,),
    Gemm: (gemm.plan,),
    InnerProductForward: (inner_product_tiles.plan_forward,),
    InnerProductBackwardData: (inner_product_tiles.plan_backward_data,),
    InnerProductBackwardWeights: (inner_product_tiles.plan_backward_weights,),
    MatMul: (matmul_tiles.plan,),
}


def planners_of(desc: object) -> tuple[Planner[Any], ...]:
    """The implementations to ask, or InvalidArguments if `desc` describes no primitive."""
    if type(desc) not in IMPLEMENTATIONS:
        kinds = ", ".join(kind.__name__ for kind in IMPLEMENTATIONS)
        raise InvalidArguments(f"desc must be one of {kinds}, not {type(desc).__name__}")
    return IMPLEMENTATIONS[type(desc)]
