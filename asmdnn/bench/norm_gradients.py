"""What gradients of `--bnorm`, `--gnorm` and `--lnorm` share: of src, scale and shift, whatever statistics are of."""

from typing import TYPE_CHECKING, Any

import numpy as np

from asmdnn.bench.driver import Array, TensorData
from asmdnn.bench.gradients import BACKWARD, GradientWork
from asmdnn.bench.judge import Answer
from asmdnn.bench.norms import FLAG_BITS
from asmdnn.bench.values import poison
from asmdnn.definitions.normalization import moments, normalization_gradient, sum_roundings
from asmdnn.definitions.rounding import as_f32, gamma
from asmdnn.memory import MemoryDesc

if TYPE_CHECKING:
    from asmdnn.bench.peers.onednn import Tensor

STATISTICS = ("mean", "variance")


class NormGradientWork(GradientWork):
    """axes: that statistics are of; summed: that gradients of scale and shift are sums over.  BWD_DW has these, where
    there are a scale and a shift."""

    bounds = (-1, 2)
    peer_slack = 100.0
    rms = False
    settings: Any
    axes: tuple[int, ...]
    summed: tuple[int, ...]
    epsilon: float

    def take(self, src: MemoryDesc, dst: MemoryDesc, statistics: MemoryDesc, vector: MemoryDesc) -> None:
        """Set the tensors: those of src's dims, of statistics, and of a scale.  Raises Unimplemented, Impossible."""
        settings = self.settings
        self.given, self.attr = "G" in settings.flags, settings.attr(src.dims)
        parameters = [name for name, flag in (("scale", "C"), ("shift", "H")) if flag in settings.flags]
        named = [f"diff_{name}" for name in parameters if settings.dir == "BWD_DW"]
        read = {"src": src, "diff_dst": dst, **dict.fromkeys(STATISTICS[self.rms :], statistics)}
        read |= {"scale": vector} if "scale" in parameters else {}
        self.descs = {**read, "diff_src": src, **dict.fromkeys(named, vector)}
        self.results = ("diff_src", *named)
        self.more = dict.fromkeys((name for name in self.asked_for(parameters) if name not in self.descs), vector)
        if settings.inplace:
            self.replaces("diff_dst", "diff_src")

    def asked_for(self, parameters: list[str]) -> list[str]:
        """Arguments that version 3.2 of oneDNN asks for, even if it neither reads nor writes them."""
        return []

    def peer_tensors(self) -> "dict[str, Tensor]":
        from asmdnn.bench.peers.onednn import Tensor

        return super().peer_tensors() | {name: Tensor(self.numbers[name], desc) for name, desc in self.more.items()}

    @property
    def optional(self) -> dict[str, MemoryDesc]:
        """What the description takes beside its tensors of src's dims."""
        return {name: desc for name, desc in self.descs.items() if name not in ("src", "diff_dst", "diff_src")}

    def passed(self, data: TensorData) -> Array:
        """The gradient of the normalized values."""
        return self.real(data, "diff_dst")

    def shaped(self, x: Array) -> Array:
        """A tensor of src's dims, with those that `axes` and `summed` count."""
        return x

    def sources(self, random: np.random.Generator, exact: bool) -> dict[str, Array]:
        arrays = {**super().sources(random, exact), **{name: poison(d.dims, d.dtype) for name, d in self.more.items()}}
        if self.given:
            arrays["variance"] = np.abs(arrays["variance"]) + np.float32(0.5)
            return arrays
        x = self.shaped(self.real(TensorData(arrays, False), "src"))
        for name, found in zip(STATISTICS, moments(x, self.axes, self.rms), strict=True):
            if name in self.descs:
                arrays[name] = found.reshape(self.descs[name].dims).astype(np.float32)
        return arrays

    def answer(self, data: TensorData) -> Answer:
        x, d = (self.shaped(values) for values in (self.real(data, "src"), self.passed(data)))
        of_rows = tuple(1 if axis in self.axes else n for axis, n in enumerate(x.shape))
        of_vector = tuple(1 if axis in self.summed else n for axis, n in enumerate(x.shape))
        variance = self.real(data, "variance").reshape(of_rows)
        mean = None if self.rms else self.real(data, "mean").reshape(of_rows)
        scale = self.real(data, "scale").reshape(of_vector) if "scale" in self.descs else 1.0
        axes = () if self.given else self.axes
        dx, (terms, error) = normalization_gradient(x, d, (mean, variance), as_f32(self.epsilon), scale, axes)
        found = {"diff_src": dx}
        if "diff_src_1" in self.results:
            found["diff_src_1"] = d, np.zeros_like(d)
        for name, values, size in (("diff_scale", terms, error), ("diff_shift", d, np.zeros_like(d))):
            if name in self.results:
                count = values.size // self.descs[name].nelems()
                rounding = np.abs(values).sum(self.summed) * gamma(sum_roundings(count)) + size.sum(self.summed)
                found[name] = values.sum(self.summed), rounding
        dims = {name: self.descs[name].dims for name in found}
        return self.gradients({name: (x.reshape(dims[name]), y.reshape(dims[name])) for name, (x, y) in found.items()})

    def pass_on(self, *statistics: str) -> None:
        """Set what oneDNN's functions take; statistics: those whose descriptors they take."""
        numbers = self.epsilon, sum(FLAG_BITS.get(flag, 0) for flag in self.settings.flags)
        self.takes = BACKWARD[self.settings.dir], "diff_src", "diff_dst", "src", *statistics, *numbers
        self.forward_takes = "src", "dst", *statistics, *numbers
