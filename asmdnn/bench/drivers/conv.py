"""`--conv`: convolutions of 1, 2 and 3 spatial axes; and what `--deconv` has in common with it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

import asmdnn as dnn
from asmdnn.bench import chains
from asmdnn.bench.attributes import (
    ScaleWords,
    WeightsSettings,
    numbers_of,
    scaled_options,
    scales_of,
    zero_points_option,
)
from asmdnn.bench.conv_gradients import WRITTEN, Gradient, GradientWork
from asmdnn.bench.dims import desc_of
from asmdnn.bench.driver import Array, Case, Driver, PeerSide, Work
from asmdnn.bench.judge import Answer
from asmdnn.bench.pairs import TwoPrimitives, depthwise_of, second_problem
from asmdnn.bench.post_ops import dims_behind
from asmdnn.bench.problems import FLOAT_BYTES, ConvProblem, parse_problem
from asmdnn.bench.quantization import Quantity
from asmdnn.bench.reference import ConvData, make_data, numpy_answer, rounding_tolerance
from asmdnn.bench.typed_words import any_bias_type, older_types_of_tensors, typed, types_of_tensors
from asmdnn.bench.words import (
    IMAGES,
    Option,
    Strides,
    direction,
    one_of,
    show_strides,
    strides,
    tag,
)
from asmdnn.errors import InvalidArguments, Unimplemented
from asmdnn.isa.vectors import f32_level, lanes_of
from asmdnn.types import DATA_TYPES, DataType

if TYPE_CHECKING:
    from asmdnn.bench.peers.onednn import OnednnPrimitive

# Numbers of oneDNN's C interface.
FORWARD_TRAINING, FORWARD_INFERENCE = 64, 96
OF_ONEDNN = {"direct": 1, "auto": 3, "wino": 3}  # it has no Winograd convolution for these CPUs since 3.0
SRC, DST, WEIGHTS, BIAS = 1, 17, 33, 41
NOTHING: Mapping[str, dnn.Memory] = MappingProxyType({})
ALGORITHMS = {
    "direct": dnn.Algorithm.convolution_direct,
    "auto": dnn.Algorithm.convolution_auto,
    "wino": dnn.Algorithm.convolution_winograd,
}


@dataclass(frozen=True, slots=True)
class ConvSettings(WeightsSettings):
    alg: str = "direct"
    bia_dt: str = "undef"
    strides: Strides = ()
    peer_dw: str = "two"
    zero_points: tuple[Quantity, ...] = ()

    @property
    def has_bias(self) -> bool:
        return self.dir == "FWD_B" or self.bia_dt != "undef"

    @property
    def types(self) -> dict[str, DataType]:
        """Of the tensors, by their names; a bias that is not said is f32."""
        bias = "f32" if self.bia_dt == "undef" else self.bia_dt
        return {**typed(self.dt), "bias": DATA_TYPES[bias]}


ConvCase = Case[ConvSettings, ConvProblem]


@dataclass(frozen=True, slots=True)
class ConvLayouts:
    """The memory descriptors of a case, as asked for: `any` is still any."""

    src: dnn.MemoryDesc
    weights: dnn.MemoryDesc
    bias: dnn.MemoryDesc | None
    dst: dnn.MemoryDesc


def layouts(case: ConvCase) -> ConvLayouts:
    """Raises InvalidArguments for a tag that does not exist or does not fit."""
    problem, settings = case.problem, case.settings
    types = settings.types
    bias = dnn.MemoryDesc((problem.oc,), types["bias"], "a") if settings.has_bias else None
    src, weights, dst = settings.strides or ((), (), ())
    return ConvLayouts(
        desc_of(problem.src_dims, types["src"].name, settings.stag, src),
        desc_of(problem.weights_dims, types["weights"].name, settings.wtag, weights),
        bias,
        desc_of(problem.dst_dims, types["dst"].name, settings.dtag, dst),
    )


def of_groups(problem: ConvProblem, scales: ScaleWords) -> ScaleWords:
    """With a mask that counts the weights' dim of groups, if they have one: output channels are two dims then."""
    mask = scales.masks.get("weights", 0)
    if problem.groups == 1 or not mask:
        return scales
    return replace(scales, masks={**scales.masks, "weights": mask >> 1 << 2 | (mask & 1) * 3})


class ConvWork(Work[ConvData]):
    description: type[dnn.ConvolutionForward | dnn.DeconvolutionForward] = dnn.ConvolutionForward
    algorithms: ClassVar = ALGORITHMS
    peer_function, of_onednn = "dnnl_convolution_forward_primitive_desc_create", OF_ONEDNN

    def __init__(self, case: ConvCase) -> None:
        if case.settings.alg == "wino" and not case.problem.is_dense_3x3:
            raise Unimplemented("--alg=wino: is for 3x3 kernels of stride 1, no dilation, groups of 4 or more channels")
        self.problem, self.settings, self.layouts = case.problem, case.settings, layouts(case)
        dims = {"src": self.problem.src_dims, "weights": self.problem.filter_dims, "dst": self.problem.dst_dims}
        self.scales = of_groups(self.problem, scales_of(self.settings.scales, dims, {"src": 1, "weights": 0, "dst": 1}))
        self.numbers, masks = numbers_of(self.settings.types, self.settings.zero_points, dims, self.settings.fpmath)
        self.attr = self.settings.attr(dims["dst"], scales=self.scales.masks, zero_points=masks)
        self.may_round = self.settings.alg != "direct"
        rounds = self.may_round or isinstance(self.scales.source, np.ndarray)
        self.exactness = (False,) if rounds else chains.exactness(self.attr)
        self.peer_slack = chains.peer_slack(self.attr)
        self.flops = case.problem.flops
        if found := depthwise_of(self.settings.post_ops):
            self.flops += second_problem(self.problem, found[1]).flops

    @property
    def argument_bytes(self) -> int:
        problem = self.problem
        return sum(math.prod(d) for d in (problem.src_dims, problem.weights_dims, problem.dst_dims)) * FLOAT_BYTES

    def describe(self) -> tuple[dnn.ConvolutionForward | dnn.DeconvolutionForward, dnn.Attr]:
        problem, wanted = self.problem, self.layouts
        training = self.settings.dir != "FWD_I"
        desc = self.description(
            src=wanted.src,
            weights=wanted.weights,
            bias=wanted.bias,
            dst=wanted.dst,
            strides=problem.strides,
            dilations=problem.dilations,
            padding_l=problem.padding_l,
            padding_r=problem.padding_r,
            prop_kind=dnn.PropKind.forward_training if training else dnn.PropKind.forward_inference,
            algorithm=self.algorithms[self.settings.alg],
        )
        return desc, self.attr

    def data(self, exact: bool) -> ConvData:
        data = make_data(self.problem, self.settings.has_bias, self.attr, exact, self.scales, self.numbers)
        return replace(data, winograd=self.may_round and self.problem.is_dense_3x3)

    def answer(self, data: ConvData) -> Answer:
        scaled = replace(data, src=data.src * self.scales.source)
        return numpy_answer(self.problem, scaled, self.attr, self.scales)

    def tolerance(self, data: ConvData) -> Array | float:
        if data.exact and chains.is_exact(self.attr):
            return 0.0
        cheap = rounding_tolerance(self.problem, data, self.attr) if self.numbers.are_f32 else None
        return self.answer(data).tolerance if cheap is None else cheap

    def peer(self, isa: str, threads: int) -> PeerSide:
        if depthwise_of(self.settings.post_ops) and self.settings.peer_dw == "two":
            return self._two(isa, threads)
        return self._one(isa, threads)

    def _two(self, isa: str, threads: int) -> PeerSide:
        """The convolution and the depthwise one as two primitives, what is between them in blocks of a vector."""
        found = depthwise_of(self.settings.post_ops)
        assert found
        at, word = found
        settings, between = replace(self.settings, mb=0), f"aBx{lanes_of(f32_level(isa))}b"
        before, behind = settings.post_ops[:at], settings.post_ops[at + 1 :]
        second = second_problem(self.problem, word)
        first = type(self)(Case(DRIVER, replace(settings, post_ops=before, dtag=between), self.problem))
        last = replace(settings, post_ops=behind, stag=between, wtag="any", bia_dt="f32", scales=())
        return TwoPrimitives(
            first._one(isa, threads),
            lambda one: type(self)(Case(DRIVER, last, second))._one(isa, threads, {"src": one.storage["dst"]}),
            at,
        )

    def _one(self, isa: str, threads: int, shared: Mapping[str, dnn.Memory] = NOTHING) -> "OnednnPrimitive":
        from asmdnn.bench.peers.onednn import OnednnPrimitive, Storage, Tensor
        from asmdnn.bench.peers.onednn_attributes import quantities_of, tensors_of

        wanted = self.layouts
        tensors = {"src": Tensor(SRC, wanted.src), "weights": Tensor(WEIGHTS, wanted.weights)}
        if wanted.bias:
            tensors["bias"] = Tensor(BIAS, wanted.bias)
        dims, name = dims_behind(self.attr.post_ops, wanted.dst.dims), wanted.dst.dtype.name
        result = desc_of(dims, name, self.settings.dtag)
        dst = result if depthwise_of(self.settings.post_ops) else wanted.dst
        given = {**self.scales.arrays, **self.numbers.zero_points}
        tensors |= {"dst": Tensor(DST, dst)} | tensors_of(self.attr) | quantities_of(given)
        return OnednnPrimitive(self._of_onednn, tensors, isa, threads, storage=Storage(shared=shared))

    def _of_onednn(self, peer: "OnednnPrimitive") -> Any:
        from asmdnn.bench.peers.onednn_attributes import attributes

        problem, descs = self.problem, peer.descs
        return peer.describe(
            getattr(peer.lib, self.peer_function),
            FORWARD_INFERENCE if self.settings.dir == "FWD_I" else FORWARD_TRAINING,
            self.of_onednn[self.settings.alg],
            *(descs["src"], descs["weights"], descs.get("bias", peer.null), peer.layout(self.layouts.dst)),
            *map(peer.dims, (problem.strides, problem.dilations, problem.padding_l, problem.padding_r)),
            attributes(peer, self.attr),
        )


def completed(settings: ConvSettings, problem: ConvProblem) -> tuple[ConvSettings, ConvProblem]:
    return replace(settings, mb=0), replace(problem, mb=settings.mb or problem.mb)


def _alg(word: str) -> str:
    name = word.lower().removeprefix("convolution_")
    name = "wino" if name == "winograd" else name
    if name not in ALGORITHMS:
        raise InvalidArguments(f"must be one of {', '.join(ALGORITHMS)}")
    return name


GRADIENT = Gradient("convolution", (dnn.ConvolutionBackwardData, dnn.ConvolutionBackwardWeights), ALGORITHMS, OF_ONEDNN)


def _work(case: ConvCase) -> Work[Any]:
    settings = case.settings
    if settings.dir in WRITTEN:
        return GradientWork(GRADIENT, settings, settings.alg, case.problem)
    return ConvWork(case)


OPTIONS = {
    "dir": Option("dir", direction("FWD_B", "FWD_D", "FWD_I", *WRITTEN),
                  "FWD_B with bias (default), FWD_D, FWD_I inference; BWD_D data, BWD_W weights, BWD_WB both", True),
    "dt": Option("dt", types_of_tensors, "data types of src, weights and dst: f32 (default), u8:s8:f32, ...", True),
    "cfg": Option("dt", older_types_of_tensors, "the same in older words", True, describes=False),
    "bia-dt": Option("bia_dt", any_bias_type, "f32, s32, ...: a bias in every direction; undef (default)", True),
    "stag": Option("stag", tag, "layout of src: any (default), nchw, nhwc, nChw8c, ncw, ndhwc, axb, ...", True),
    "wtag": Option("wtag", tag, "layout of weights: any (default), oihw, hwio, abx, xba, ...", True),
    "dtag": Option("dtag", tag, "layout of dst, as --stag", True),
    **scaled_options(),
    **zero_points_option(),
    "mb": IMAGES,
    "alg": Option("alg", _alg, "direct (default), wino, or auto: the one that is expected to be faster", True),
    "peer-dw": Option("peer_dw", one_of("two", "fused"),
                      "a depthwise post-op of the peer: two primitives (default), or fused, its own", True),
    "strides": Option("strides", strides(3), "of src, weights and dst, SRC:WEI:DST, each may be empty", True,
                      show_strides),
}  # fmt: skip
DRIVER = Driver(
    "conv",
    ConvSettings(),
    OPTIONS,
    parse_problem,
    _work,
    example="--mode=CP --dir=FWD_I --mb=1 --threads=1 --peer=onednn --batch=resnet_50",
    notation='mb1ic64ih56oc64oh56kh3ph1n"name"',
    bandwidth_bound=False,
    completed=completed,
)
