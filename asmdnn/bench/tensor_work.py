"""What drivers are tables of: a case is a description, attributes, and tensors by name, which oneDNN knows by numbers.

A driver says what its tensors are and which definition they are held to; for its peer, which function of oneDNN takes
them, in what order.
"""

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

import asmdnn as dnn
from asmdnn.bench import chains, typed
from asmdnn.bench.driver import Array, PeerSide, TensorData, Work
from asmdnn.bench.judge import Answer
from asmdnn.bench.quantization import Quantity
from asmdnn.bench.values import decoded, poison, random_values
from asmdnn.bench.words import direction, option
from asmdnn.errors import Unimplemented
from asmdnn.primitives.core.description import Description

if TYPE_CHECKING:
    from asmdnn.bench.peers.onednn import OnednnPrimitive, Tensor

    Peer = OnednnPrimitive
else:
    Peer = Any  # nobody loads oneDNN who does not compare with it

PROP_KINDS = MappingProxyType({"FWD_D": dnn.PropKind.forward_training, "FWD_I": dnn.PropKind.forward_inference})
FORWARD = MappingProxyType({"FWD_D": 64, "FWD_I": 96})  # oneDNN's numbers
FORWARD_DIRECTION = option(direction(*PROP_KINDS), "FWD_D training (default), FWD_I inference")
DATA_DIRECTION = option(direction(*PROP_KINDS, "BWD_D"), f"{FORWARD_DIRECTION.help}, BWD_D backward")
# Of arguments in oneDNN's C interface.
NUMBERS = MappingProxyType(
    {
        "src": 1, "src0": 1, "src1": 2, "src_1": 2, "weights": 33, "bias": 41, "dst": 17, "mean": 49, "variance": 50,
        "scale": 51, "shift": 52, "workspace": 64, "diff_src": 129, "diff_weights": 161, "diff_bias": 169,
        "diff_dst": 145, "diff_scale": 255, "diff_shift": 256,
    }
)  # fmt: skip
MULTIPLE_SRC, MOST_SOURCES = 1024, 256
NUMBERS_OF_MANY = MappingProxyType({"dst": 17} | {f"src{k}": MULTIPLE_SRC + k for k in range(MOST_SOURCES)})
NOTHING: Mapping[str, Array] = MappingProxyType({})
UNSHARED: Mapping[str, dnn.Memory] = MappingProxyType({})
LARGEST_OLD = 8  # of integers in a dst that is read


class TensorWork(Work[TensorData]):
    """desc, attr: of the primitive.  descs: its tensors by name, results included.  quantities: scales and zero points
    as arguments, flat.  source_scales: of sources, by their names, as arrays that broadcast to them.  bounds: of the
    numbers that sources are filled with; bounds_of: those of some, by name; largest: of whole numbers to its size
    instead, real ones where data are not exact.

    For oneDNN, function: what makes its primitive, between "dnnl_" and "_primitive_desc_create"; takes: what that is
    given before the attributes, tensors by their names; lacks: why there is none.  numbers: of tensors and of what is
    internal; post_ops: the kinds that it documents; shared: storage of another primitive of oneDNN that arguments have.
    """

    desc: Description
    descs: Mapping[str, dnn.MemoryDesc]
    attr: dnn.Attr = dnn.Attr()
    results: tuple[str, ...] = ("dst",)
    quantities: Mapping[str, Array] = NOTHING
    source_scales: Mapping[str, Array] = NOTHING
    bounds: tuple[float, float] = (-1, 1)
    bounds_of: Mapping[str, tuple[float, float]] = MappingProxyType({})
    largest: int = 0
    function = ""
    takes: tuple[Any, ...] = ()
    lacks: str = ""
    numbers: Mapping[str, int] = NUMBERS
    post_ops: tuple[str, ...] = ()
    shared: Mapping[str, dnn.Memory] = UNSHARED

    @property
    def argument_bytes(self) -> int:
        return sum(math.prod(desc.padded_dims) * desc.dtype.size_bytes for desc in self.descs.values())

    def describe(self) -> tuple[Description, dnn.Attr]:
        return self.desc, self.attr

    def replaces(self, source: str, result: str = "dst") -> None:
        """Say that a result is to replace a source.  Raises Impossible."""
        typed.check_in_place(self.descs[source], self.descs[result])
        self.in_place = {result: source}

    def take_scales(self, found: Mapping[str, Quantity]) -> dict[str, int]:
        """Take scales of sources, by their names, as arguments; give their masks."""
        self.source_scales = {name: scales.scales(self.descs[name].dims) for name, scales in found.items()}
        self.quantities = {f"{name}_scales": values.ravel() for name, values in self.source_scales.items()}
        return {name: scales.mask() for name, scales in found.items()}

    def number_of(self, numbers: Mapping[str, int], kind: str, word: str) -> int | None:
        """The number of a function of that kind; `lacks` says so where there is none."""
        if word not in numbers:
            self.lacks = f"onednn: there is no {kind} {word}"
        return numbers.get(word)

    def sources(self, random: np.random.Generator, exact: bool) -> Mapping[str, Array]:
        """What the primitive reads, but for the tensors of its attributes."""
        read = {name: desc for name, desc in self.descs.items() if name not in self.results}
        if self.largest:
            return {name: random_values(random, d.dims, d.dtype, self.largest, exact) for name, d in read.items()}
        bounds = {name: self.bounds_of.get(name, self.bounds) for name in read}
        return {name: typed.numbers(random, desc.dims, desc.dtype, *bounds[name]) for name, desc in read.items()}

    @property
    def reads_result(self) -> bool:
        """Whether the first result is read too, as post-ops may."""
        return self.attr.reads_dst()

    def old(self, random: np.random.Generator, exact: bool) -> Array:
        """A dst that post-ops read."""
        dst = self.descs["dst"]
        if exact:
            return random_values(random, dst.dims, dst.dtype, LARGEST_OLD, exact)
        return typed.numbers(random, dst.dims, dst.dtype, -1, 1)

    def data(self, exact: bool) -> TensorData:
        """Sources; results are poison, but for a dst that post-ops read."""
        random = np.random.default_rng(1)
        arrays = dict(self.sources(random, exact))
        arrays |= {name: poison(self.descs[name].dims, self.descs[name].dtype) for name in self.results}
        if self.reads_result:
            source = self.in_place.get("dst", "")
            arrays[self.results[0]] = arrays[source] if source else self.old(random, exact)
        return TensorData({**arrays, **self.quantities, **chains.operands(self.attr, exact)}, exact)

    def real(self, data: TensorData, name: str) -> npt.NDArray[np.float64]:
        """The numbers of an argument."""
        found = decoded(data.arrays[name], self.descs[name].dtype) if name in self.descs else data.arrays[name]
        return found.astype(np.float64)

    def judged(
        self,
        data: TensorData,
        values: Array,
        error: Array | float,
        divisor: Array | float = 1.0,
        zero_point: Array | int = 0,
    ) -> Answer:
        """What is off by `error` in front of post-ops, scales, zero point and the rounding to dst's type."""
        error = np.broadcast_to(error, values.shape)
        kind = self.descs["dst"].dtype
        return typed.answer(self.attr, values, error, data.arrays, kind, divisor=divisor, zero_point=zero_point)

    def peer_tensors(self) -> dict[str, "Tensor"]:
        """Those of the description, as oneDNN is to have them."""
        from asmdnn.bench.peers.onednn import Tensor

        return {name: Tensor(self.numbers[name], desc) for name, desc in self.descs.items()}

    def peer(self, isa: str, threads: int) -> PeerSide:
        if self.lacks:
            raise Unimplemented(self.lacks)
        return self.peer_primitive(isa, threads, self.results)

    def peer_primitive(self, isa: str, threads: int, results: tuple[str, ...]) -> Peer:
        from asmdnn.bench.peers.onednn import OnednnPrimitive, Storage
        from asmdnn.bench.peers.onednn_attributes import quantities_of, tensors_of

        tensors = self.peer_tensors() | tensors_of(self.attr) | quantities_of(self.quantities, self.numbers)
        storage = Storage({name: self.numbers[name] for name in self.internal}, shared=self.shared)
        return OnednnPrimitive(self.onednn, tensors, isa, threads, results, in_place=self.in_place, storage=storage)

    def onednn(self, peer: Peer) -> Any:
        """The handle of oneDNN's primitive descriptor."""
        create = getattr(peer.lib, f"dnnl_{self.function}_primitive_desc_create")
        return peer.describe(create, *arguments(peer, self.takes, peer.descs), self.attributes_of(peer))

    def attributes_of(self, peer: Peer) -> Any:
        """The handle of oneDNN's attributes.  Raises Unimplemented for what it cannot express."""
        from asmdnn.bench.peers.onednn_attributes import attributes

        return attributes(peer, self.attr, self.post_ops, self.numbers)


def arguments(peer: Peer, takes: Sequence[Any], descs: Mapping[str, Any]) -> list[Any]:
    """Of a function of oneDNN: descriptors by name, None for none, a list of names for several; sizes; numbers."""

    def of(value: Any) -> Any:
        match value:
            case None:
                return peer.null
            case str():
                return descs[value]
            case [str(), *_]:
                return peer.handles([descs[name] for name in value])
            case tuple():
                return peer.dims(value)
            case dnn.MemoryDesc():
                return peer.layout(value)
        return value

    return [of(value) for value in takes]
