"""Reorders as cases.

    dst = round((src_scale * (src - src_zero_point) + sum_scale * dst) / dst_scale + dst_zero_point)

is what oneDNN's reorder computes, in f32.
"""

from typing import Any

import numpy as np

import asmdnn as dnn
from asmdnn.bench.dims import DimsProblem, desc_of
from asmdnn.bench.driver import Array, Case, TensorData
from asmdnn.bench.judge import Answer
from asmdnn.bench.quantization import Quantity
from asmdnn.bench.tensor_work import Peer, TensorWork
from asmdnn.bench.values import joined, random_values, rounded
from asmdnn.bench.words import Settings, Strides
from asmdnn.definitions.rounding import UNIT_ROUNDOFF
from asmdnn.primitives.reorder.compensation import compensation_desc
from asmdnn.records import dataclass

NO_COMPENSATION = "oneDNN's C interface has no function that asks for a compensation"
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


ReorderCase = Case[ReorderSettings, DimsProblem]


class ReorderWork(TensorWork):
    post_ops = ("sum",)
    largest = LARGEST_VALUE

    def __init__(self, case: ReorderCase) -> None:
        settings, dims = case.settings, case.problem.dims
        self.mask, self.sum_scale = settings.compensation, settings.sum_scale
        of_src, of_dst = settings.strides or ((), ())
        src = desc_of(dims, settings.sdt, settings.stag, of_src)
        dst = desc_of(dims, settings.ddt, settings.dtag, of_dst)
        self.descs, self.desc, self.attr = {"src": src, "dst": dst}, dnn.Reorder(src, dst, self.mask), attr_of(settings)
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
        both = joined([expected, -128 * expected.sum(axes)])
        return Answer(both, joined([slack, 128 * slack.sum(axes)]), "numpy")

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


def attr_of(settings: ReorderSettings) -> dnn.Attr:
    return dnn.Attr(
        [] if settings.sum_scale is None else [dnn.Sum(settings.sum_scale)],
        scales={q.argument: q.mask() for q in settings.scales},
        zero_points={q.argument: q.mask() for q in settings.zero_points},
    )
