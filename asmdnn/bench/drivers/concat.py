"""`--concat`: tensors one behind the other along an axis."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import asmdnn as dnn
from asmdnn.bench.dims import DimsProblem, desc_of, dims_problem
from asmdnn.bench.driver import Case, Driver, PeerSide, TensorData, Work
from asmdnn.bench.judge import Answer
from asmdnn.bench.values import decoded, poison, random_values
from asmdnn.bench.words import Option, Settings, data_type, number, tag
from asmdnn.memory.tags import MAX_NDIMS
from asmdnn.types import DATA_TYPES

if TYPE_CHECKING:
    from asmdnn.bench.peers.onednn import OnednnPrimitive

LARGEST_VALUE = 100  # integers to this are numbers of all types
MOST_SOURCES = 64
# Numbers of oneDNN's C interface.
MULTIPLE_SRC, DST = 1024, 17


@dataclass(frozen=True, slots=True)
class ConcatSettings(Settings):
    sdt: str = "f32"
    ddt: str = "f32"
    stag: str = "abx"
    dtag: str = "any"
    axis: int = 1


ConcatCase = Case[ConcatSettings, DimsProblem]


class ConcatWork(Work[TensorData]):
    """Elements are moved and, of integers to 100, converted exactly, so one kind of data is enough."""

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
        self.concat = dnn.Concat(self.srcs, desc_of(tuple(dims), settings.ddt, target), settings.axis)

    @property
    def argument_bytes(self) -> int:
        return sum(math.prod(t.padded_dims) * t.dtype.size_bytes for t in (*self.srcs, self.concat.dst))

    def describe(self) -> tuple[dnn.Concat, dnn.Attr]:
        return self.concat, dnn.Attr()

    def data(self, exact: bool) -> TensorData:
        random = np.random.default_rng(1)
        arrays = {
            f"src{k}": random_values(random, t.dims, t.dtype, LARGEST_VALUE, True) for k, t in enumerate(self.srcs)
        }
        if self.concat.dst.dtype == dnn.u8:
            arrays = {name: values.clip(0) if t.dtype != dnn.bf16 else values & 0x7FFF
                      for (name, values), t in zip(arrays.items(), self.srcs, strict=True)}  # fmt: skip
        return TensorData({**arrays, "dst": poison(self.concat.dst.dims, self.concat.dst.dtype)}, True)

    def answer(self, data: TensorData) -> Answer:
        parts = [decoded(data.arrays[f"src{k}"], t.dtype).astype(np.float64) for k, t in enumerate(self.srcs)]
        return Answer(np.concatenate(parts, self.concat.axis), 0.0, "numpy")

    def peer(self, isa: str, threads: int) -> PeerSide:
        from asmdnn.bench.peers.onednn import OnednnPrimitive, Tensor

        tensors = {f"src{k}": Tensor(MULTIPLE_SRC + k, t) for k, t in enumerate(self.srcs)}
        return OnednnPrimitive(self._of_onednn, {**tensors, "dst": Tensor(DST, self.concat.dst)}, isa, threads)

    def _of_onednn(self, peer: "OnednnPrimitive") -> Any:
        srcs = peer.handles([peer.descs[f"src{k}"] for k in range(len(self.srcs))])
        return peer.describe(
            peer.lib.dnnl_concat_primitive_desc_create,
            *(peer.descs["dst"], len(self.srcs), self.concat.axis, srcs, peer.null),
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
        "sdt": Option("sdt", data_type(), f"data type of the sources: {', '.join(DATA_TYPES)}", True),
        "ddt": Option("ddt", data_type(), "data type of dst", True),
        "stag": Option("stag", _tags, "layouts of the sources: abx (default), or one for each, axb:abx", True),
        "dtag": Option("dtag", tag, "layout of dst: any (default) is that of the first source", True),
        "axis": Option("axis", number(-MAX_NDIMS, MAX_NDIMS - 1), "the axis (1)", True),
    },
    dims_problem(1, MOST_SOURCES),
    ConcatWork,
    example="--mode=CP --stag=abx,axb --threads=1 --peer=onednn 1x64x28x28:1x128x28x28",
    notation="1x64x28x28:1x128x28x28",
    title=_title,
)  # fmt: skip
