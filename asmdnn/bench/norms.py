"""What `--lnorm`, `--bnorm` and `--gnorm` share: benchdnn's flags, statistics that are given or written, data."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import asmdnn as dnn
from asmdnn.bench.attributes import AttributeSettings, options
from asmdnn.bench.driver import Array, TensorData
from asmdnn.bench.judge import Answer
from asmdnn.bench.tensor_work import FORWARD, FORWARD_DIRECTION, PROP_KINDS, TensorWork
from asmdnn.bench.values import joined
from asmdnn.bench.words import FIRST_DIM, INPLACE, Option, data_type, direction, option
from asmdnn.errors import InvalidArguments
from asmdnn.records import dataclass

FLAG_BITS = {"G": 1, "C": 2, "H": 4, "R": 8, "A": 16}  # oneDNN's numbers; M, without mean, is newer

GRADIENTS = ("BWD_D", "BWD_DW")
NORM_DIRECTION = option(direction(*PROP_KINDS, *GRADIENTS),
                        f"{FORWARD_DIRECTION.help}, BWD_D backward, BWD_DW also of scale and shift")  # fmt: skip


@dataclass(frozen=True, slots=True)
class NormSettings(AttributeSettings):
    dir: str = "FWD_D"
    dt: str = "f32"
    tag: str = "abx"
    flags: str = ""
    inplace: bool = False
    mb: int = 0


def norm_options(layout: Mapping[str, Option], letters: str, meanings: str, post_ops: str) -> dict[str, Option]:
    """Of a driver whose flags have these letters."""
    return {
        "dir": NORM_DIRECTION,
        "dt": option(data_type("f32", "bf16", "f16"), "data type: f32 (default), bf16, f16"),
        **layout,
        "flags": option(flags(letters), meanings),
        **options(post_ops),
        "inplace": INPLACE,
        "mb": FIRST_DIM,
    }


def flags(known: str) -> Callable[[str], str]:
    """Letters of `known`, each once, in its order; S of older files is CH."""

    def parse(word: str) -> str:
        letters = word.upper().replace("S", "CH")
        if len(set(letters)) < len(letters) or not set(letters) <= set(known):
            raise InvalidArguments(f"must be letters of {known}, each once")
        return "".join(letter for letter in known if letter in letters)

    return parse


class NormWork(TensorWork):
    """given: statistics are read; else they are written in training, and nowhere in inference."""

    exactness = (False,)
    bounds = (-1, 2)
    peer_slack = 100.0

    def __init__(self, settings: Any, src: dnn.MemoryDesc, dst: dnn.MemoryDesc) -> None:
        self.settings, self.descs = settings, {"src": src, "dst": dst}
        self.given, self.is_training = "G" in settings.flags, settings.dir == "FWD_D"
        self.attr = settings.attr(src.dims)
        if settings.inplace:
            self.replaces("src")

    def add_tensors(self, statistics: dnn.MemoryDesc, vector: dnn.MemoryDesc, names: tuple[str, ...]) -> None:
        """Statistics of these names, where there are any, and what flags say."""
        names = names if self.given or self.is_training else ()
        self.descs = {**self.descs, **dict.fromkeys(names, statistics)}
        self.descs |= {name: vector for name, flag in (("scale", "C"), ("shift", "H")) if flag in self.settings.flags}
        self.results = ("dst", *(() if self.given else names))

    @property
    def optional(self) -> dict[str, dnn.MemoryDesc]:
        """What the description takes beside src and dst."""
        return {name: desc for name, desc in self.descs.items() if name not in ("src", "dst")}

    def sources(self, random: np.random.Generator, exact: bool) -> dict[str, Array]:
        """A variance is positive."""
        arrays = dict(super().sources(random, exact))
        if self.given:
            arrays["variance"] = np.abs(arrays["variance"]) + np.float32(0.5)
        return arrays

    def parameter(self, data: TensorData, name: str, default: float, dims: tuple[int, ...]) -> Any:
        """Scale or shift with dims that broadcast to src."""
        return self.real(data, name).reshape(dims) if name in data.arrays else default

    def answers(self, dst: Answer, statistics: Mapping[str, tuple[Any, Any]]) -> Answer:
        """All results and their errors in a row."""
        found = {"dst": (dst.values, dst.tolerance), **statistics}
        values = [found[name][0].reshape(self.descs[name].dims) for name in self.results]
        errors = [np.broadcast_to(found[name][1], found[name][0].shape).reshape(-1) for name in self.results]
        return Answer(joined(values), np.concatenate(errors).reshape(joined(values).shape), "numpy")

    def pass_on(self, epsilon: float, *statistics: dnn.MemoryDesc) -> None:
        """Set what oneDNN's function takes."""
        flags = sum(FLAG_BITS.get(flag, 0) for flag in self.settings.flags)
        self.takes = FORWARD[self.settings.dir], "src", "dst", *statistics, epsilon, flags
