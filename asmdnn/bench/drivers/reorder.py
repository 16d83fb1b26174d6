"""`--reorder`: a tensor in another layout and type."""

import re

import asmdnn as dnn
from asmdnn.bench.dims import dims_problem
from asmdnn.bench.driver import Driver
from asmdnn.bench.post_ops import chain
from asmdnn.bench.quantization import joined, quantities
from asmdnn.bench.reorder_work import ReorderSettings, ReorderWork
from asmdnn.bench.titles import titled
from asmdnn.bench.values import TYPES
from asmdnn.bench.words import data_type, number, option, show_strides, strides, tag
from asmdnn.errors import InvalidArguments, Unimplemented
from asmdnn.memory.tags import MAX_NDIMS
from asmdnn.primitives.attributes.words import number_word

ARGUMENTS = ("src", "dst")


def _sum(word: str) -> float | None:
    """`sum` or `sum:0.5`; nothing is no post-op."""
    if not word:
        return None
    ops = chain(word)
    if len(ops) > 1 or not isinstance(ops[0], dnn.Sum):
        raise InvalidArguments(f"has '{word}'; a reorder has one post-op at most, sum or sum:SCALE")
    if ops[0].zero_point:
        raise Unimplemented("a zero point of the sum is not built yet")
    return ops[0].scale


def _compensation(word: str) -> int | None:
    """`s8s8_comp:1`, the one flag there is; nothing is none."""
    if not word:
        return None
    name, _, mask = word.partition(":")
    if re.fullmatch(r"((s8s8|zp)_comp:[0-9]+\+?)+", word) and "zp_comp" in word:
        raise Unimplemented("zp_comp is not built yet, only s8s8_comp")
    if name not in ("s8s8_comp", "conv_s8s8"):
        raise InvalidArguments(f"has '{name}'; the flag is s8s8_comp:MASK")
    return number(0, (1 << MAX_NDIMS) - 1)(mask)


def _show_compensation(mask: int | None) -> str:
    return "" if mask is None else f"s8s8_comp:{mask}"


def _show_sum(scale: float | None) -> str:
    return "" if scale is None else f"sum:{number_word(scale)}"


DRIVER = Driver(
    "reorder",
    ReorderSettings(),
    {
        "sdt": option(data_type(), f"data type of src: {', '.join(TYPES)}"),
        "ddt": option(data_type(), "data type of dst"),
        "stag": option(tag, "layout of src: abx (default), axb, aBx16b, nchw, oihw, ..."),
        "dtag": option(tag, "layout of dst, as --stag"),
        "attr-scales": option(quantities(ARGUMENTS, whole=False), "such as src:common:0.5+dst:per_dim_1", joined),
        "attr-zero-points": option(quantities(ARGUMENTS, whole=True), "such as src:common:1+dst:common:-2", joined),
        "attr-post-ops": option(_sum, "sum or sum:0.5", _show_sum, field="sum_scale"),
        "oflag": option(_compensation,
                        "s8s8_comp:1, the compensation of an s8 dst over a mask of dims", _show_compensation,
                        field="compensation"),
        "strides": option(strides(2), "of src and dst, SRC:DST, each may be empty", show_strides),
    },
    dims_problem(1),
    ReorderWork,
    example="--mode=CP --stag=abx --dtag=axb,aBx16b --threads=1 --peer=onednn 2x96x35x35",
    title=titled("{sdt} {stag} to {ddt} {dtag} {dims}"),
)  # fmt: skip
