"""A recurrent case as a table: tensors by name with their gaps and orders, the definition, and the peers."""

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
import numpy.typing as npt

import asmdnn as dnn
from asmdnn.bench.driver import Array, Case, PeerSide, TensorData
from asmdnn.bench.judge import Answer
from asmdnn.bench.recurrent import backward
from asmdnn.bench.recurrent.data import LSTM, ArgumentSizes, Dims, Floats, filled
from asmdnn.bench.recurrent.problem import RnnProblem
from asmdnn.bench.tensor_work import PROP_KINDS, TensorWork
from asmdnn.bench.values import encoded, joined
from asmdnn.bench.words import Settings
from asmdnn.definitions.recurrent.bounded import FUNCTION_ERROR, Bounded
from asmdnn.definitions.recurrent.layers import CONCAT, LEFT2RIGHT, RIGHT2LEFT, SUM, Net, ReferenceRun
from asmdnn.definitions.recurrent.values import Function, Handed
from asmdnn.definitions.rounding import UNIT_ROUNDOFF
from asmdnn.errors import InvalidArguments
from asmdnn.records import dataclass, replace
from asmdnn.types import IsaName

DIRECTIONS = {
    LEFT2RIGHT: "unidirectional_left2right",
    RIGHT2LEFT: "unidirectional_right2left",
    CONCAT: "bidirectional_concat",
    SUM: "bidirectional_sum",
}
DESCRIPTIONS = {
    "VANILLA_RNN": dnn.VanillaRNNForward,
    LSTM: dnn.LSTMForward,
    "VANILLA_GRU": dnn.GRUForward,
    "LBR_GRU": dnn.LBRGRUForward,
}
WIDTH_CHANGES = ("VANILLA_RNN", LSTM)  # from the state before a single step to the one after it
WEIGHTS = ("weights_layer", "weights_iter", "weights_projection")
NTC = "ntc"
LAYERS = ("src_layer", "dst_layer")  # which settings.tag is of
GAP = 8  # elements after each row, without trivial strides
UNITS = {dnn.bf16: 2.0**-8, dnn.f16: 2.0**-11}  # unit roundoffs of what steps hand on
FACTORS = (*WEIGHTS, *LAYERS, "src_iter", "dst_iter")  # what is multiplied, and results
OF_BYTES = dict.fromkeys(WEIGHTS, dnn.s8) | dict.fromkeys((*LAYERS, "src_iter", "dst_iter"), dnn.u8)
# Of bytes as benchdnn names them: src_iter, src_layer, dst_iter, dst_layer.
TYPES = {
    "f32": dict.fromkeys(FACTORS, dnn.f32),
    "bf16": dict.fromkeys(FACTORS, dnn.bf16),
    "f16": dict.fromkeys(FACTORS, dnn.f16),
    "u8u8u8u8": OF_BYTES,
    "u8u8u8f32": OF_BYTES | {"dst_layer": dnn.f32},
    "f32u8f32u8": OF_BYTES | {"src_iter": dnn.f32, "dst_iter": dnn.f32},
    "f32u8f32f32": OF_BYTES | {"src_iter": dnn.f32, "dst_iter": dnn.f32, "dst_layer": dnn.f32},
}
PER_CHANNEL, COMMON = "per_oc", "common"  # benchdnn's words
DATA_QPARAMS = (127.0, 128.0)  # scale and shift of bytes: h is in [-1, 1]
MOST_WEIGHT = 127
OF_BYTES_ALGS = (LSTM, "VANILLA_GRU")
CONTRACTION = 4  # times an error of one step: what a bound comes to over all of them, with data that contract


@dataclass(frozen=True, slots=True)
class RnnSettings(Settings):
    """l, t, mb 0: the problem's own."""

    dir: str = "FWD_I"
    cfg: str = "f32"
    alg: str = "VANILLA_RNN"
    direction: str = LEFT2RIGHT
    activation: str = "RELU"
    peephole: bool = False
    projection: bool = False
    trivial_strides: bool = True
    tag: tuple[str, str] = ("tnc", "tnc")
    use_packed: bool = True
    scaling: str = PER_CHANNEL
    l: int = 0  # noqa: E741 - benchdnn's name
    t: int = 0
    mb: int = 0


RnnCase = Case[RnnSettings, RnnProblem]


@dataclass(frozen=True, slots=True)
class BytesOfLayer:
    """weights: scales of every gate and channel, or one for all."""

    weights: tuple[float, ...]

    @classmethod
    def of(cls, values: Mapping[str, Floats], scaling: str) -> "BytesOfLayer":
        """Scales with which the largest weights fill a byte."""
        both = [np.abs(values[name]).max(axis=(0, 1, 2)) for name in ("weights_layer", "weights_iter")]
        scales = MOST_WEIGHT / np.maximum(*both).ravel()
        return cls((float(scales.min()),) if scaling == COMMON else tuple(scales.tolist()))

    def scales(self, like: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        return np.broadcast_to(np.array(self.weights), like[0, 0, 0].size).reshape(like.shape[3:])

    def stored(self, values: Mapping[str, Floats], state: dnn.DataType) -> dict[str, npt.NDArray[Any]]:
        """Weights and rows as whole numbers, or what these stand for; state: the type of the first one."""
        scale, shift = DATA_QPARAMS
        found: dict[str, npt.NDArray[Any]] = dict(values)
        found |= {name: np.rint(x * self.scales(x)) for name, x in values.items() if name in WEIGHTS}
        found |= {name: np.rint(values[name] * scale + shift) for name in ("src_layer", "src_iter")}
        if state == dnn.f32:
            found["src_iter"] = (found["src_iter"] - shift) / scale
        return found

    def real(self, name: str, dtype: dnn.DataType, values: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        scale, shift = DATA_QPARAMS
        if dtype == dnn.u8:
            return (values - shift) / scale
        return values / self.scales(values) if dtype == dnn.s8 else values


class RnnWork(TensorWork):
    """Every state is given, and so is a bias; what a backward pass reads of the forward one, it is given too."""

    exactness = (False,)

    def __init__(self, case: RnnCase) -> None:
        self.case, self.settings = case, case.settings
        settings, p = case.settings, case.problem
        self.sizes = ArgumentSizes(settings.alg, settings.direction, p, settings.peephole, settings.projection)
        self.read, self.forward_results = self.sizes.sources(), self.sizes.results()
        self.descs = {name: self._desc(name, dims) for name, dims in (self.read | self.forward_results).items()}
        self.is_backward = settings.dir == "BWD_DW"
        self.bytes: BytesOfLayer | None = None
        self.results = tuple(self.sizes.gradients() if self.is_backward else self.forward_results)
        self.flops = self.sizes.flops * (2 if self.is_backward else 1)
        self.internal = ("workspace",) if settings.dir == "FWD_D" else ()
        words: dict[str, Any] = {"direction": DIRECTIONS[settings.direction]}
        if settings.alg == "VANILLA_RNN":
            words["activation"] = settings.activation.lower()
        if self.is_backward:
            self.desc = backward.description(settings.alg, self.descs, words)
            return
        if TYPES[settings.cfg]["weights_layer"] == dnn.s8:
            self.bytes = BytesOfLayer.of(filled(self.read), settings.scaling)
            words |= {"rnn_data_qparams": DATA_QPARAMS, "rnn_weights_qparams": self.bytes.weights}
        self.desc = DESCRIPTIONS[settings.alg](**self.descs, **words, prop_kind=PROP_KINDS[settings.dir])

    def _desc(self, name: str, dims: Dims) -> dnn.MemoryDesc:
        dtype = TYPES[self.settings.cfg].get(name, dnn.f32)
        if name in WEIGHTS and self.settings.use_packed:
            return dnn.MemoryDesc(dims, dtype, "any")
        gap = 0 if self.settings.trivial_strides or name.startswith(("weights", "bias")) else GAP
        order = list(range(len(dims)))  # of the dims in memory, the outermost first
        if dict(zip(LAYERS, self.settings.tag, strict=True)).get(name) == NTC:
            order[:2] = 1, 0
        strides, step = [1] * len(dims), dims[-1] + gap
        for dim in order[-2::-1]:
            strides[dim], step = step, step * dims[dim]
        return dnn.MemoryDesc(dims, dtype, strides=strides)

    def sources(self, random: np.random.Generator, exact: bool) -> dict[str, Array]:
        values = filled(self.read)
        values = self.bytes.stored(values, self.descs["src_iter"].dtype) if self.bytes else values
        return {name: encoded(array, self.descs[name].dtype) for name, array in values.items()}

    def real(self, data: TensorData, name: str) -> npt.NDArray[np.float64]:
        values = super().real(data, name)
        return self.bytes.real(name, self.descs[name].dtype, values) if self.bytes else values

    def data(self, exact: bool) -> TensorData:
        """A backward pass has what this library's forward pass leaves."""
        if not self.is_backward:
            return super().data(exact)
        settings = self.settings
        forward, _ = RnnWork(replace(self.case, settings=replace(settings, dir="FWD_D"))).describe()
        engine = dnn.Engine(isa=cast(IsaName, settings.isa), threads=settings.threads)
        return backward.data(self.sizes, forward, dict(self.sources(np.random.default_rng(1), exact)), engine)

    def answer(self, data: TensorData) -> Answer:
        hands = Handed(UNITS.get(self.descs["src_layer"].dtype, 0.0))
        if self.bytes:
            hands = Handed(0.0, *DATA_QPARAMS)
        function = Function(self.settings.activation.lower(), hands=hands)
        net = Net(self.settings.alg, self.settings.direction, function)
        run = ReferenceRun(net, {name: self.real(data, name) for name in self.read})
        results = run.results
        if self.is_backward:
            results = run.gradients({f"diff_{name}": data.arrays[f"diff_{name}"] for name in self.forward_results})
        found = [self._as_stored(name, results[name]) for name in self.results]
        return Answer(joined([x.value for x in found]), joined([x.bound for x in found]), "numpy")

    def _as_stored(self, name: str, x: Bounded) -> Bounded:
        """What a result of bytes has for numbers."""
        if not self.bytes or self.descs[name].dtype != dnn.u8:
            return x
        scale, shift = DATA_QPARAMS
        return Bounded(x.value * scale + shift, x.bound * scale)

    def tolerance(self, data: TensorData) -> Array | float:
        """Of sums of all products of a step, and what later ones make of it; of gradients, whose sums have other sizes,
        that of numpy."""
        if self.is_backward or self.settings.cfg != "f32":
            return self.answer(data).tolerance
        size = sum(self._most(data, weights) for weights in ("weights_layer", "weights_iter")) + 2.0
        terms = self.sizes.problem.slc + self.sizes.problem.sic
        return CONTRACTION * self.sizes.problem.layers * (terms * UNIT_ROUNDOFF * size + 2 * FUNCTION_ERROR)

    def _most(self, data: TensorData, weights: str) -> float:
        """The largest sum of sizes that a source of at most 1 can make."""
        return float(np.abs(data.arrays[weights]).sum(axis=2).max())

    def peer(self, isa: str, threads: int) -> PeerSide:
        if self.settings.peer == "torch":
            from asmdnn.bench.peers.torch_rnn import TorchRnn

            return TorchRnn(self.settings, self.sizes, threads)
        from asmdnn.bench.peers.onednn_rnn import OnednnRnnBackward, onednn_rnn

        if self.is_backward:
            return OnednnRnnBackward(self.settings, self.descs, self.results, isa, threads)
        qparams = (DATA_QPARAMS, self.bytes.weights) if self.bytes else None
        return onednn_rnn(self.settings, self.descs, self.results, isa, threads, qparams)


def work(case: RnnCase) -> RnnWork | str:
    """Raises InvalidArguments for extensions of a cell that has none."""
    settings, p = case.settings, case.problem
    if settings.alg != LSTM:
        for name, is_given in (("peephole", settings.peephole), ("projection", settings.projection)):
            if is_given:
                raise InvalidArguments(f"--with-{name}=true is for --alg={LSTM}, not {settings.alg}")
    if p.dic != p.dhc and not settings.projection:
        return f"dic{p.dic} differs from dhc{p.dhc}, which takes --alg={LSTM} --with-projection=true"
    if p.sic != p.dic and (p.steps > 1 or settings.alg not in WIDTH_CHANGES):
        return f"sic{p.sic} differs from dic{p.dic}, the state that a step hands on"
    is_built = settings.alg in OF_BYTES_ALGS and settings.dir == "FWD_I"
    if TYPES[settings.cfg]["weights_layer"] == dnn.s8 and not is_built:
        return f"--cfg={settings.cfg} is of {' and '.join(OF_BYTES_ALGS)}, inference"
    output = p.dic * (2 if settings.direction == CONCAT else 1)
    if p.layers > 1 and p.slc != output:
        return f"slc{p.slc} differs from the {output} channels of dst_layer, and a layer reads what another one writes"
    return RnnWork(case)
