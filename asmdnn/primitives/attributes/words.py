"""Attributes as oneDNN's verbose lines and benchdnn write them: `attr-scales:src:0+dst:2 attr-post-ops:sum:0.5`.

    post-op        its word; numbers after the last that is not the default are left out
    Sum            sum:SCALE:ZERO_POINT
    Eltwise        eltwise_ALG:ALPHA:BETA:SCALE
    Binary         binary_ALG:TYPE:MASK:TAG, bit d of the mask says that dim d is not 1
    PReLU          prelu:MASK
    Depthwise      dw:kKERNELsSTRIDEpPADDING, as k3s1p1; one number an axis where they differ, as k3x5s1x2p1x2
    PostOp         user:CRC, the CRC-32 of its expression in hexadecimal digits; no other library has a word for it

Source: oneDNN 3.5, src/common/verbose.cpp, and benchdnn's doc/knobs_attr.md.
"""

from collections.abc import Iterable
from typing import Any
from zlib import crc32

from asmdnn.memory import MemoryDesc
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.depthwise import Depthwise
from asmdnn.primitives.attributes.post_ops import Binary, Eltwise, PReLU, Sum


def attribute_words(attr: Attr) -> str:
    """All that is not the default, with spaces between attributes."""
    words = {
        "attr-scratchpad": "" if attr.scratchpad_mode == "library" else attr.scratchpad_mode,
        "attr-deterministic": str(attr.deterministic).lower() if attr.deterministic else "",
        "attr-denormals": attr.denormals or "",
        "attr-fpmath": "" if attr.fpmath_mode == "strict" else attr.fpmath_mode,
        "attr-acc-mode": "" if attr.accumulation_mode == "strict" else attr.accumulation_mode,
        "attr-rounding-mode": "+".join(f"{name}:{mode}" for name, mode in attr.rounding_mode),
        "attr-scales": masks(attr.scales, attr.groups, "f32"),
        "attr-zero-points": masks(attr.zero_points, attr.groups, "s32"),
        "attr-post-ops": "+".join(post_op_word(op) for op in attr.post_ops),
    }
    return " ".join(f"{name}:{word}" for name, word in words.items() if word)


def masks(found: Iterable[tuple[str, int]], groups: Iterable[tuple[str, tuple[int, int]]], dtype: str) -> str:
    """Of tensors, by oneDNN's short names; with the type and the sizes of groups, where there are some."""
    sizes = {name: f":{dtype}:{along[0]}x{along[1]}" for name, along in groups}
    return "+".join(f"{'wei' if name == 'weights' else name}:{mask}{sizes.get(name, '')}" for name, mask in found)


def post_op_word(op: Any) -> str:
    """The word of one post-op."""
    if isinstance(op, Sum):
        return with_numbers("sum", (op.scale, op.zero_point), (1.0, 0.0))
    if isinstance(op, Eltwise):
        return with_numbers(f"eltwise_{op.alg}", (op.alpha, op.beta, op.scale), (0.0, 0.0, 1.0))
    if isinstance(op, Binary):
        tag, strides = format_words(op.src1)
        return ":".join((f"binary_{op.alg}", op.src1.dtype.name, str(mask_of(op.src1)), tag, *filter(None, [strides])))
    if isinstance(op, PReLU):
        return f"prelu:{mask_of(op.weights)}"
    if isinstance(op, Depthwise):
        sizes = {"k": op.kernel, "s": op.strides, "p": op.padding_l}
        return "dw:" + "".join(f"{letter}{sizes_word(numbers)}" for letter, numbers in sizes.items())
    return f"user:{crc32(str(op.program).encode()):08x}"


def sizes_word(numbers: tuple[int, ...]) -> str:
    """`3`, or `3x5` where axes differ."""
    return "x".join(map(str, numbers if len(set(numbers)) > 1 else numbers[:1]))


def with_numbers(name: str, numbers: tuple[float, ...], defaults: tuple[float, ...]) -> str:
    """`name:0.5:2`, without the defaults at the end."""
    count = max((i for i, number in enumerate(numbers, 1) if number != defaults[i - 1]), default=0)
    return ":".join((name, *map(number_word, numbers[:count])))


def number_word(number: float) -> str:
    """The shortest word that is read as this very number; without `+`, which joins post-ops."""
    short = f"{number:g}"
    return (short if float(short) == number else repr(number)).replace("e+", "e")


def mask_of(desc: MemoryDesc) -> int:
    return sum(1 << dim for dim, size in enumerate(desc.dims) if size != 1)


def format_words(desc: MemoryDesc) -> tuple[str, str]:
    """The tag, and the strides of a layout that has none of its own: then the tag is of the order of the dims."""
    if desc.is_any:
        return "any", ""
    if tag := desc.tag:
        return tag, ""
    order = sorted(range(desc.ndims), key=lambda dim: -desc.strides[dim])
    blocked = {dim for dim, _ in desc.inner_blocks}
    letters = "".join(chr(ord("A" if dim in blocked else "a") + dim) for dim in order)
    inner = "".join(f"{size}{chr(ord('a') + dim)}" for dim, size in desc.inner_blocks)
    return letters + inner, "x".join(map(str, desc.strides))
