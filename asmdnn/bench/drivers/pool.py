"""`--pool`: the largest or the mean of windows."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

import asmdnn as dnn
from asmdnn.bench import chains, typed
from asmdnn.bench.attributes import AttributeSettings, options
from asmdnn.bench.dims import desc_of
from asmdnn.bench.driver import Array, Case, Data, Driver, PeerSide, TensorData, Work
from asmdnn.bench.judge import Answer
from asmdnn.bench.pool_problem import PoolProblem, parse_problem
from asmdnn.bench.values import decoded, poison, random_values
from asmdnn.bench.words import IMAGES, LAYOUT, Option, data_type, direction, one_of
from asmdnn.types import PoolingAlgorithm

if TYPE_CHECKING:
    from asmdnn.bench.peers.onednn import OnednnPrimitive

ALGORITHMS: dict[str, PoolingAlgorithm] = {
    "max": "max", "avg_np": "avg_exclude_padding", "avg_p": "avg_include_padding"
}  # fmt: skip
LONG_NAMES: dict[str, str] = {long: short for short, long in ALGORITHMS.items()}
DIRECTIONS = ("FWD_D", "FWD_I")
LARGEST_VALUE = 1 << 10  # sums of a window of such integers are exact
LARGEST_OF = {"bf16": 1 << 8, "s8": 127, "u8": 255}  # whole numbers that the type has
UNIT_ROUNDOFF = 2.0**-24
# Numbers of oneDNN's C interface.
OF_ONEDNN = {"max": 0x1FF, "avg_p": 0x2FF, "avg_np": 0x3FF}
FORWARD_TRAINING, FORWARD_INFERENCE = 64, 96
SRC, DST, WORKSPACE = 1, 17, 64


@dataclass(frozen=True, slots=True)
class PoolSettings(AttributeSettings):
    dir: str = "FWD_I"
    dt: str = "f32"
    tag: str = "abx"
    alg: str = "max"
    mb: int = 0


PoolCase = Case[PoolSettings, PoolProblem]


class PoolWork(Work[TensorData]):
    def __init__(self, case: PoolCase) -> None:
        self.problem, self.settings = case.problem, case.settings
        self.src, self.dst = (
            desc_of(dims, case.settings.dt, case.settings.tag)
            for dims in (case.problem.src_dims, case.problem.dst_dims)
        )
        self.attr = case.settings.attr(self.dst.dims)
        self.exactness, self.peer_slack = chains.exactness(self.attr), chains.peer_slack(self.attr)
        self.has_indices = case.settings.dir == "FWD_D" and case.settings.alg == "max"

    @property
    def argument_bytes(self) -> int:
        size, results = self.src.dtype.size_bytes, math.prod(self.dst.padded_dims)
        return size * (math.prod(self.src.padded_dims) + results) + 4 * self.has_indices * results

    def describe(self) -> tuple[dnn.PoolingForward, dnn.Attr]:
        problem = self.problem
        indices = desc_of(self.dst.dims, "s32", self.settings.tag) if self.has_indices else None
        sizes = (problem.kernel, problem.strides, problem.dilations, problem.padding_l, problem.padding_r)
        return dnn.PoolingForward(ALGORITHMS[self.settings.alg], self.src, self.dst, *sizes, indices), self.attr

    def data(self, exact: bool) -> TensorData:
        random = np.random.default_rng(1)
        dtype = self.src.dtype
        dst = poison(self.dst.dims, dtype)
        if self.attr.reads_dst():
            dst = random_values(random, self.dst.dims, dtype, 8, exact)
        arrays = {
            "src": random_values(random, self.src.dims, dtype, LARGEST_OF.get(dtype.name, LARGEST_VALUE), exact),
            "dst": dst,
        }
        if self.has_indices:
            arrays["indices"] = poison(self.dst.dims, dnn.s32)
        return TensorData(arrays | chains.operands(self.attr, exact), exact)

    def answer(self, data: TensorData) -> Answer:
        """A mean within a rounding of every partial sum and one of the quotient."""
        x = decoded(data.arrays["src"], self.src.dtype).astype(np.float64)
        if self.settings.alg == "max":
            values, places = self._largest(x)
            largest = typed.answer(self.attr, values, np.zeros_like(values), data.arrays, self.dst.dtype)
            if not self.has_indices:
                return largest
            together = np.concatenate([largest.values.ravel(), places.ravel()])
            return Answer(together, np.concatenate([np.ravel(largest.tolerance), np.zeros(places.size)]), "numpy")
        ones = np.ones((1, 1, *self.src.dims[2:]))
        whole = np.full((1, 1, *self.dst.dims[2:]), float(math.prod(self.problem.kernel)))
        divisor = self._sum(ones) if self.settings.alg == "avg_np" else whole
        mean, size = self._sum(x) / divisor, self._sum(np.abs(x)) / divisor
        error = UNIT_ROUNDOFF * np.abs(mean) if data.exact else UNIT_ROUNDOFF * (whole + 1) * size
        return typed.answer(self.attr, mean, error, data.arrays, self.dst.dtype)

    def _sum(self, x: Array) -> Array:
        """Over the window of each result."""
        total = np.zeros((*x.shape[:2], *self.dst.dims[2:]))
        for _, window in self._positions(x, 0.0):
            total += window
        return total

    def _positions(self, x: Array, outside: float) -> Iterator[tuple[tuple[int, ...], Array]]:
        """For every position of the window, row by row, what each result finds there."""
        axes = self.problem.axes
        ends = [max(0, (a.o - 1) * a.s + a.kernel_extent - a.i - a.p) for a in axes]
        padding = [(0, 0), (0, 0), *((a.p, end) for a, end in zip(axes, ends, strict=True))]
        padded = np.pad(x, padding, constant_values=outside)
        for position in product(*(range(a.k) for a in axes)):
            starts = [t * (a.d + 1) for t, a in zip(position, axes, strict=True)]
            cuts = (slice(b, b + (a.o - 1) * a.s + 1, a.s) for b, a in zip(starts, axes, strict=True))
            yield position, padded[(slice(None), slice(None), *cuts)]

    def _largest(self, x: Array) -> tuple[Array, Array]:
        """The maxima, and where the first of each is in its plane."""
        sizes = self.src.dims[2:]
        numbers = np.arange(math.prod(sizes), dtype=np.float64).reshape(1, 1, *sizes)
        best = np.full(self.dst.dims, -np.inf)
        place = np.zeros(self.dst.dims)
        for (_, window), (_, index) in zip(self._positions(x, -np.inf), self._positions(numbers, 0.0), strict=True):
            larger = window > best
            place = np.where(larger, index, place)
            best = np.where(larger, window, best)
        return best, place

    def peer(self, isa: str, threads: int) -> PeerSide:
        from asmdnn.bench.peers.onednn import OnednnPrimitive, Tensor
        from asmdnn.bench.peers.onednn_attributes import tensors_of

        tensors = {"src": Tensor(SRC, self.src), "dst": Tensor(DST, self.dst), **tensors_of(self.attr)}
        if not self.has_indices:
            return OnednnPrimitive(self._of_onednn, tensors, isa, threads)
        tensors["indices"] = Tensor(WORKSPACE, desc_of(self.dst.dims, "s32", "any"))
        return TrainingPeer(OnednnPrimitive(self._of_onednn, tensors, isa, threads), self)

    def _of_onednn(self, peer: "OnednnPrimitive") -> Any:
        from asmdnn.bench.peers.onednn_attributes import attributes

        problem = self.problem
        sizes = (problem.strides, problem.kernel, problem.dilations, problem.padding_l, problem.padding_r)
        return peer.describe(
            peer.lib.dnnl_pooling_forward_primitive_desc_create,
            *(
                FORWARD_TRAINING if self.has_indices else FORWARD_INFERENCE,
                OF_ONEDNN[self.settings.alg],
                peer.descs["src"],
                peer.descs["dst"],
            ),
            *map(peer.dims, sizes),
            attributes(peer, self.attr, ("eltwise", "binary")),
        )


class TrainingPeer:
    """oneDNN's forward pass of training; its places of maxima, in a form of its own, are taken from the answer."""

    def __init__(self, peer: "OnednnPrimitive", work: PoolWork) -> None:
        self._peer, self._work = peer, work
        self.implementation, self.run = peer.implementation, peer.run
        self.write, self.close = peer.write, peer.close

    def compute(self, data: Data) -> Array:
        places = self._work.answer(TensorData(data.arrays, data.exact)).values
        values = self._peer.compute(data)
        return np.concatenate([values.ravel(), np.ravel(places)[values.size :]])


def _completed(settings: PoolSettings, problem: PoolProblem) -> tuple[PoolSettings, PoolProblem]:
    return replace(settings, mb=0), replace(problem, mb=settings.mb or problem.mb)


def _alg(word: str) -> str:
    name = word.lower().removeprefix("pooling_")
    return one_of(*ALGORITHMS)(LONG_NAMES.get(name, name))


def _title(case: PoolCase) -> str:
    kind = f"{case.settings.dt} " if case.settings.dt != "f32" else ""
    return f"{case.settings.alg} {kind}{case.settings.tag} {case.problem.name or case.problem}"


DRIVER = Driver(
    "pool",
    PoolSettings(),
    {
        "dir": Option("dir", direction(*DIRECTIONS), "FWD_I inference (default), FWD_D training: with indices", True),
        "dt": Option("dt", data_type(), "data type: f32 (default), bf16, f16, s32, s8, u8", True),
        "cfg": Option("dt", data_type(), "the same in older words", True, describes=False),
        "tag": LAYOUT,
        "alg": Option("alg", _alg, "max (default), avg_np without padding, avg_p with it", True),
        **options("linear:2:1, add:f32:per_oc, sum:0.5"),
        "mb": IMAGES,
    },
    parse_problem,
    PoolWork,
    example="--mode=CP --tag=abx,axb --alg=max,avg_np --threads=1 --peer=onednn mb1ic64ih112kh3sh2ph1",
    notation='mb1ic64ih112kh3sh2ph1n"name"',
    title=_title,
    completed=_completed,
)  # fmt: skip
