"""`--reorder`: a tensor in another layout and type.

    dst = round((src_scale * (src - src_zero_point) + sum_scale * dst) / dst_scale + dst_zero_point)

is what oneDNN's reorder computes, in f32.  --oflag=s8s8_comp:MASK asks for the compensation of an s8 dst too.
"""

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import asmdnn as dnn
from asmdnn.bench.dims import DimsProblem, desc_of, dims_problem
from asmdnn.bench.driver import Array, Case, Driver, PeerSide, TensorData, Work
from asmdnn.bench.judge import Answer
from asmdnn.bench.post_ops import chain
from asmdnn.bench.quantization import Quantity, joined, quantities
from asmdnn.bench.values import TYPES, decoded, poison, random_values, rounded
from asmdnn.bench.values import joined as in_a_row
from asmdnn.bench.words import Option, Settings, Strides, data_type, number, show_strides, strides, tag
from asmdnn.errors import InvalidArguments, Unimplemented
from asmdnn.memory.tags import MAX_NDIMS
from asmdnn.primitives.attributes.words import number_word
from asmdnn.primitives.reorder.compensation import compensation_desc

if TYPE_CHECKING:
    from asmdnn.bench.peers.onednn import OnednnPrimitive

ARGUMENTS = {"src": 1, "dst": 17}  # oneDNN's numbers
LARGEST_VALUE = 300  # beyond what 8 bits hold, so that some results saturate
ROUNDINGS = 6  # of f32 between src and dst: a scale, a product, a sum, its scale, a quotient, a zero point
UNIT_ROUNDOFF = 2.0**-24


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


class ReorderWork(Work[TensorData]):
    def __init__(self, case: ReorderCase) -> None:
        self.settings, self.dims = case.settings, case.problem.dims
        src, dst = self.settings.strides or ((), ())
        self.src = desc_of(self.dims, self.settings.sdt, self.settings.stag, src)
        self.dst = desc_of(self.dims, self.settings.ddt, self.settings.dtag, dst)
        self.description = dnn.Reorder(self.src, self.dst, self.settings.compensation)
        self.quantities: dict[str, Array] = {f"{q.argument}_scales": q.scales(self.dims) for q in self.settings.scales}
        self.quantities |= {f"{q.argument}_zero_points": q.zero_points(self.dims) for q in self.settings.zero_points}

    @property
    def argument_bytes(self) -> int:
        return sum(math.prod(desc.padded_dims) * desc.dtype.size_bytes for desc in (self.src, self.dst))

    def describe(self) -> tuple[dnn.Reorder, dnn.Attr]:
        return self.description, _attr(self.settings)

    def data(self, exact: bool) -> TensorData:
        random = np.random.default_rng(1)
        src = random_values(random, self.dims, self.src.dtype, LARGEST_VALUE, exact)
        if self.settings.sum_scale is None:
            dst = poison(self.dims, self.dst.dtype)
        else:
            dst = random_values(random, self.dims, self.dst.dtype, LARGEST_VALUE, exact)
        arrays = {"src": src, "dst": dst} | {n: a.ravel() for n, a in self.quantities.items()}
        if self.settings.compensation is not None:
            arrays["compensation"] = poison(compensation_desc(self.dst, self.settings.compensation).dims, dnn.s32)
        return TensorData(arrays, exact)

    def answer(self, data: TensorData) -> Answer:
        """The compensation behind dst, flat."""
        answer, mask = self.dst_answer(data), self.settings.compensation
        if mask is None:
            return answer
        axes = tuple(dim for dim in range(len(self.dims)) if not mask >> dim & 1)
        values = in_a_row([answer.values, -128 * answer.values.sum(axes)])
        if not np.any(answer.tolerance):
            return Answer(values, 0.0, answer.source)
        slack = np.broadcast_to(answer.tolerance, self.dims)
        return Answer(values, in_a_row([slack, 128 * slack.sum(axes)]), answer.source)

    def dst_answer(self, data: TensorData) -> Answer:
        """In float64, then rounded to dst's type; the tolerance is where f32 may take it, rounded in the same way."""
        values, error = self._real(data)
        expected = rounded(values, self.dst.dtype)
        if not error.any():
            return Answer(expected, 0.0, "numpy")
        reach = (rounded(values + error, self.dst.dtype), rounded(values - error, self.dst.dtype))
        return Answer(expected, np.maximum(reach[0] - expected, expected - reach[1]), "numpy")

    def _real(self, data: TensorData) -> tuple[Array, Array]:
        """The result before it is rounded to dst's type, and how far f32 arithmetic may be from it."""

        def of(name: str, default: float) -> Array:
            return np.asarray(self.quantities.get(name, default), np.float64)

        src = decoded(data.arrays["src"], self.src.dtype).astype(np.float64)
        terms = [of("src_scales", 1) * src, -of("src_scales", 1) * of("src_zero_points", 0)]
        if self.settings.sum_scale is not None:
            terms.append(self.settings.sum_scale * decoded(data.arrays["dst"], self.dst.dtype).astype(np.float64))
        terms = [term / of("dst_scales", 1) for term in terms] + [of("dst_zero_points", 0)]
        values = np.broadcast_to(sum(terms, np.zeros(())), self.dims)
        plain = not self.quantities and self.settings.sum_scale is None
        size = np.broadcast_to(sum(map(np.abs, terms), np.zeros(())), self.dims)
        return values, size * (0.0 if plain else ROUNDINGS * UNIT_ROUNDOFF)

    def peer(self, isa: str, threads: int) -> PeerSide:
        from asmdnn.bench.peers.onednn import OnednnPrimitive, Tensor
        from asmdnn.bench.peers.onednn_attributes import quantities_of

        if self.settings.compensation is not None:
            raise Unimplemented("oneDNN's C interface has no function that asks for a compensation")
        tensors = {"src": Tensor(ARGUMENTS["src"], self.src), "dst": Tensor(ARGUMENTS["dst"], self.dst)}
        tensors |= quantities_of(self.quantities)
        return OnednnPrimitive(self._of_onednn, tensors, isa, threads)

    def _of_onednn(self, peer: "OnednnPrimitive") -> Any:
        from asmdnn.bench.peers.onednn_attributes import attributes

        return peer.own(
            peer.lib.dnnl_reorder_primitive_desc_create,
            peer.lib.dnnl_primitive_desc_destroy,
            *(peer.descs["src"], peer.engine, peer.descs["dst"], peer.engine, attributes(peer, _attr(self.settings))),
        )


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


def _title(case: ReorderCase) -> str:
    settings, dims = case.settings, "x".join(map(str, case.problem.dims))
    return f"{settings.sdt} {settings.stag} to {settings.ddt} {settings.dtag} {dims}"


DRIVER = Driver(
    "reorder",
    ReorderSettings(),
    {
        "sdt": Option("sdt", data_type(), f"data type of src: {', '.join(TYPES)}", True),
        "ddt": Option("ddt", data_type(), "data type of dst", True),
        "stag": Option("stag", tag, "layout of src: abx (default), axb, aBx16b, nchw, oihw, ...", True),
        "dtag": Option("dtag", tag, "layout of dst, as --stag", True),
        "attr-scales": Option("scales", quantities(tuple(ARGUMENTS), whole=False),
                              "such as src:common:0.5+dst:per_dim_1", True, joined),
        "attr-zero-points": Option("zero_points", quantities(tuple(ARGUMENTS), whole=True),
                                   "such as src:common:1+dst:common:-2", True, joined),
        "attr-post-ops": Option("sum_scale", _sum, "sum or sum:0.5", True, _show_sum),
        "oflag": Option("compensation", _compensation, "s8s8_comp:1, the compensation of an s8 dst over a mask of dims",
                        True, _show_compensation),
        "strides": Option("strides", strides(2), "of src and dst, SRC:DST, each may be empty", True, show_strides),
    },
    dims_problem(1),
    ReorderWork,
    example="--mode=CP --stag=abx --dtag=axb,aBx16b --threads=1 --peer=onednn 2x96x35x35",
    notation="2x96x35x35",
    title=_title,
)  # fmt: skip
