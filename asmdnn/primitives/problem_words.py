"""What verbose lines say of each kind of primitive: oneDNN's name, the auxiliary column, benchdnn's problem string."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any

from asmdnn.memory import MemoryDesc
from asmdnn.primitives.attributes.words import mask_of, number_word
from asmdnn.primitives.convolution.description import ConvolutionForward
from asmdnn.primitives.elementwise.binary import BinaryForward
from asmdnn.primitives.elementwise.eltwise import EltwiseBackward, EltwiseForward
from asmdnn.primitives.products.gemm import Gemm
from asmdnn.primitives.products.inner_product import (
    InnerProductBackwardData,
    InnerProductBackwardWeights,
    InnerProductForward,
)
from asmdnn.primitives.products.matmul import MatMul
from asmdnn.primitives.reorder.reorder import Reorder
from asmdnn.primitives.shuffle.shuffle import Shuffle

BETAS = {"zero": "0", "one": "1", "any": "any"}


@dataclass(frozen=True, slots=True)
class Words:
    """primitive, prop_kind: oneDNN's names; problem: benchdnn's string; bias_mask: the dims of a product's bias."""

    primitive: str
    auxiliary: str
    problem: str
    prop_kind: str = "undef"
    bias_mask: int | None = None


def words_of(desc: Any) -> Words:
    """The words of any description."""
    return WORDS.get(type(desc), _plain)(desc)


def asked(desc: Any) -> dict[str, MemoryDesc]:
    """The tensors of a description, formats as asked for."""
    values = {field.name: getattr(desc, field.name) for field in fields(desc)}
    return {name: value for name, value in values.items() if isinstance(value, MemoryDesc)}


def _convolution(desc: ConvolutionForward) -> Words:
    (mb, ic), oc = desc.src.dims[:2], desc.dst.dims[1]
    axes = []
    for i, axis in enumerate("dhw"[5 - desc.src.ndims :]):
        sizes = {
            "i": desc.src.dims[2 + i], "o": desc.dst.dims[2 + i], "k": desc.kernel[i],
            "s": desc.strides[i], "d": desc.dilations[i], "p": desc.padding_l[i],
        }  # fmt: skip
        axes.append("".join(f"{kind}{axis}{size}" for kind, size in sizes.items()))
    groups = f"g{desc.groups}" if desc.has_groups else ""
    problem = f"{groups}mb{mb}_ic{ic}oc{oc}_{'_'.join(axes)}"
    return Words("convolution", f"alg:{desc.algorithm.value}", problem, desc.prop_kind.value)


def _inner_product(src: MemoryDesc, weights: MemoryDesc, prop_kind: str) -> Words:
    (mb, ic, *positions), oc = src.dims, weights.dims[0]
    axes = "dhw"[3 - len(positions) :]
    sizes = "".join(f"i{axis}{size}" for axis, size in zip(axes, positions, strict=True))
    return Words("inner_product", "", f"mb{mb}ic{ic}{sizes}oc{oc}", prop_kind)


def _eltwise(desc: EltwiseForward | EltwiseBackward) -> Words:
    auxiliary = f"alg:eltwise_{desc.alg} alpha:{number_word(desc.alpha)} beta:{number_word(desc.beta)}"
    if isinstance(desc, EltwiseBackward):
        return Words("eltwise", auxiliary, _dims(desc.data), "backward_data")
    return Words("eltwise", auxiliary, _dims(desc.src), desc.prop_kind.value)


def _binary(desc: BinaryForward) -> Words:
    return Words("binary", f"alg:binary_{desc.alg}", f"{_dims(desc.src0)}:{_dims(desc.src1)}")


def _matmul(desc: MatMul) -> Words:
    mask = None if desc.bias is None else mask_of(desc.bias)
    return Words("matmul", "", f"{_dims(desc.src)}:{_dims(desc.weights)}", bias_mask=mask)


def _gemm(desc: Gemm) -> Words:
    scales = f"alpha:{'1' if desc.unit_alpha else 'any'} beta:{BETAS[desc.beta]}"
    return Words("gemm", scales, f"{_dims(desc.a)}:{_dims(desc.b)}")


def _reorder(desc: Reorder) -> Words:
    mask = desc.compensation
    return Words("reorder", "" if mask is None else f"oflag:s8s8_comp:{mask}", _dims(desc.src))


def _shuffle(desc: Shuffle) -> Words:
    auxiliary = f"axis:{desc.axis} group:{desc.group_size}"
    return Words("shuffle", auxiliary, _dims(desc.src), desc.prop_kind.value)


def _plain(desc: Any) -> Words:
    """For a kind of primitive without a line of its own: the dims of every tensor."""
    alg = getattr(desc, "algorithm", getattr(desc, "alg", None))
    name = alg.value if isinstance(alg, Enum) else alg
    dims = dict.fromkeys(_dims(tensor) for tensor in asked(desc).values())
    kind = desc.prop_kind.value if hasattr(desc, "prop_kind") else "undef"
    return Words(type(desc).__name__.lower(), f"alg:{name}" if name else "", ":".join(dims), kind)


def _dims(desc: MemoryDesc) -> str:
    return "x".join(map(str, desc.dims))


WORDS: dict[type, Callable[[Any], Words]] = {
    BinaryForward: _binary,
    ConvolutionForward: _convolution,
    EltwiseBackward: _eltwise,
    EltwiseForward: _eltwise,
    Gemm: _gemm,
    InnerProductBackwardData: lambda desc: _inner_product(desc.diff_src, desc.weights, "backward_data"),
    InnerProductBackwardWeights: lambda desc: _inner_product(desc.src, desc.diff_weights, "backward_weights"),
    InnerProductForward: lambda desc: _inner_product(desc.src, desc.weights, desc.prop_kind.value),
    MatMul: _matmul,
    Reorder: _reorder,
    Shuffle: _shuffle,
}
