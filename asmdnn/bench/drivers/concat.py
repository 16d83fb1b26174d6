"""`--concat`: tensors one behind the other along an axis."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import asmdnn as dnn
from asmdnn.bench.dims import DimsProblem, desc_of, dims_problem
from asmdnn.bench.driver import Case, Driver, PeerSide, TensorData, Work
from asmdnn.bench.judge import Answer
from asmdnn.bench.quantization import Quantity, joined, quantities
from asmdnn.bench.values import TYPES, decoded, poison, random_values, rounded
from asmdnn.bench.words import Option, Settings, data_type, number, tag
from asmdnn.errors import InvalidArguments
from asmdnn.memory.tags import MAX_NDIMS

if TYPE_CHECKING:
    from asmdnn.bench.peers.onednn import OnednnPrimitive

LARGEST_VALUE = 100  # integers to this are numbers of all types
MOST_SOURCES = 256
# Numbers of oneDNN's C interface.
MULTIPLE_SRC, DST = 1024, 17
NUMBERS = {f"src{k}": MULTIPLE_SRC + k for k in range(MOST_SOURCES)}


@dataclass(frozen=True, slots=True)
class ConcatSettings(Settings):
    sdt: str = "f32"
    ddt: str = "f32"
    stag: str = "abx"
    dtag: str = "any"
    axis: int = 1
    scales: tuple[Quantity, ...] = ()


ConcatCase = Case[ConcatSettings, DimsProblem]


class ConcatWork(Work[TensorData]):
    """Elements are moved and, of integers to 100, converted exactly, so one kind of data is enough; scales round once,
    here as there."""

    exactness = (True,)

    def __init__(self, case: ConcatCase) -> None:
        settings, problem = case.settings, case.problem
        tags = settings.stag.split(":")
        tags += tags[-1:] * (len(problem.tensors) - len(tags))
        sources = zip(problem.tensors, tags, strict=False)
        self.srcs = tuple(desc_of(dims, settings.sdt, each) for dims, each in sources)
        dims = list(problem.dims)
        axis = settings.axis % len(dims)
        dims[axis] = sum(each[axis] for each in problem.tensors)
        target = tags[0] if settings.dtag == "any" else settings.dtag
        found = {q.argument.removeprefix("m"): q for q in settings.scales}
        for name in found.keys() - {f"src{k}" for k in range(len(self.srcs))}:
            raise InvalidArguments(f"{problem}: --attr-scales has m{name}, there are {len(self.srcs)} sources")
        self.scales = {name: q.scales(self.srcs[int(name.removeprefix("src"))].dims) for name, q in found.items()}
        self.attr = dnn.Attr(scales={name: q.mask() for name, q in found.items()})
        self.concat = dnn.Concat(self.srcs, desc_of(tuple(dims), settings.ddt, target), settings.axis)

    @property
    def argument_bytes(self) -> int:
        return sum(math.prod(t.padded_dims) * t.dtype.size_bytes for t in (*self.srcs, self.concat.dst))

    def describe(self) -> tuple[dnn.Concat, dnn.Attr]:
        return self.concat, self.attr

    def data(self, exact: bool) -> TensorData:
        random = np.random.default_rng(1)
        arrays = {
            f"src{k}": random_values(random, t.dims, t.dtype, LARGEST_VALUE, True) for k, t in enumerate(self.srcs)
        }
        if self.concat.dst.dtype == dnn.u8:
            arrays = {name: values.clip(0) if t.dtype != dnn.bf16 else values & 0x7FFF
                      for (name, values), t in zip(arrays.items(), self.srcs, strict=True)}  # fmt: skip
        arrays |= {f"{name}_scales": values.ravel() for name, values in self.scales.items()}
        return TensorData({**arrays, "dst": poison(self.concat.dst.dims, self.concat.dst.dtype)}, True)

    def answer(self, data: TensorData) -> Answer:
        parts = [decoded(data.arrays[f"src{k}"], t.dtype).astype(np.float64) for k, t in enumerate(self.srcs)]
        for name, scales in self.scales.items():
            k = int(name.removeprefix("src"))
            parts[k] = rounded(parts[k].astype(np.float32) * scales, self.concat.dst.dtype)
        return Answer(np.concatenate(parts, self.concat.axis), 0.0, "numpy")

    def peer(self, isa: str, threads: int) -> PeerSide:
        from asmdnn.bench.peers.onednn import OnednnPrimitive, Tensor
        from asmdnn.bench.peers.onednn_attributes import quantities_of

        tensors = {f"src{k}": Tensor(MULTIPLE_SRC + k, t) for k, t in enumerate(self.srcs)}
        scales = {f"{name}_scales": values for name, values in self.scales.items()}
        tensors |= {"dst": Tensor(DST, self.concat.dst)} | quantities_of(scales, NUMBERS)
        return OnednnPrimitive(self._of_onednn, tensors, isa, threads)

    def _of_onednn(self, peer: "OnednnPrimitive") -> Any:
        from asmdnn.bench.peers.onednn_attributes import attributes

        srcs = peer.handles([peer.descs[f"src{k}"] for k in range(len(self.srcs))])
        return peer.describe(
            peer.lib.dnnl_concat_primitive_desc_create,
            *(peer.descs["dst"], len(self.srcs), self.concat.axis, srcs, attributes(peer, self.attr, (), NUMBERS)),
        )


def _tags(word: str) -> str:
    """One layout for all sources, or one for each."""
    return ":".join(map(tag, word.split(":")))


def _title(case: ConcatCase) -> str:
    return f"{case.settings.stag} {case.problem.name or case.problem}"


DRIVER = Driver(
    "concat",
    ConcatSettings(),
    {
        "sdt": Option("sdt", data_type(), f"data type of the sources: {', '.join(TYPES)}", True),
        "ddt": Option("ddt", data_type(), "data type of dst", True),
        "stag": Option("stag", _tags, "layouts of the sources: abx (default), or one for each, axb:abx", True),
        "dtag": Option("dtag", tag, "layout of dst: any (default) is that of the first source", True),
        "attr-scales": Option("scales", quantities(tuple(f"m{name}" for name in NUMBERS), whole=False),
                              "of each source: msrc0:common:0.5+msrc1:common:2", True, joined),
        "axis": Option("axis", number(-MAX_NDIMS, MAX_NDIMS - 1), "the axis (1)", True),
    },
    dims_problem(1, MOST_SOURCES),
    ConcatWork,
    example="--mode=CP --stag=abx,axb --threads=1 --peer=onednn 1x64x28x28:1x128x28x28",
    notation="1x64x28x28:1x128x28x28",
    title=_title,
)  # fmt: skip
