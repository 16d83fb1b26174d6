"""`--rnn`: recurrent layers in f32."""

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

import asmdnn as dnn
from asmdnn.bench.driver import Array, Case, Driver, PeerSide, TensorData, Work
from asmdnn.bench.judge import Answer
from asmdnn.bench.problems import FLOAT_BYTES
from asmdnn.bench.recurrent import backward
from asmdnn.bench.recurrent.data import LSTM, ArgumentSizes, Dims, filled
from asmdnn.bench.recurrent.problem import RnnProblem, rnn_problem
from asmdnn.bench.values import joined, poison
from asmdnn.bench.words import Option, Settings, boolean, configuration, direction, number, one_of
from asmdnn.definitions.recurrent.bounded import FUNCTION_ERROR
from asmdnn.definitions.recurrent.cells import CELLS
from asmdnn.definitions.recurrent.layers import CONCAT, LEFT2RIGHT, RIGHT2LEFT, SUM, Net, ReferenceRun
from asmdnn.definitions.recurrent.values import Function
from asmdnn.definitions.rounding import UNIT_ROUNDOFF
from asmdnn.errors import InvalidArguments, Unimplemented
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
PROP_KINDS = {"FWD_I": dnn.PropKind.forward_inference, "FWD_D": dnn.PropKind.forward_training}
PASSES = {"FWD_I": "", "FWD_D": "training", "BWD_DW": "backward"}
WIDTH_CHANGES = ("VANILLA_RNN", LSTM)  # from the state before a single step to the one behind it
WEIGHTS = ("weights_layer", "weights_iter", "weights_projection")
STEPS_FIRST, NTC = ("tnc", "abc", "any", "undef", ""), "ntc"
LAYERS = ("src_layer", "dst_layer")  # which settings.tag is of
GAP = 8  # elements behind each row, without trivial strides
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


class RnnWork(Work[TensorData]):
    """Every state is given, and so is a bias."""

    exactness = (False,)

    def __init__(self, case: RnnCase) -> None:
        self.case, self.settings, p = case, case.settings, case.problem
        settings = self.settings
        self.sizes = ArgumentSizes(settings.alg, settings.direction, p, settings.peephole, settings.projection)
        self.sources, self.results = self.sizes.sources(), self.sizes.results()
        self.descs = {name: self._desc(name, dims) for name, dims in (self.sources | self.results).items()}
        self.is_backward = settings.dir == "BWD_DW"
        self.flops = self.sizes.flops * (2 if self.is_backward else 1)
        self.internal = ("workspace",) if settings.dir == "FWD_D" else ()  # what a backward pass reads, it is given

    def _desc(self, name: str, dims: Dims) -> dnn.MemoryDesc:
        if name in WEIGHTS and self.settings.use_packed:
            return dnn.MemoryDesc(dims, dnn.f32, "any")
        gap = 0 if self.settings.trivial_strides or name.startswith(("weights", "bias")) else GAP
        order = list(range(len(dims)))  # of the dims in memory, the outermost first
        if dict(zip(LAYERS, self.settings.tag, strict=True)).get(name) == NTC:
            order[:2] = 1, 0
        strides, step = [1] * len(dims), dims[-1] + gap
        for dim in order[-2::-1]:
            strides[dim], step = step, step * dims[dim]
        return dnn.MemoryDesc(dims, dnn.f32, strides=strides)

    @property
    def argument_bytes(self) -> int:
        return sum(int(np.prod(dims)) for dims in (self.sources | self.results).values()) * FLOAT_BYTES

    def describe(self) -> tuple[Any, dnn.Attr]:
        settings = self.settings
        words: dict[str, Any] = {"direction": DIRECTIONS[settings.direction]}
        if settings.alg == "VANILLA_RNN":
            words["activation"] = settings.activation.lower()
        if self.is_backward:
            return backward.description(settings.alg, self.descs, words), dnn.Attr()
        return DESCRIPTIONS[settings.alg](**self.descs, **words, prop_kind=PROP_KINDS[settings.dir]), dnn.Attr()

    def data(self, exact: bool) -> TensorData:
        settings = self.settings
        if self.is_backward:
            forward, _ = RnnWork(replace(self.case, settings=replace(settings, dir="FWD_D"))).describe()
            engine = dnn.Engine(isa=cast(IsaName, settings.isa), threads=settings.threads)
            return backward.data(self.sizes, forward, filled(self.sources), engine)
        unwritten = {name: poison(dims, dnn.f32) for name, dims in self.results.items()}
        return TensorData(filled(self.sources) | unwritten, exact)

    def answer(self, data: TensorData) -> Answer:
        settings = self.settings
        function = Function(settings.activation.lower())
        run = ReferenceRun(
            Net(settings.alg, settings.direction, function), {name: data.arrays[name] for name in self.sources}
        )
        results = run.results
        if self.is_backward:
            results = run.gradients({f"diff_{name}": data.arrays[f"diff_{name}"] for name in self.results})
        found = [results[name] for name in (self.sizes.gradients() if self.is_backward else self.results)]
        return Answer(joined([x.value for x in found]), joined([x.bound for x in found]), "numpy")

    def tolerance(self, data: TensorData) -> Array | float:
        """Of sums of all products of a step, and what later ones make of it; of gradients, whose sums have other sizes,
        that of numpy."""
        if self.is_backward:
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
            return OnednnRnnBackward(self.settings, self.descs, tuple(self.sizes.gradients()), isa, threads)
        return onednn_rnn(self.settings, self.descs, tuple(self.results), isa, threads)


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


def _completed(settings: RnnSettings, problem: RnnProblem) -> tuple[RnnSettings, RnnProblem]:
    sizes = {"layers": settings.l, "steps": settings.t, "mb": settings.mb}
    given = {name: size for name, size in sizes.items() if size}
    return replace(settings, l=0, t=0, mb=0), replace(problem, **given)  # type: ignore[arg-type]


def _alg(word: str) -> str:
    """A cell by benchdnn's name; those with attention raise Unimplemented."""
    if word.upper() in ("VANILLA_AUGRU", "LBR_AUGRU"):
        raise Unimplemented(f"{word.upper()} is not built yet, only {', '.join(CELLS)}")
    return one_of(*CELLS)(word)


def _tags(word: str) -> tuple[str, str]:
    """Of src_layer and dst_layer; that of the weights, between them, is for --use-packed to say."""
    src, *others = word.split(":")
    if len(others) > 2:
        raise InvalidArguments(f"has '{word}', which is more than SRC:WEIGHTS:DST")
    dst = others[1] if len(others) > 1 else src
    unknown = [tag for tag in (src, *others) if tag not in (*STEPS_FIRST, NTC, "bac")]
    if unknown:
        raise Unimplemented(f"{unknown[0]} is not built yet, only tnc and ntc")
    return tuple("tnc" if tag in STEPS_FIRST else NTC for tag in (src, dst))  # type: ignore[return-value]  # of two


def _activation(word: str) -> str:
    """UNDEF is what files write for cells that have none to choose."""
    return "RELU" if word.upper() == "UNDEF" else one_of("RELU", "LOGISTIC", "TANH")(word)


def _title(case: RnnCase) -> str:
    settings = case.settings
    cell = settings.alg.removeprefix("VANILLA_").lower()
    words = [cell, PASSES[settings.dir], settings.direction.removeprefix(LEFT2RIGHT)]
    words += ["peephole"] * settings.peephole + ["projection"] * settings.projection
    words += ["plain weights"] * (not settings.use_packed)
    return " ".join(word for word in (*words, case.problem.name or str(case.problem)) if word)


DRIVER = Driver(
    "rnn",
    RnnSettings(),
    {
        "dir": Option("dir", direction(*PROP_KINDS, "BWD_DW"),
                      "FWD_I inference (default), FWD_D training, BWD_DW all gradients", True),
        "alg": Option("alg", _alg, ", ".join(CELLS), True),
        "direction": Option("direction", one_of(*DIRECTIONS), ", ".join(DIRECTIONS), True),
        "activation": Option("activation", _activation,
                             "of VANILLA_RNN: RELU (default, and for UNDEF), LOGISTIC, TANH", True),
        "with-peephole": Option("peephole", boolean, "true: an LSTM with peephole; false (default)", True),
        "with-projection": Option("projection", boolean, "true: an LSTM with projection; false (default)", True),
        "trivial-strides": Option("trivial_strides", boolean,
                                  "false: gaps behind the rows of layers and states; true (default)", True),
        "use-packed": Option("use_packed", boolean,
                             "false: weights are plain, and packed in every call; true (default)", True),
        "l": Option("l", number(0), "layers, instead of each problem's own (0, the default)", True),
        "t": Option("t", number(0), "time steps, likewise", True),
        "mb": Option("mb", number(0), "sequences, likewise", True),
        "tag": Option("tag", _tags, "tnc (default) or ntc, of both layers, or src_layer:any:dst_layer", True,
                      lambda tags: ":any:".join(tags)),
        "cfg": Option("cfg", configuration, "data types: f32", True, describes=False),
    },
    rnn_problem,
    work,
    example="--mode=CP --alg=VANILLA_LSTM,LBR_GRU --threads=1 --peer=onednn t50mb16sic512",
    notation='l1t50mb16sic512slc512dhc512dic512n"name"',
    bandwidth_bound=False,
    title=_title,
    synonyms={"prop": "dir"},
    peers=("onednn", "torch"),
    completed=_completed,
)  # fmt: skip
