"""`--sdpa`: scaled dot-product attention; oneDNN's side is a product, a softmax and another product."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import asmdnn as dnn
from asmdnn.bench.dims import DimsProblem, dims_problem
from asmdnn.bench.driver import Array, Case, Data, Driver, PeerSide, TensorData, Work
from asmdnn.bench.judge import Answer
from asmdnn.bench.values import poison
from asmdnn.bench.words import Option, Settings, boolean, data_type
from asmdnn.errors import InvalidArguments

if TYPE_CHECKING:
    from asmdnn.bench.peers.onednn import OnednnPrimitive

UNIT = 2.0**-23
# Numbers of oneDNN's C interface.
SRC, WEIGHTS, DST, INFERENCE, SOFTMAX = 1, 33, 17, 96, 0x30000


@dataclass(frozen=True, slots=True)
class SdpaSettings(Settings):
    dt: str = "f32"
    mask: bool = False
    causal: bool = False


SdpaCase = Case[SdpaSettings, DimsProblem]


def plain(dims: tuple[int, ...]) -> dnn.MemoryDesc:
    return dnn.MemoryDesc(dims, dnn.f32, "abcd"[: len(dims)])


class SdpaWork(Work[TensorData]):
    exactness = (False,)
    peer_slack = 10.0

    def __init__(self, case: SdpaCase) -> None:
        query, key, value = case.problem.tensors
        if not {len(query), len(key), len(value)} == {4}:
            raise InvalidArguments("query, key and value of attention have 4 dims: images, heads, rows, columns")
        self.settings, self.scale = case.settings, query[3] ** -0.5
        self.scores = (*query[:3], key[2])
        self.descs = {"query": plain(query), "key": plain(key), "value": plain(value)}
        self.descs["dst"] = plain((*query[:3], value[3]))
        if case.settings.mask:
            self.descs["mask"] = plain((1, 1, query[2], key[2]))
        causal = math.prod(self.scores) * (1 - query[2] / key[2] / 2 if case.settings.causal else 1)
        self.flops = int(2 * causal * (query[3] + value[3]))

    @property
    def argument_bytes(self) -> int:
        return sum(desc.size_bytes for desc in self.descs.values())

    def describe(self) -> tuple[dnn.AttentionForward, dnn.Attr]:
        desc = dnn.AttentionForward(
            dnn.PropKind.forward_inference, **self.descs, scale=self.scale, causal=self.settings.causal
        )
        return desc, dnn.Attr()

    def data(self, exact: bool) -> TensorData:
        random = np.random.default_rng(1)
        arrays = {name: random.uniform(-1, 1, desc.dims).astype(np.float32) for name, desc in self.descs.items()}
        return TensorData({**arrays, "dst": poison(self.descs["dst"].dims, dnn.f32)}, exact)

    def added(self, data: Data) -> Array | float:
        """The mask, and the future of causal attention."""
        mask = data.arrays["mask"].astype(np.float64) if self.settings.mask else 0.0
        rows, keys = self.scores[2:]
        hidden = np.arange(keys) > np.arange(rows)[:, None] + keys - rows
        return np.where(hidden, -np.inf, mask) if self.settings.causal else mask

    def answer(self, data: TensorData) -> Answer:
        query, key, value = (data.arrays[name].astype(np.float64) for name in ("query", "key", "value"))
        together = query.shape[1] // key.shape[1]
        scores = query @ key.repeat(together, 1).swapaxes(2, 3) * self.scale + self.added(data)
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        values = powers / powers.sum(-1, keepdims=True) @ value.repeat(together, 1)
        return Answer(values, UNIT * (32 + query.shape[3] + key.shape[2] / 16), "numpy")

    def peer(self, isa: str, threads: int) -> PeerSide:
        return Composition(self, isa, threads)


class Composition:
    """oneDNN's two products and a softmax in place, on one buffer of all scores; a PeerSide."""

    def __init__(self, work: SdpaWork, isa: str, threads: int) -> None:
        from asmdnn.bench.peers.onednn import OnednnPrimitive, Storage, Tensor

        self.work = work
        images, heads, rows, keys = work.scores
        query, value = (work.descs[name] for name in ("query", "value"))
        if query.dims[1] != value.dims[1]:
            raise InvalidArguments("the peer onednn has as many heads of keys as of queries")
        scores = plain(work.scores)
        depth = query.dims[3]
        plane = keys * depth
        transposed = dnn.MemoryDesc((images, heads, depth, keys), dnn.f32, strides=(heads * plane, plane, 1, depth))
        self.mask = plain((1, 1, rows, keys))
        more = {"binary_1": Tensor(65536 | 2, self.mask)} if work.settings.mask or work.settings.causal else {}
        first = {"src": Tensor(SRC, query), "weights": Tensor(WEIGHTS, transposed), "dst": Tensor(DST, scores), **more}
        second = {"src": Tensor(SRC, scores), "weights": Tensor(WEIGHTS, value), "dst": Tensor(DST, work.descs["dst"])}
        self.scoring = OnednnPrimitive(self._scores, first, isa, threads)
        shared = Storage(shared={"src": self.scoring.storage["dst"]})
        both = {"src": Tensor(SRC, scores), "dst": Tensor(DST, scores)}
        self.softmax = OnednnPrimitive(self._softmax, both, isa, threads, ("dst",), {"dst": "src"}, storage=shared)
        self.result = OnednnPrimitive(self._product, second, isa, threads, storage=shared)

    @property
    def implementation(self) -> str:
        return str(self.scoring.implementation)

    @property
    def run(self) -> Callable[[], object]:
        first, second, third = self.scoring.run, self.softmax.run, self.result.run

        def all_three() -> object:
            return first() or second() or third()

        return all_three

    def write(self, data: Data) -> None:
        arrays = dict(data.arrays)
        keys = arrays["key"].swapaxes(2, 3)
        scores = np.zeros(self.work.scores, np.float32)
        mask = np.broadcast_to(np.float32(self.work.added(data)), self.mask.dims)
        self.scoring.write(
            TensorData({"src": arrays["query"], "weights": keys, "dst": scores, "binary_1": mask}, False)
        )
        self.result.write(TensorData({"src": scores, "weights": arrays["value"], "dst": arrays["dst"]}, False))

    def compute(self, data: Data) -> Array:
        self.write(data)
        self.run()
        return self.result.read()

    def close(self) -> None:
        for primitive in (self.result, self.softmax, self.scoring):
            primitive.close()

    def _scores(self, peer: "OnednnPrimitive") -> Any:
        from asmdnn.bench.peers.onednn_attributes import attributes

        ops: list[Any] = [dnn.Eltwise("linear", self.work.scale)]
        ops += [dnn.Binary("add", self.mask)] if "binary_1" in peer.descs else []
        return self._product(peer, attributes(peer, dnn.Attr(ops)))

    def _softmax(self, peer: "OnednnPrimitive") -> Any:
        create = peer.lib.dnnl_softmax_forward_primitive_desc_create
        return peer.describe(create, INFERENCE, SOFTMAX, peer.descs["src"], peer.descs["dst"], 3, peer.null)

    def _product(self, peer: "OnednnPrimitive", attr: Any = None) -> Any:
        src, weights, dst = (peer.descs[name] for name in ("src", "weights", "dst"))
        create = peer.lib.dnnl_matmul_primitive_desc_create
        return peer.describe(create, src, weights, peer.null, dst, peer.null if attr is None else attr)


def _title(case: SdpaCase) -> str:
    words = ["mask"] * case.settings.mask + ["causal"] * case.settings.causal
    return " ".join([":".join("x".join(map(str, dims)) for dims in case.problem.tensors), *words])


DRIVER = Driver(
    "sdpa",
    SdpaSettings(),
    {
        "dt": Option("dt", data_type("f32"), "data type: f32", True),
        "mask": Option("mask", boolean, "true: a number is added to every score; false (default)", True),
        "causal": Option("causal", boolean, "true: rows see no later keys; false (default)", True),
    },
    dims_problem(3),
    SdpaWork,
    example="--mode=CP --threads=1 --peer=onednn 1x12x512x64:1x12x512x64:1x12x512x64",
    notation="1x12x512x64:1x12x512x64:1x12x512x64",
    title=_title,
    bandwidth_bound=False,
)  # fmt: skip
