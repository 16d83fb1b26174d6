"""Pooling as cases: the largest or the mean of windows, and the gradients."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

import asmdnn as dnn
from asmdnn.bench import chains, typed
from asmdnn.bench.attributes import AttributeSettings
from asmdnn.bench.dims import desc_of
from asmdnn.bench.driver import Array, Case, Data, PeerSide, TensorData
from asmdnn.bench.gradients import GradientWork
from asmdnn.bench.judge import Answer
from asmdnn.bench.peers.onednn_numbers import POOLING
from asmdnn.bench.pool_problem import PoolProblem
from asmdnn.bench.tensor_work import FORWARD, NUMBERS, Peer, TensorWork
from asmdnn.bench.values import encoded, random_values
from asmdnn.definitions.rounding import gamma
from asmdnn.definitions.windows import (
    largest_and_places,
    largest_gradient,
    mean_error,
    means_gradient,
    position_gradient,
    window_means,
)
from asmdnn.records import dataclass
from asmdnn.types import PoolingAlgorithm

if TYPE_CHECKING:
    from asmdnn.bench.peers.onednn import Tensor

ALGORITHMS: dict[str, PoolingAlgorithm] = {
    "max": "max", "avg_np": "avg_exclude_padding", "avg_p": "avg_include_padding"
}  # fmt: skip
LARGEST_VALUE = 1 << 10  # sums of a window of such integers are exact
LARGEST_OF = {"bf16": 1 << 8, "s8": 127, "u8": 255}  # whole numbers that the type has
WITH_INDICES = {**NUMBERS, "indices": NUMBERS["workspace"]}


@dataclass(frozen=True, slots=True)
class PoolSettings(AttributeSettings):
    dir: str = "FWD_I"
    dt: str = "f32"
    tag: str = "abx"
    alg: str = "max"
    mb: int = 0
    places: str = "s32"


PoolCase = Case[PoolSettings, PoolProblem]


def descs_of(
    settings: PoolSettings, p: PoolProblem, src: str, dst: str, has_indices: bool
) -> dict[str, dnn.MemoryDesc]:
    """The tensors of a case; src, dst: what a pass calls them."""
    kinds = {src: (p.src_dims, settings.dt), dst: (p.dst_dims, settings.dt)}
    if has_indices:
        kinds["indices"] = (p.dst_dims, settings.places)
    return {name: desc_of(dims, kind, settings.tag) for name, (dims, kind) in kinds.items()}


def takes_of(alg: str, p: PoolProblem) -> tuple[Any, ...]:
    """What oneDNN's functions take of both passes, but for the propagation kind."""
    kernel, strides, *padding = p.sizes
    return POOLING[alg], "src", "dst", strides, kernel, *padding


class PoolWork(TensorWork):
    function, post_ops, numbers = "pooling_forward", ("eltwise", "binary"), WITH_INDICES

    def __init__(self, case: PoolCase) -> None:
        settings, p = case.settings, case.problem
        self.alg, self.window, self.in_windows = settings.alg, p.window, settings.places == "u8"
        self.has_indices = settings.dir == "FWD_D" and settings.alg == "max"
        self.descs = descs_of(settings, p, "src", "dst", self.has_indices)
        self.results = ("dst", "indices")[: 1 + self.has_indices]
        self.attr = settings.attr(p.dst_dims)
        self.exactness, self.peer_slack = chains.exactness(self.attr), chains.peer_slack(self.attr)
        self.largest = LARGEST_OF.get(settings.dt, LARGEST_VALUE)
        self.takes = FORWARD["FWD_D" if self.has_indices else "FWD_I"], *takes_of(self.alg, p)
        src, dst = self.descs["src"], self.descs["dst"]
        self.desc = dnn.PoolingForward(ALGORITHMS[self.alg], src, dst, *p.sizes, self.descs.get("indices"))

    def answer(self, data: TensorData) -> Answer:
        x = self.real(data, "src")
        if self.alg != "max":
            mean, count = window_means(x, self.window, includes_padding=self.alg == "avg_p")
            return self.judged(data, mean, mean_error(x, mean, count, self.window, data.exact))
        values, where = largest_and_places(x, self.window, self.has_indices and self.in_windows)
        found = self.judged(data, values, 0.0)
        return typed.together([(found.values, found.tolerance), (where, 0.0)]) if self.has_indices else found

    def peer_tensors(self) -> "dict[str, Tensor]":
        """oneDNN's indices have a form of its own."""
        from asmdnn.bench.peers.onednn import Tensor

        places = Tensor(self.numbers["indices"], desc_of(self.descs["dst"].dims, "s32", "any"))
        return super().peer_tensors() | ({"indices": places} if self.has_indices else {})

    def peer(self, isa: str, threads: int) -> PeerSide:
        found = self.peer_primitive(isa, threads, ("dst",))
        return TrainingPeer(found, self) if self.has_indices else found


class TrainingPeer:
    """oneDNN's forward pass of training; its places of maxima, in a form of its own, are taken from the answer."""

    def __init__(self, peer: Peer, work: PoolWork) -> None:
        self._peer, self._work = peer, work
        self.implementation, self.run = peer.implementation, peer.run
        self.write, self.close = peer.write, peer.close

    def compute(self, data: Data) -> Array:
        places = self._work.answer(TensorData(data.arrays, data.exact)).values
        values = self._peer.compute(data)
        return np.concatenate([values.ravel(), np.ravel(places)[values.size :]])


class PoolGradientWork(GradientWork):
    """diff_src of diff_dst, and of maxima of the places that the forward pass has found in src."""

    exactness = (True, False)
    primitive, numbers = "pooling", WITH_INDICES

    def __init__(self, case: PoolCase) -> None:
        settings, p = case.settings, case.problem
        self.alg, self.window, self.in_windows = settings.alg, p.window, settings.places == "u8"
        self.is_max = settings.alg == "max"
        self.descs = descs_of(settings, p, "diff_src", "diff_dst", self.is_max)
        self.attr, self.forward_tensors = settings.attr(p.src_dims), ("src", "dst") if self.is_max else ()
        self.forward_takes = takes_of(self.alg, p)
        src, dst = self.descs["diff_src"], self.descs["diff_dst"]
        self.desc = dnn.PoolingBackward(ALGORITHMS[self.alg], src, dst, *p.sizes, self.descs.get("indices"))

    def sources(self, random: np.random.Generator, exact: bool) -> dict[str, Array]:
        dst = self.descs["diff_dst"]
        arrays = {"diff_dst": random_values(random, dst.dims, dst.dtype, LARGEST_OF.get(dst.dtype.name, 8), exact)}
        if self.is_max:
            where = largest_and_places(self.forward_src(exact), self.window, self.in_windows)[1]
            arrays["indices"] = where.astype(self.descs["indices"].dtype.numpy)
        return arrays

    def forward_src(self, exact: bool) -> Array:
        """Numbers that all differ, so that it is clear which is the largest; exact: rising in some channels, falling in
        others, so that windows have their maxima at all ends."""
        dims = self.descs["diff_src"].dims
        numbers = np.arange(math.prod(dims)) if exact else np.random.default_rng(2).permutation(math.prod(dims))
        signs = np.where(np.arange(dims[1]) % 2, -1, 1).reshape(-1, *[1] * (len(dims) - 2))
        return (numbers.reshape(dims) * signs).astype(np.float32)

    def answer(self, data: TensorData) -> Answer:
        d, sizes = self.real(data, "diff_dst"), self.descs["diff_src"].dims[2:]
        roundings = gamma(1 + math.prod(self.window.kernel))
        if self.is_max:
            where = self.real(data, "indices")
            gradient = position_gradient if self.in_windows else largest_gradient
            values, size = (gradient(x, where, self.window, sizes) for x in (d, np.abs(d)))
            roundings *= not data.exact
        else:
            values, size = (means_gradient(x, self.window, sizes, self.alg == "avg_p") for x in (d, np.abs(d)))
        return self.gradients({"diff_src": (values, size * roundings)})

    def peer_tensors(self) -> "dict[str, Tensor]":
        """oneDNN's indices are its workspace."""
        return {name: tensor for name, tensor in super().peer_tensors().items() if name != "indices"}

    def forward_data(self, data: Data) -> TensorData:
        src = encoded(self.forward_src(data.exact), self.descs["diff_src"].dtype)
        return TensorData({"src": src, "dst": data.arrays["diff_dst"]}, data.exact)
