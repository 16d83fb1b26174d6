"""`--pool`: the largest or the mean of windows."""

import math
from typing import TYPE_CHECKING

import numpy as np

import asmdnn as dnn
from asmdnn.bench import chains, typed
from asmdnn.bench.attributes import AttributeSettings, options
from asmdnn.bench.dims import desc_of
from asmdnn.bench.driver import Array, Case, Data, Driver, PeerSide, TensorData, by_direction
from asmdnn.bench.gradients import GradientWork
from asmdnn.bench.judge import Answer
from asmdnn.bench.pool_problem import PoolProblem, parse_problem
from asmdnn.bench.tensor_work import FORWARD, NUMBERS, Peer, TensorWork
from asmdnn.bench.titles import titled
from asmdnn.bench.values import encoded, random_values
from asmdnn.bench.words import IMAGES, LAYOUT, data_type, direction, one_of, option
from asmdnn.definitions.rounding import gamma
from asmdnn.definitions.windows import (
    SlidingWindow,
    largest,
    largest_gradient,
    mean_error,
    means_gradient,
    position_gradient,
    positions_of,
    window_means,
)
from asmdnn.records import dataclass
from asmdnn.types import PoolingAlgorithm

if TYPE_CHECKING:
    from asmdnn.bench.peers.onednn import Tensor

ALGORITHMS: dict[str, PoolingAlgorithm] = {
    "max": "max", "avg_np": "avg_exclude_padding", "avg_p": "avg_include_padding"
}  # fmt: skip
LONG_NAMES: dict[str, str] = {long: short for short, long in ALGORITHMS.items()}
LARGEST_VALUE = 1 << 10  # sums of a window of such integers are exact
LARGEST_OF = {"bf16": 1 << 8, "s8": 127, "u8": 255}  # whole numbers that the type has
WITH_INDICES = {**NUMBERS, "indices": NUMBERS["workspace"]}
OF_ONEDNN = {"max": 0x1FF, "avg_p": 0x2FF, "avg_np": 0x3FF}  # its numbers


@dataclass(frozen=True, slots=True)
class PoolSettings(AttributeSettings):
    dir: str = "FWD_I"
    dt: str = "f32"
    tag: str = "abx"
    alg: str = "max"
    mb: int = 0
    places: str = "s32"


Axes = tuple[int, ...]
Sizes = tuple[Axes, Axes, Axes, Axes, Axes]  # kernel, strides, dilations, padding before and after
PoolCase = Case[PoolSettings, PoolProblem]


class PoolWork(TensorWork):
    function, post_ops = "pooling_forward", ("eltwise", "binary")
    numbers = WITH_INDICES

    def __init__(self, case: PoolCase) -> None:
        settings, p = case.settings, case.problem
        src, dst = (desc_of(dims, settings.dt, settings.tag) for dims in (p.src_dims, p.dst_dims))
        self.alg, self.has_indices = settings.alg, settings.dir == "FWD_D" and settings.alg == "max"
        indices = desc_of(dst.dims, settings.places, settings.tag) if self.has_indices else None
        self.descs = {"src": src, "dst": dst} | ({"indices": indices} if indices else {})
        self.results = ("dst", "indices")[: 1 + self.has_indices]
        self.attr = settings.attr(dst.dims)
        self.exactness, self.peer_slack = chains.exactness(self.attr), chains.peer_slack(self.attr)
        self.sizes, self.window = windows_of(p)
        kernel, strides, *padding = self.sizes
        kind = FORWARD["FWD_D" if self.has_indices else "FWD_I"]
        self.takes = kind, OF_ONEDNN[self.alg], "src", "dst", strides, kernel, *padding
        self.desc = dnn.PoolingForward(ALGORITHMS[self.alg], src, dst, *self.sizes, indices)

    def sources(self, random: np.random.Generator, exact: bool) -> dict[str, Array]:
        desc = self.descs["src"]
        most = LARGEST_OF.get(desc.dtype.name, LARGEST_VALUE)
        return {"src": random_values(random, desc.dims, desc.dtype, most, exact)}

    def answer(self, data: TensorData) -> Answer:
        x = self.real(data, "src")
        if self.alg != "max":
            mean, count = window_means(x, self.window, includes_padding=self.alg == "avg_p")
            return self.judged(data, mean, mean_error(x, mean, count, self.window, data.exact))
        values, where = largest(x, self.window, numbers_of(x.shape[2:]))
        if self.has_indices and self.descs["indices"].dtype == dnn.u8:
            where = positions_of(where, self.window, x.shape[2:])
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
        settings, self.problem = case.settings, case.problem
        src, dst = (desc_of(dims, settings.dt, settings.tag) for dims in (self.problem.src_dims, self.problem.dst_dims))
        self.alg, self.is_max = settings.alg, settings.alg == "max"
        indices = desc_of(dst.dims, settings.places, settings.tag) if self.is_max else None
        self.in_windows = settings.places == "u8"
        self.descs = {"diff_dst": dst, "diff_src": src} | ({"indices": indices} if indices else {})
        self.attr, self.forward_tensors = settings.attr(src.dims), ("src", "dst") if self.is_max else ()
        self.sizes, self.window = windows_of(self.problem)
        kernel, strides, *padding = self.sizes
        self.forward_takes = OF_ONEDNN[self.alg], "src", "dst", strides, kernel, *padding
        self.takes = OF_ONEDNN[self.alg], "diff_src", "diff_dst", strides, kernel, *padding
        self.desc = dnn.PoolingBackward(ALGORITHMS[self.alg], src, dst, *self.sizes, indices)

    def sources(self, random: np.random.Generator, exact: bool) -> dict[str, Array]:
        dst = self.descs["diff_dst"]
        arrays = {"diff_dst": random_values(random, dst.dims, dst.dtype, LARGEST_OF.get(dst.dtype.name, 8), exact)}
        if self.is_max:
            x = self.forward_src(exact)
            where = largest(x, self.window, numbers_of(x.shape[2:]))[1]
            where = positions_of(where, self.window, x.shape[2:]) if self.in_windows else where
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


def windows_of(p: PoolProblem) -> tuple[Sizes, SlidingWindow]:
    """The sizes that a description has, and the window of the definition."""
    sizes = (p.kernel, p.strides, p.dilations, p.padding_l, p.padding_r)
    return sizes, SlidingWindow(p.kernel, p.strides, tuple(d + 1 for d in p.dilations), p.padding_l, p.padding_r)


def numbers_of(plane: tuple[int, ...]) -> Array:
    """Of its elements, which broadcast to a tensor."""
    return np.arange(math.prod(plane), dtype=np.float64).reshape(1, 1, *plane)


def _alg(word: str) -> str:
    name = word.lower().removeprefix("pooling_")
    return one_of(*ALGORITHMS)(LONG_NAMES.get(name, name))


DRIVER = Driver(
    "pool",
    PoolSettings(),
    {
        "dir": option(direction("FWD_D", "FWD_I", "BWD_D"),
                      "FWD_I inference (default), FWD_D training: with indices, BWD_D backward"),
        "dt": option(data_type(), "data type: f32 (default), bf16, f16, s32, s8, u8"),
        "cfg": option(data_type(), "the same in older words", field="dt", describes=False),
        "tag": LAYOUT,
        "alg": option(_alg, "max (default), avg_np without padding, avg_p with it"),
        **options("linear:2:1, add:f32:per_oc, sum:0.5"),
        "mb": IMAGES,
        "places": option(one_of("s32", "u8"),
                         "indices of maxima: s32 in a plane (default), or u8 in the window, as oneDNN's"),
    },
    parse_problem,
    by_direction(PoolWork, PoolGradientWork),
    example="--mode=CP --tag=abx,axb --alg=max,avg_np --threads=1 --peer=onednn mb1ic64ih112kh3sh2ph1",
    notation='mb1ic64ih112kh3sh2ph1n"name"',
    title=titled("{alg} {backward}{types}{tag} {problem}"),
)  # fmt: skip
