"""`--reorder`: a tensor in another layout and type.

    dst = round((src_scale * (src - src_zero_point) + sum_scale * dst) / dst_scale + dst_zero_point)

is what oneDNN's reorder computes, in f32.  --oflag=s8s8_comp:MASK asks for the compensation of an s8 dst too.
"""

import re
from typing import Any

import numpy as np

import asmdnn as dnn
from asmdnn.bench.dims import DimsProblem, desc_of, dims_problem
from asmdnn.bench.driver import Array, Case, Driver, TensorData
from asmdnn.bench.judge import Answer
from asmdnn.bench.post_ops import chain
from asmdnn.bench.quantization import Quantity, joined, quantities
from asmdnn.bench.tensor_work import Peer, TensorWork
from asmdnn.bench.titles import titled
from asmdnn.bench.values import TYPES, random_values, rounded
from asmdnn.bench.values import joined as in_a_row
from asmdnn.bench.words import Settings, Strides, data_type, number, option, show_strides, strides, tag
from asmdnn.definitions.rounding import UNIT_ROUNDOFF
from asmdnn.errors import InvalidArguments, Unimplemented
from asmdnn.memory.tags import MAX_NDIMS
from asmdnn.primitives.attributes.words import number_word
from asmdnn.primitives.reorder.compensation import compensation_desc
from asmdnn.records import dataclass

NO_COMPENSATION = "oneDNN's C interface has no function that asks for a compensation"
ARGUMENTS = ("src", "dst")
LARGEST_VALUE = 300  # beyond what 8 bits hold, so that some results saturate
ROUNDINGS = 6  # of f32 between src and dst: a scale, a product, a sum, its scale, a quotient, a zero point


@dataclass(frozen=True, slots=True)
class ReorderSettings(Settings):
    """sum_scale None: there is no sum; compensation None, or its mask."""

    sdt: str = "f32"
    ddt: str = "f32"
    stag: str = "abx"
    dtag: str = "abx"
    scales: tuple[Quantity, ...] = ()
    zero_points: tuple[Quantity, ...] = ()
    sum_scale: float | None = None
    compensation: int | None = None
    strides: Strides = ()


class ReorderWork(TensorWork):
    post_ops = ("sum",)
    largest = LARGEST_VALUE

    def __init__(self, case: Case[ReorderSettings, DimsProblem]) -> None:
        settings, dims = case.settings, case.problem.dims
        self.mask, self.sum_scale = settings.compensation, settings.sum_scale
        between = settings.strides or ((), ())
        src, dst = (
            desc_of(dims, kind, tag, strides)
            for kind, tag, strides in zip(
                (settings.sdt, settings.ddt), (settings.stag, settings.dtag), between, strict=True
            )
        )
        self.descs, self.desc, self.attr = {"src": src, "dst": dst}, dnn.Reorder(src, dst, self.mask), _attr(settings)
        if self.mask is not None:
            self.descs |= {"compensation": compensation_desc(dst, self.mask)}
            self.results, self.lacks = ("dst", "compensation"), NO_COMPENSATION
        scales = {f"{q.argument}_scales": q.scales(dims) for q in settings.scales}
        self.factors = scales | {f"{q.argument}_zero_points": q.zero_points(dims) for q in settings.zero_points}
        self.quantities = {name: values.ravel() for name, values in self.factors.items()}

    def old(self, random: np.random.Generator, exact: bool) -> Array:
        dst = self.descs["dst"]
        return random_values(random, dst.dims, dst.dtype, LARGEST_VALUE, exact)

    def answer(self, data: TensorData) -> Answer:
        """In float64, then rounded to dst's type; the tolerance is where f32 may take it, rounded in the same way.  The
        compensation is after dst, flat."""
        values, error = self._real(data)
        kind, dims = self.descs["dst"].dtype, self.descs["dst"].dims
        expected = rounded(values, kind)
        reach = (rounded(values + error, kind), rounded(values - error, kind)) if error.any() else (expected, expected)
        slack = np.maximum(reach[0] - expected, expected - reach[1])
        if self.mask is None:
            return Answer(expected, slack if error.any() else 0.0, "numpy")
        axes = tuple(dim for dim in range(len(dims)) if not self.mask >> dim & 1)
        both = in_a_row([expected, -128 * expected.sum(axes)])
        return Answer(both, in_a_row([slack, 128 * slack.sum(axes)]), "numpy")

    def _real(self, data: TensorData) -> tuple[Array, Array]:
        """The result before it is rounded to dst's type, and how far f32 arithmetic may be from it."""

        def of(name: str, default: float) -> Array:
            return np.asarray(self.factors.get(name, default), np.float64)

        terms = [of("src_scales", 1) * self.real(data, "src"), -of("src_scales", 1) * of("src_zero_points", 0)]
        if self.sum_scale is not None:
            terms.append(self.sum_scale * self.real(data, "dst"))
        terms = [term / of("dst_scales", 1) for term in terms] + [of("dst_zero_points", 0)]
        dims, plain = self.descs["dst"].dims, not self.factors and self.sum_scale is None
        values, size = (np.broadcast_to(sum(each, np.zeros(())), dims) for each in (terms, map(np.abs, terms)))
        return values, size * (0.0 if plain else ROUNDINGS * UNIT_ROUNDOFF)

    def onednn(self, peer: Peer) -> Any:
        ends = (end for name in ("src", "dst") for end in (peer.descs[name], peer.engine))
        create, destroy = peer.lib.dnnl_reorder_primitive_desc_create, peer.lib.dnnl_primitive_desc_destroy
        return peer.own(create, destroy, *ends, self.attributes_of(peer))


def _attr(settings: ReorderSettings) -> dnn.Attr:
    return dnn.Attr(
        [] if settings.sum_scale is None else [dnn.Sum(settings.sum_scale)],
        scales={q.argument: q.mask() for q in settings.scales},
        zero_points={q.argument: q.mask() for q in settings.zero_points},
    )


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
