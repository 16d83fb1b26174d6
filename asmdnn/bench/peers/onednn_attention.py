"""oneDNN's attention: two products and a softmax, in place on one buffer of all scores if types are f32."""

from collections.abc import Callable
from typing import Any

import numpy as np

import asmdnn as dnn
from asmdnn.bench.dims import desc_of
from asmdnn.bench.driver import Array, Data, TensorData
from asmdnn.bench.peers.onednn import OnednnPrimitive, Storage, Tensor
from asmdnn.bench.peers.onednn_attributes import attributes, tensors_of
from asmdnn.bench.tensor_work import FORWARD, NUMBERS
from asmdnn.errors import InvalidArguments

SRC, WEIGHTS, DST = (NUMBERS[name] for name in ("src", "weights", "dst"))
SOFTMAX = 0x30000  # oneDNN's number


class Composition:
    """A PeerSide."""

    def __init__(self, work: Any, isa: str, threads: int) -> None:
        self.work = work
        query, value, dst = (work.descs[name] for name in ("query", "value", "dst"))
        if query.dims[1] != value.dims[1]:
            raise InvalidArguments("the peer onednn has as many heads of keys as of queries")
        scores = desc_of(work.scores, "f32", "abcd")
        self.mask = work.descs.get("mask", desc_of((1, 1, *work.scores[2:]), "f32", "abcd"))
        added = [dnn.Binary("add", self.mask)] if work.settings.mask != "none" else []
        self.attr = dnn.Attr([dnn.Eltwise("linear", work.depth**-0.5), *added])
        more = tensors_of(self.attr)
        first = {"src": Tensor(SRC, query), "weights": Tensor(WEIGHTS, work.keys), "dst": Tensor(DST, scores), **more}
        self.shares = desc_of(work.scores, value.dtype.name, "abcd")  # which the second product multiplies
        second = {"src": Tensor(SRC, self.shares), "weights": Tensor(WEIGHTS, value), "dst": Tensor(DST, dst)}
        self.scoring = OnednnPrimitive(self._scores, first, isa, threads)
        shared = Storage(shared={"src": self.scoring.storage["dst"]})
        both = {"src": Tensor(SRC, scores), "dst": Tensor(DST, self.shares)}
        in_place = {"dst": "src"} if self.shares == scores else {}
        self.softmax = OnednnPrimitive(self._softmax, both, isa, threads, ("dst",), in_place, storage=shared)
        if not in_place:
            shared = Storage(shared={"src": self.softmax.storage["dst"]})
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
        shares = scores.astype(self.shares.dtype.numpy)
        self.result.write(TensorData({"src": shares, "weights": arrays["value"], "dst": arrays["dst"]}, False))

    def compute(self, data: Data) -> Array:
        self.write(data)
        self.run()
        return self.result.read()

    def close(self) -> None:
        for primitive in (self.result, self.softmax, self.scoring):
            primitive.close()

    def _scores(self, peer: OnednnPrimitive) -> Any:
        return self._product(peer, attributes(peer, self.attr))

    def _softmax(self, peer: OnednnPrimitive) -> Any:
        create = peer.lib.dnnl_softmax_forward_primitive_desc_create
        what = FORWARD["FWD_I"], SOFTMAX, peer.descs["src"], peer.descs["dst"], 3, peer.null
        return peer.describe(create, *what)

    def _product(self, peer: OnednnPrimitive, attr: Any = None) -> Any:
        src, weights, dst = (peer.descs[name] for name in ("src", "weights", "dst"))
        create = peer.lib.dnnl_matmul_primitive_desc_create
        return peer.describe(create, src, weights, peer.null, dst, peer.null if attr is None else attr)
