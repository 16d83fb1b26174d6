"""`--pool`: the largest or the mean of windows."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

import asmdnn as dnn
from asmdnn.bench import chains
from asmdnn.bench.attributes import AttributeSettings, options
from asmdnn.bench.dims import completed, desc_of
from asmdnn.bench.driver import Array, Case, Data, Driver, PeerSide, TensorData
from asmdnn.bench.judge import Answer
from asmdnn.bench.pool_problem import PoolProblem, parse_problem
from asmdnn.bench.tensor_work import FORWARD, NUMBERS, TensorWork
from asmdnn.bench.values import joined, random_values
from asmdnn.bench.words import IMAGES, LAYOUT, Option, data_type, direction, one_of
from asmdnn.definitions.windows import SlidingWindow, largest, mean_error, window_means
from asmdnn.records import dataclass
from asmdnn.types import PoolingAlgorithm

if TYPE_CHECKING:
    from asmdnn.bench.peers.onednn import OnednnPrimitive, Tensor

ALGORITHMS: dict[str, PoolingAlgorithm] = {
    "max": "max", "avg_np": "avg_exclude_padding", "avg_p": "avg_include_padding"
}  # fmt: skip
LONG_NAMES: dict[str, str] = {long: short for short, long in ALGORITHMS.items()}
LARGEST_VALUE = 1 << 10  # sums of a window of such integers are exact
LARGEST_OF = {"bf16": 1 << 8, "s8": 127, "u8": 255}  # whole numbers that the type has
OF_ONEDNN = {"max": 0x1FF, "avg_p": 0x2FF, "avg_np": 0x3FF}  # its numbers


@dataclass(frozen=True, slots=True)
class PoolSettings(AttributeSettings):
    dir: str = "FWD_I"
    dt: str = "f32"
    tag: str = "abx"
    alg: str = "max"
    mb: int = 0


PoolCase = Case[PoolSettings, PoolProblem]


class PoolWork(TensorWork):
    function, post_ops = "pooling_forward", ("eltwise", "binary")
    numbers = {**NUMBERS, "indices": NUMBERS["workspace"]}  # noqa: RUF012  # never changed

    def __init__(self, case: PoolCase) -> None:
        settings, p = case.settings, case.problem
        src, dst = (desc_of(dims, settings.dt, settings.tag) for dims in (p.src_dims, p.dst_dims))
        self.alg, self.has_indices = settings.alg, settings.dir == "FWD_D" and settings.alg == "max"
        indices = desc_of(dst.dims, "s32", settings.tag) if self.has_indices else None
        self.descs = {"src": src, "dst": dst} | ({"indices": indices} if indices else {})
        self.results = ("dst", "indices")[: 1 + self.has_indices]
        self.attr = settings.attr(dst.dims)
        self.exactness, self.peer_slack = chains.exactness(self.attr), chains.peer_slack(self.attr)
        self.sizes = (p.kernel, p.strides, p.dilations, p.padding_l, p.padding_r)
        self.desc = dnn.PoolingForward(ALGORITHMS[self.alg], src, dst, *self.sizes, indices)
        self.window = SlidingWindow(p.kernel, p.strides, tuple(d + 1 for d in p.dilations), p.padding_l, p.padding_r)

    def sources(self, random: np.random.Generator, exact: bool) -> dict[str, Array]:
        desc = self.descs["src"]
        most = LARGEST_OF.get(desc.dtype.name, LARGEST_VALUE)
        return {"src": random_values(random, desc.dims, desc.dtype, most, exact)}

    def answer(self, data: TensorData) -> Answer:
        x = self.real(data, "src")
        if self.alg != "max":
            mean, count = window_means(x, self.window, includes_padding=self.alg == "avg_p")
            return self.judged(data, mean, mean_error(x, mean, count, self.window, data.exact))
        places = np.arange(math.prod(x.shape[2:]), dtype=np.float64).reshape(1, 1, *x.shape[2:])
        values, where = largest(x, self.window, places)
        found = self.judged(data, values, 0.0)
        if not self.has_indices:
            return found
        errors = [np.broadcast_to(found.tolerance, values.shape), np.zeros(values.shape)]
        return Answer(joined([found.values, where]), joined(errors), "numpy")

    def peer_tensors(self) -> "dict[str, Tensor]":
        """oneDNN's indices have a form of its own."""
        from asmdnn.bench.peers.onednn import Tensor

        places = Tensor(self.numbers["indices"], desc_of(self.descs["dst"].dims, "s32", "any"))
        return super().peer_tensors() | ({"indices": places} if self.has_indices else {})

    def peer(self, isa: str, threads: int) -> PeerSide:
        found = self.peer_primitive(isa, threads, ("dst",))
        return TrainingPeer(found, self) if self.has_indices else found

    def peer_arguments(self, peer: "OnednnPrimitive") -> tuple[Any, ...]:
        kernel, strides, *others = map(peer.dims, self.sizes)
        kind = FORWARD["FWD_D" if self.has_indices else "FWD_I"]
        return kind, OF_ONEDNN[self.alg], peer.descs["src"], peer.descs["dst"], strides, kernel, *others


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
        "dir": Option("dir", direction("FWD_D", "FWD_I"),
                      "FWD_I inference (default), FWD_D training: with indices", True),
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
    completed=completed,
)  # fmt: skip
