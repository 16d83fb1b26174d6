"""What `--conv` and `--deconv` are tables of: a problem with a window, and which elements its sums multiply."""

from collections.abc import Iterable, Sequence
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

import asmdnn as dnn
from asmdnn.bench.attributes import ScaleWords
from asmdnn.bench.dims import desc_of
from asmdnn.bench.driver import Case, PeerSide
from asmdnn.bench.pairs import TwoPrimitives, depthwise_of, second_problem
from asmdnn.bench.post_ops import dims_after
from asmdnn.bench.problems import ConvProblem
from asmdnn.bench.product_work import SCALED_ENDS, Arrays, Doubles, product_options
from asmdnn.bench.taps import positions_of, window_of
from asmdnn.bench.tensor_work import Peer
from asmdnn.bench.weights_work import CHANNELS, LAYER_DIRECTION, WeightsSettings, WeightsWork
from asmdnn.bench.words import IMAGES, Strides, one_of, option, show_strides, strides
from asmdnn.definitions import convolution as definition
from asmdnn.definitions.winograd import (
    BF16_ROUNDINGS,
    GRADIENT_ROUNDINGS,
    LARGEST,
    ROUNDINGS,
    winograd_gradient_size,
    winograd_size,
)
from asmdnn.errors import Unimplemented
from asmdnn.isa.vectors import f32_level, lanes_of
from asmdnn.records import dataclass, replace

WINDOW = ("strides", "dilations", "padding_l", "padding_r")


@dataclass(frozen=True, slots=True)
class ConvSettings(WeightsSettings):
    alg: str = "direct"
    strides: Strides = ()
    peer_dw: str = "two"


ConvCase = Case[ConvSettings, ConvProblem]
CONV_OPTIONS = {
    "dir": LAYER_DIRECTION,
    **product_options("layout of src: any (default), nchw, nhwc, nChw8c, ncw, ndhwc, axb, ...",
                      "layout of weights: any (default), oihw, hwio, abx, xba, ...", "layout of dst, as --stag",
                      "f32, s32, ...: a bias in every forward direction; undef (default)"),
    "mb": IMAGES,
    "peer-dw": option(one_of("two", "fused"),
                      "a depthwise post-op of the peer: two primitives (default), or fused, its own"),
    "strides": option(strides(3), "of src, weights and dst, SRC:WEI:DST, each may be empty", show_strides),
}  # fmt: skip


def of_groups(problem: ConvProblem, scales: ScaleWords) -> ScaleWords:
    """With a mask that counts the weights' dim of groups, if they have one: output channels are two dims then."""
    mask = scales.masks.get("weights", 0)
    if problem.groups == 1 or not mask:
        return scales
    return replace(scales, masks={**scales.masks, "weights": mask >> 1 << 2 | (mask & 1) * 3})


class ConvWork(WeightsWork):
    """of_onednn: its numbers of the algorithms."""

    kind = "convolution"
    forms: ClassVar[tuple[type, ...]] = (
        dnn.ConvolutionForward,
        dnn.ConvolutionBackwardData,
        dnn.ConvolutionBackwardWeights,
    )
    algorithms: ClassVar = {
        "direct": dnn.Algorithm.convolution_direct,
        "auto": dnn.Algorithm.convolution_auto,
        "wino": dnn.Algorithm.convolution_winograd,
    }
    of_onednn: ClassVar = {"direct": 1, "auto": 3, "wino": 3}  # no Winograd convolution for these CPUs since 3.0

    def __init__(self, case: ConvCase) -> None:
        self.case, settings, p = case, case.settings, case.problem
        self.problem = p
        if settings.alg == "wino" and not p.is_dense_3x3 and settings.dir.startswith("FWD"):
            raise Unimplemented("--alg=wino: is for 3x3 kernels of stride 1, no dilation, groups of 4 or more channels")
        self.set_tensors(settings, p, dict(zip(CHANNELS, settings.strides, strict=False)))
        self.reduction = self._reduction()
        self.window = MappingProxyType({name: getattr(p, name) for name in WINDOW})
        self.flops = p.flops
        if not self.written:
            self._set_forward(settings)
        self.set_description(algorithm=self.algorithms[settings.alg])
        if not self.written and (depthwise := depthwise_of(settings.post_ops)):
            self.flops += second_problem(p, depthwise[1]).flops
            dst = desc_of(dims_after(self.attr.post_ops, p.dst_dims), self.descs["dst"].dtype.name, settings.dtag)
            self.descs = {**self.descs, "dst": dst}
        self.algorithm = (self.of_onednn[settings.alg],)
        if settings.alg != "direct":
            self.exactness = (False,)

    def _reduction(self) -> int:
        p = self.problem
        if not self.written:
            return p.reduction
        return p.reduction * p.oc // p.ic if "src" in self.written else p.mb * int(np.prod(p.dst_dims[2:]))

    def _set_forward(self, settings: ConvSettings) -> None:
        p = self.problem
        dims = {"src": p.src_dims, "weights": p.filter_dims, "dst": p.dst_dims}
        self.set_attributes(settings, dims, CHANNELS)
        if p.groups > 1 and self.scales.masks.get("weights"):
            self.scales = of_groups(p, self.scales)
            self.attr = settings.attr(p.dst_dims, scales=self.scales.masks, zero_points=dict(self.attr.zero_points))
        if isinstance(self.scales.source, np.ndarray):
            self.exactness = (False,)

    @property
    def may_be_winograd(self) -> bool:
        """Whether results may be those of Winograd's convolution, which rounds otherwise, on integers too."""
        return self.case.settings.alg != "direct" and self.problem.is_dense_3x3

    @property
    def may_round_tiles(self) -> bool:
        """Whether Winograd's transformed tiles may be rounded to bf16."""
        allowed = self.attr.fpmath_mode in ("bf16", "any")
        return not self.written and (allowed or self.descs["src"].dtype == self.descs["weights"].dtype == dnn.bf16)

    @property
    def roundings(self) -> int:
        p, direct = self.problem, super().roundings
        if self.may_be_winograd and "weights" in self.written:
            return max(direct, self._gradient_roundings)
        if not self.may_be_winograd or self.written:
            return direct
        return max(p.ic, p.oc) // p.groups + ROUNDINGS + BF16_ROUNDINGS * self.may_round_tiles + self.coarse_roundings

    @property
    def _gradient_roundings(self) -> int:
        """Of Winograd's gradient of weights: its tiles, and those of transforms."""
        tiles = np.prod([-(-o // LARGEST) for o in self.problem.dst_dims[2:]])
        return self.problem.mb * int(tiles) + GRADIENT_ROUNDINGS

    def sums(self, x: Arrays) -> Sequence[Doubles]:
        p = self.problem
        if "weights" in self.written:
            src, diff = (x[name].astype(np.float64) for name in ("src", "diff_dst"))
            found = definition.weights_gradient(src, diff, positions_of(p), p.groups).reshape(p.weights_dims)
            return [found, diff.sum(axis=(0, *range(2, diff.ndim)))][: len(self.written)]
        images, weights, positions = self._operands(x)
        parts = (definition.summed(one[None].astype(np.float64), weights, positions, p.groups) for one in images)
        return [_joined(parts, self.descs[self.results[0]].dims if self.written else p.dst_dims)]

    def sizes(self, x: Arrays) -> Sequence[Doubles]:
        p = self.problem
        if "weights" in self.written:
            taps = int(np.prod(p.filter_dims[2:]))
            size = definition.weights_gradient_size(x["src"], x["diff_dst"], taps, p.groups)
            if self.may_be_winograd:
                winograd = winograd_gradient_size(x["src"], x["diff_dst"], p.groups)
                size = np.maximum(size, winograd * self._gradient_roundings / self.roundings)
            size = size.reshape(p.weights_dims)
            diff = np.abs(x["diff_dst"]).astype(np.float64)
            return [size, diff.sum(axis=(0, *range(2, diff.ndim)))][: len(self.written)]
        images, weights, positions = self._operands(x)
        size = definition.sums_size(images, weights, positions, p.groups)
        if not self.may_be_winograd:
            return [size]
        window = window_of(self._turned() if self.written else p)
        winograd = winograd_size(images, weights, window, p.groups)
        if self.may_round_tiles:  # those of F(2x2), which is off by more, but not everywhere
            exact = (self.roundings - BF16_ROUNDINGS + SCALED_ENDS) / self.roundings
            winograd = np.maximum(winograd_size(images, weights, window, p.groups, 2), exact * winograd)
        return [np.maximum(size, winograd) if self.written else winograd]

    def _turned(self) -> ConvProblem:
        """Winograd's gradient of data is a convolution of diff_dst."""
        axes = tuple(axis._replace(i=axis.o, o=axis.i, p=axis.k - 1 - axis.p) for axis in self.problem.axes)
        return replace(self.problem, ic=self.problem.oc, oc=self.problem.ic, axes=axes)

    def _operands(self, x: Arrays) -> tuple[Any, Any, definition.Positions]:
        """Images, weights and positions of a forward pass, or of the gradient of data, which is one of diff_dst."""
        p = self.problem
        weights = x["weights"].astype(np.float64).reshape(p.filter_dims)
        if self.written:
            return x["diff_dst"], definition.turned(weights, p.groups), positions_of(p, backward=True)
        return x["src"], weights, positions_of(p)

    def peer(self, isa: str, threads: int) -> PeerSide:
        if depthwise_of(self.case.settings.post_ops) and self.case.settings.peer_dw == "two":
            return self._two(isa, threads)
        return self.peer_primitive(isa, threads, self.results)

    def _two(self, isa: str, threads: int) -> PeerSide:
        """The convolution and the depthwise one as two primitives, what is between them in blocks of a vector."""
        settings, between = self.case.settings, f"aBx{lanes_of(f32_level(isa))}b"
        found = depthwise_of(settings.post_ops)
        assert found
        at, word = found
        before, after = settings.post_ops[:at], settings.post_ops[at + 1 :]
        first = type(self)(replace(self.case, settings=replace(settings, post_ops=before, dtag=between)))
        last = replace(settings, post_ops=after, stag=between, wtag="any", bia_dt="f32", scales=())
        second = type(self)(replace(self.case, settings=last, problem=second_problem(self.problem, word)))

        def connected(one: Peer) -> Peer:
            second.shared = {"src": one.storage["dst"]}
            return second.peer_primitive(isa, threads, second.results)

        return TwoPrimitives(first.peer_primitive(isa, threads, first.results), connected, at)


def _joined(parts: Iterable[Doubles], dims: tuple[int, ...]) -> Doubles:
    """Image by image, so that only one is copied to double precision at a time."""
    values = np.empty(dims)
    for image, part in zip(values, parts, strict=True):
        image[...] = part[0]
    return values
