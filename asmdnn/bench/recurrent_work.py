"""A recurrent case as a table: tensors by name with their gaps and orders, the definition, and the peers."""

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

import asmdnn as dnn
from asmdnn.bench.driver import Array, Case, PeerSide, TensorData
from asmdnn.bench.judge import Answer
from asmdnn.bench.recurrent import backward
from asmdnn.bench.recurrent.data import LSTM, ArgumentSizes, Dims, filled
from asmdnn.bench.recurrent.problem import RnnProblem
from asmdnn.bench.tensor_work import PROP_KINDS, TensorWork
from asmdnn.bench.values import encoded, joined
from asmdnn.bench.words import Settings
from asmdnn.definitions.recurrent.bounded import FUNCTION_ERROR
from asmdnn.definitions.recurrent.layers import CONCAT, LEFT2RIGHT, RIGHT2LEFT, SUM, Net, ReferenceRun
from asmdnn.definitions.recurrent.values import Function, Handed
from asmdnn.definitions.rounding import UNIT_ROUNDOFF
from asmdnn.errors import InvalidArguments
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
WIDTH_CHANGES = ("VANILLA_RNN", LSTM)  # from the state before a single step to the one behind it
WEIGHTS = ("weights_layer", "weights_iter", "weights_projection")
NTC = "ntc"
LAYERS = ("src_layer", "dst_layer")  # which settings.tag is of
GAP = 8  # elements behind each row, without trivial strides
UNITS = {dnn.bf16: 2.0**-8, dnn.f16: 2.0**-11}  # unit roundoffs of what steps hand on
FACTORS = (*WEIGHTS, *LAYERS, "src_iter", "dst_iter")  # what is multiplied, and results
TYPES = {
    "f32": dict.fromkeys(FACTORS, dnn.f32),
    "bf16": dict.fromkeys(FACTORS, dnn.bf16),
    "f16": dict.fromkeys(FACTORS, dnn.f16),
}
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
    l: int = 0  # noqa: E741 - benchdnn's name
    t: int = 0
    mb: int = 0


RnnCase = Case[RnnSettings, RnnProblem]


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
        self.results = tuple(self.sizes.gradients() if self.is_backward else self.forward_results)
        self.flops = self.sizes.flops * (2 if self.is_backward else 1)
        self.internal = ("workspace",) if settings.dir == "FWD_D" else ()
        words: dict[str, Any] = {"direction": DIRECTIONS[settings.direction]}
        if settings.alg == "VANILLA_RNN":
            words["activation"] = settings.activation.lower()
        if self.is_backward:
            self.desc = backward.description(settings.alg, self.descs, words)
        else:
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
        return {name: encoded(array, self.descs[name].dtype) for name, array in filled(self.read).items()}

    def data(self, exact: bool) -> TensorData:
        """A backward pass has what this library's forward pass leaves."""
        if not self.is_backward:
            return super().data(exact)
        settings = self.settings
        forward, _ = RnnWork(replace(self.case, settings=replace(settings, dir="FWD_D"))).describe()
        engine = dnn.Engine(isa=cast(IsaName, settings.isa), threads=settings.threads)
        return backward.data(self.sizes, forward, filled(self.read), engine)

    def answer(self, data: TensorData) -> Answer:
        hands = Handed(UNITS.get(self.descs["src_layer"].dtype, 0.0))
        function = Function(self.settings.activation.lower(), hands=hands)
        net = Net(self.settings.alg, self.settings.direction, function)
        run = ReferenceRun(net, {name: self.real(data, name) for name in self.read})
        results = run.results
        if self.is_backward:
            results = run.gradients({f"diff_{name}": data.arrays[f"diff_{name}"] for name in self.forward_results})
        found = [results[name] for name in self.results]
        return Answer(joined([x.value for x in found]), joined([x.bound for x in found]), "numpy")

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

        make = OnednnRnnBackward if self.is_backward else onednn_rnn
        return make(self.settings, self.descs, self.results, isa, threads)


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
    output = p.dic * (2 if settings.direction == CONCAT else 1)
    if p.layers > 1 and p.slc != output:
        return f"slc{p.slc} differs from the {output} channels of dst_layer, and a layer reads what another one writes"
    return RnnWork(case)
