"""What `--bnorm` and `--gnorm` share: benchdnn's problems, such as `g8mb2ic64ih56n"name"`, data and answers."""

import math
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

import asmdnn as dnn
from asmdnn.bench import chains
from asmdnn.bench.attributes import AttributeSettings, options
from asmdnn.bench.dims import desc_of
from asmdnn.bench.driver import AnyCase, TensorData, Work
from asmdnn.bench.image_problem import image_words, quoted, read_image
from asmdnn.bench.judge import Answer
from asmdnn.bench.norms import Doubles, arrays_of, flags
from asmdnn.bench.problem_text import count_in
from asmdnn.bench.values import joined
from asmdnn.bench.words import FIRST_DIM, INPLACE, LAYOUT, Option, data_type, direction

PROP_KINDS = MappingProxyType({"FWD_D": dnn.PropKind.forward_training, "FWD_I": dnn.PropKind.forward_inference})
EPSILON = 2.0**-13  # benchdnn's default is 1/16
UNIT = 2.0**-23


@dataclass(frozen=True, slots=True)
class NormProblem:
    """The dims of src, (n, c) and spatial ones, the groups of channels, epsilon, and the problem's name."""

    dims: tuple[int, ...]
    groups: int = 1
    epsilon: float = EPSILON
    name: str = ""

    @property
    def count(self) -> int:
        return count_in(self.name)

    def __str__(self) -> str:
        groups = f"g{self.groups}" if self.groups > 1 else ""
        epsilon = f"eps{self.epsilon:.9g}" if self.epsilon != EPSILON else ""
        return f"{groups}{image_words(self.dims)}{epsilon}{quoted(self.name)}"


def parse(text: str) -> NormProblem:
    """benchdnn's words; g 1.  Raises InvalidArguments."""
    dims, sizes, numbers, name = read_image(text, ("g",), ("eps",))
    return NormProblem(dims, sizes.get("g", 1), numbers.get("eps", EPSILON), name)


@dataclass(frozen=True, slots=True)
class ChannelNormSettings(AttributeSettings):
    dir: str = "FWD_D"
    dt: str = "f32"
    tag: str = "abx"
    flags: str = ""
    inplace: bool = False
    mb: int = 0


def completed(settings: ChannelNormSettings, problem: NormProblem) -> tuple[ChannelNormSettings, NormProblem]:
    dims = (settings.mb or problem.dims[0], *problem.dims[1:])
    return replace(settings, mb=0), replace(problem, dims=dims)


def options_of(letters: str, meanings: str) -> dict[str, Option]:
    """Of a driver whose flags have these letters."""
    return {
        "dir": Option("dir", direction(*PROP_KINDS), "FWD_D training (default), FWD_I inference", True),
        "dt": Option("dt", data_type("f32"), "data type: f32", True),
        "tag": LAYOUT,
        "flags": Option("flags", flags(letters), meanings, True),
        **options("relu, linear:2:1, add:f32:per_oc, sum:0.5"),
        "inplace": INPLACE,
        "mb": FIRST_DIM,
    }


class ChannelNormWork(Work[TensorData]):
    exactness = (False,)
    peer_slack = 100.0
    is_batch = True

    def __init__(self, case: AnyCase) -> None:
        settings, problem = case.settings, case.problem
        self.settings, self.problem, self.dims = settings, problem, problem.dims
        self.tensor = desc_of(self.dims, "f32", settings.tag)
        self.given, self.is_training = "G" in settings.flags, settings.dir == "FWD_D"
        groups = self.dims[1] if self.is_batch else problem.groups
        self.shape = (1 if self.is_batch else self.dims[0], groups)
        statistics = desc_of(self.shape[1:] if self.is_batch else self.shape, "f32", "abx")
        vector = desc_of(self.dims[1:2], "f32", "abx")
        keeps = self.given or self.is_training
        self.descs = {"src": self.tensor, "dst": self.tensor}
        self.descs |= {name: statistics for name in ("mean", "variance") if keeps}
        self.descs |= {name: vector for name, flag in (("scale", "C"), ("shift", "H")) if flag in settings.flags}
        relus = set("RA") & set(settings.flags) if self.is_batch else set()
        self.has_relu = bool(relus)
        self.descs |= {"src_1": self.tensor} if "A" in relus else {}
        self.results = ("dst", *(("mean", "variance") if keeps and not self.given else ()))
        self.in_place = {"dst": "src"} if settings.inplace else {}
        attr = settings.attr(self.dims)
        relu = [dnn.Eltwise("relu")] if "R" in settings.flags and not self.is_batch else []
        self.attr = dnn.Attr([*relu, *attr.post_ops], scratchpad_mode=attr.scratchpad_mode)

    @property
    def argument_bytes(self) -> int:
        return sum(4 * math.prod(desc.padded_dims) for desc in self.descs.values())

    def data(self, exact: bool) -> TensorData:
        random = np.random.default_rng(1)
        arrays = arrays_of(self.descs, self.results, self.given, random)
        if self.attr.reads_dst():
            arrays["dst"] = arrays["src"] if self.in_place else random.uniform(-1, 1, self.dims).astype(np.float32)
        return TensorData(arrays | chains.operands(self.attr, exact), exact)

    def answer(self, data: TensorData) -> Answer:
        """The mean is off by some units of src's size; sums of a chunk and of the tree round some hundred times."""
        n, c, *spatial = self.dims
        x = data.arrays["src"].astype(np.float64)
        grouped = x.reshape(n, self.shape[1], c // self.shape[1], -1)
        axes = (0, 2, 3) if self.is_batch else (2, 3)
        mean, variance = grouped.mean(axes, keepdims=True), grouped.var(axes, keepdims=True)
        if self.given:
            mean, variance = (data.arrays[name].astype(np.float64).reshape(mean.shape) for name in ("mean", "variance"))
        factor = 1 / np.sqrt(variance + float(np.float32(self.problem.epsilon)))
        values, factors = ((grouped - mean) * factor).reshape(self.dims), (factor + 0 * grouped).reshape(self.dims)
        per_channel = (1, c, *[1] * len(spatial))
        scale, shift = self.vector(data, "scale", 1.0, per_channel), self.vector(data, "shift", 0.0, per_channel)
        size = float(np.abs(x).max())
        moved = 64 * UNIT * size * factors * np.abs(scale) * (1 + np.abs(values) * (1 + size * factors))
        error = moved + 8 * UNIT * (np.abs(values * scale) + np.abs(shift))
        plain = values * scale + shift + data.arrays.get("src_1", np.float32(0)).astype(np.float64)
        error += 8 * UNIT * np.abs(plain)
        dst = chains.apply(self.attr, np.maximum(plain, 0) if self.has_relu else plain, error, data.arrays)
        found = {"dst": dst, "mean": (mean, 64 * UNIT * size + 0 * mean)}
        found["variance"] = (variance, 64 * UNIT * size * size + 0 * variance)
        parts = [[found[name][i].reshape(self.descs[name].dims) for name in self.results] for i in range(2)]
        return Answer(joined(parts[0]), joined(parts[1]), "numpy")

    def vector(self, data: TensorData, name: str, default: float, dims: tuple[int, ...]) -> Doubles | float:
        return data.arrays[name].astype(np.float64).reshape(dims) if name in data.arrays else default

    @property
    def optional(self) -> dict[str, dnn.MemoryDesc]:
        """What the description takes beside src and dst."""
        return {name: desc for name, desc in self.descs.items() if name not in ("src", "dst")}
