"""What most drivers share: a case is a description, attributes, and tensors by name, which oneDNN knows by numbers.

A driver of that kind says what its tensors are, how sources are filled, and what numpy makes of them; for its peer,
which function of oneDNN takes them.
"""

import math
from abc import abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

import asmdnn as dnn
from asmdnn.bench import chains, typed
from asmdnn.bench.driver import Array, PeerSide, TensorData, Work
from asmdnn.bench.values import poison
from asmdnn.bench.words import Option, direction
from asmdnn.primitives.description import Description

if TYPE_CHECKING:
    from asmdnn.bench.peers.onednn import OnednnPrimitive

PROP_KINDS = MappingProxyType({"FWD_D": dnn.PropKind.forward_training, "FWD_I": dnn.PropKind.forward_inference})
FORWARD = MappingProxyType({"FWD_D": 64, "FWD_I": 96})  # oneDNN's numbers
FORWARD_DIRECTION = Option("dir", direction(*PROP_KINDS), "FWD_D training (default), FWD_I inference", True)
# Of arguments in oneDNN's C interface.
NUMBERS = MappingProxyType(
    {
        "src": 1, "src0": 1, "src1": 2, "src_1": 2, "weights": 33, "dst": 17, "mean": 49, "variance": 50, "scale": 51,
        "shift": 52, "workspace": 64, "diff_src": 129, "diff_dst": 145,
    }
)  # fmt: skip
NOTHING: Mapping[str, Array] = MappingProxyType({})


class TensorWork(Work[TensorData]):
    """desc, attr: of the primitive.  descs: its tensors by name, results included.  quantities: scales and zero points
    as arguments, flat.  numbers: oneDNN's of tensors and of what is internal; post_ops: the kinds that it documents.
    """

    desc: Description
    descs: Mapping[str, dnn.MemoryDesc]
    attr: dnn.Attr = dnn.Attr()
    results: tuple[str, ...] = ("dst",)
    quantities: Mapping[str, Array] = NOTHING
    numbers: Mapping[str, int] = NUMBERS
    post_ops: tuple[str, ...] = ()

    @property
    def argument_bytes(self) -> int:
        return sum(math.prod(desc.padded_dims) * desc.dtype.size_bytes for desc in self.descs.values())

    def describe(self) -> tuple[Description, dnn.Attr]:
        return self.desc, self.attr

    @abstractmethod
    def sources(self, random: np.random.Generator, exact: bool) -> Mapping[str, Array]:
        """What the primitive reads, but for the tensors of its attributes."""

    def data(self, exact: bool) -> TensorData:
        """Sources; results are poison, but for a dst that post-ops read."""
        random = np.random.default_rng(1)
        arrays = dict(self.sources(random, exact))
        arrays |= {name: poison(self.descs[name].dims, self.descs[name].dtype) for name in self.results}
        if self.attr.reads_dst():
            dst, source = self.descs["dst"], self.in_place.get("dst", "")
            arrays["dst"] = arrays[source] if source else typed.numbers(random, dst.dims, dst.dtype, -1, 1)
        return TensorData({**arrays, **self.quantities, **chains.operands(self.attr, exact)}, exact)

    def peer(self, isa: str, threads: int) -> PeerSide:
        from asmdnn.bench.peers.onednn import OnednnPrimitive, Storage, Tensor
        from asmdnn.bench.peers.onednn_attributes import quantities_of, tensors_of

        tensors = {name: Tensor(self.numbers[name], desc) for name, desc in self.descs.items()}
        tensors |= tensors_of(self.attr) | quantities_of(self.quantities, self.numbers)
        internal = Storage({name: self.numbers[name] for name in self.internal})
        return OnednnPrimitive(self.onednn, tensors, isa, threads, self.results, self.in_place, internal)

    def onednn(self, peer: "OnednnPrimitive") -> Any:
        """The handle of oneDNN's primitive descriptor; of drivers with that peer."""
        raise NotImplementedError

    def attributes_of(self, peer: "OnednnPrimitive") -> Any:
        """The handle of oneDNN's attributes.  Raises Unimplemented for what it cannot express."""
        from asmdnn.bench.peers.onednn_attributes import attributes

        return attributes(peer, self.attr, self.post_ops, self.numbers)
