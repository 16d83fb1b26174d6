"""`--sum`: the sum of several tensors, each with a factor."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import asmdnn as dnn
from asmdnn.bench import typed
from asmdnn.bench.dims import DimsProblem, desc_of, dims_problem
from asmdnn.bench.driver import Case, Driver, PeerSide, TensorData, Work
from asmdnn.bench.judge import Answer
from asmdnn.bench.quantization import real
from asmdnn.bench.values import decoded, poison
from asmdnn.bench.words import Option, Settings, boolean, data_type, tag
from asmdnn.errors import InvalidArguments
from asmdnn.primitives.attributes.words import number_word

if TYPE_CHECKING:
    from asmdnn.bench.peers.onednn import OnednnPrimitive

LARGEST_VALUE = 64
UNIT_ROUNDOFF = 2.0**-24
# Numbers of oneDNN's C interface.
MULTIPLE_SRC, DST = 1024, 17


@dataclass(frozen=True, slots=True)
class SumSettings(Settings):
    sdt: str = "f32:f32"
    ddt: str = "f32"
    stag: str = "abx"
    dtag: str = "any"
    scales: tuple[float, ...] = ()
    inplace: bool = False


SumCase = Case[SumSettings, DimsProblem]


class SumWork(Work[TensorData]):
    exactness = (False,)

    def __init__(self, case: SumCase) -> None:
        settings, dims = case.settings, case.problem.dims
        types = settings.sdt.split(":")
        count = len(types)
        tags = settings.stag.split(":")
        tags += tags[-1:] * (count - len(tags))
        srcs = tuple(desc_of(dims, kind, each) for kind, each in zip(types, tags, strict=False))
        scales = settings.scales * count if len(settings.scales) == 1 else settings.scales
        if len(scales) not in (0, count):
            raise InvalidArguments(f"--scales has {len(scales)} numbers, there are {count} sources")
        target = tags[0] if settings.dtag == "any" else settings.dtag
        self.sum = dnn.SumForward(srcs, desc_of(dims, settings.ddt, target), scales)
        self.in_place = {"dst": "src0"} if settings.inplace else {}
        if settings.inplace:
            typed.check_in_place(srcs[0], self.sum.dst)

    @property
    def argument_bytes(self) -> int:
        return sum(math.prod(desc.padded_dims) * desc.dtype.size_bytes for desc in (*self.sum.srcs, self.sum.dst))

    def describe(self) -> tuple[dnn.SumForward, dnn.Attr]:
        return self.sum, dnn.Attr()

    def data(self, exact: bool) -> TensorData:
        random = np.random.default_rng(1)
        arrays = {
            f"src{k}": typed.numbers(random, desc.dims, desc.dtype, -LARGEST_VALUE, LARGEST_VALUE)
            for k, desc in enumerate(self.sum.srcs)
        }
        return TensorData({**arrays, "dst": poison(self.sum.dst.dims, self.sum.dst.dtype)}, exact)

    def answer(self, data: TensorData) -> Answer:
        """Within a rounding of every partial sum."""
        factors = zip(self.sum.scales, self.sum.srcs, strict=True)
        terms = [
            np.float32(x) * decoded(data.arrays[f"src{k}"], desc.dtype).astype(np.float64)
            for k, (x, desc) in enumerate(factors)
        ]
        error = UNIT_ROUNDOFF * 2 * len(terms) * np.sum(np.abs(terms), 0)
        return Answer(*typed.narrowed(np.sum(terms, 0), error, self.sum.dst.dtype), "numpy")

    def peer(self, isa: str, threads: int) -> PeerSide:
        from asmdnn.bench.peers.onednn import OnednnPrimitive, Tensor

        tensors = {f"src{k}": Tensor(MULTIPLE_SRC + k, desc) for k, desc in enumerate(self.sum.srcs)}
        tensors["dst"] = Tensor(DST, self.sum.dst)
        return OnednnPrimitive(self._of_onednn, tensors, isa, threads, ("dst",), self.in_place)

    def _of_onednn(self, peer: "OnednnPrimitive") -> Any:
        srcs = peer.handles([peer.descs[f"src{k}"] for k in range(len(self.sum.srcs))])
        return peer.describe(
            peer.lib.dnnl_sum_primitive_desc_create,
            *(peer.descs["dst"], len(self.sum.srcs), list(self.sum.scales), srcs, peer.null),
        )


def _types(word: str) -> str:
    """A type for every source."""
    return ":".join(map(data_type(), word.split(":")))


def _tags(word: str) -> str:
    """One layout for all sources, or one for each."""
    return ":".join(map(tag, word.split(":")))


def _scales(word: str) -> tuple[float, ...]:
    """One number for all sources, or one for each."""
    return tuple(map(real, word.split(":")))


def _title(case: SumCase) -> str:
    settings = case.settings
    types = settings.sdt.split(":")
    kinds = "" if {*types, settings.ddt} == {"f32"} else f" {settings.sdt} to {settings.ddt}"
    return f"{len(types)}{kinds} of {settings.stag} {case.problem.name or case.problem}"


DRIVER = Driver(
    "sum",
    SumSettings(),
    {
        "sdt": Option("sdt", _types, "data types of the sources, and so their number: f32:f32 (default)", True),
        "ddt": Option("ddt", data_type(), "data type of dst: f32 (default), bf16, f16, s32, s8, u8", True),
        "stag": Option("stag", _tags, "layouts of the sources: abx (default), or one for each, axb:abx", True),
        "dtag": Option("dtag", tag, "layout of dst: any (default) is that of the first source", True),
        "scales": Option("scales", _scales, "a factor for all sources, or one for each: 0.5:2 (1)", True,
                         lambda numbers: ":".join(map(number_word, numbers))),
        "inplace": Option("inplace", boolean, "true: the result replaces the first source; false (default)", True),
    },
    dims_problem(1),
    SumWork,
    example="--mode=CP --sdt=f32:f32:f32 --scales=1:0.5:2 --threads=1 --peer=onednn 1x64x56x56",
    notation="1x64x56x56",
    title=_title,
)  # fmt: skip
