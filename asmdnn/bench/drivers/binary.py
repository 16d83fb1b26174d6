"""`--binary`: operations on two tensors, of which the second may be broadcast."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

import asmdnn as dnn
from asmdnn.bench import chains, typed
from asmdnn.bench.attributes import ScaledSettings, options
from asmdnn.bench.dims import DimsProblem, dims_problem, longer_desc
from asmdnn.bench.driver import Case, Driver, PeerSide, TensorData, Work
from asmdnn.bench.elementwise import BINARY, rounding
from asmdnn.bench.judge import Answer
from asmdnn.bench.peers.onednn_numbers import BINARY as BINARY_NUMBERS
from asmdnn.bench.quantization import joined, quantities
from asmdnn.bench.values import decoded, encoded, poison
from asmdnn.bench.words import Option, boolean, data_type, one_of, tag
from asmdnn.errors import InvalidArguments, Unimplemented
from asmdnn.types import BinaryAlgorithm

if TYPE_CHECKING:
    from asmdnn.bench.peers.onednn import OnednnPrimitive

SELECT = "select"
SCALED = {"src": "src0", "src1": "src1"}  # benchdnn's words, and the tensors
EXACT = ("max", "min", "ge", "gt", "le", "lt", "eq", "ne", "and", "or", "xor", "fmod", "mod", SELECT)
LARGEST_VALUE = 8  # integers to this, so that some are equal; 0 is not among them: quotients stay finite
# Numbers of oneDNN's C interface.
ARGUMENTS = {"src0": 1, "src1": 2, "dst": 17}


@dataclass(frozen=True, slots=True)
class BinarySettings(ScaledSettings):
    alg: str = "add"
    sdt: str = "f32:f32"
    ddt: str = "f32"
    stag: str = "abx:abx"
    dtag: str = "any"
    inplace: bool = False


BinaryCase = Case[BinarySettings, DimsProblem]


class BinaryWork(Work[TensorData]):
    exactness = (False,)

    def __init__(self, case: BinaryCase) -> None:
        settings = self.settings = case.settings
        names, count = (("src0", "src1", "src2"), "three") if settings.alg == SELECT else (("src0", "src1"), "two")
        if len(case.problem.tensors) != len(names):
            raise InvalidArguments(f"{case.problem}: {settings.alg} takes {count} tensors")
        ndims = max(map(len, case.problem.tensors))
        sources = [dims + (1,) * (ndims - len(dims)) for dims in case.problem.tensors]
        tags = settings.stag.split(":")
        tags += tags[-1:] * (len(names) - len(tags))
        self.dims = tuple(max(sizes) if 0 not in sizes else 0 for sizes in zip(*sources, strict=True))
        dst_tag = tags[0] if settings.dtag == "any" else settings.dtag
        wanted = {name: (dims, tag) for name, dims, tag in zip(names, case.problem.tensors, tags, strict=False)}
        wanted["dst"] = (self.dims, dst_tag)
        kinds = settings.sdt.split(":")
        types = dict(zip(names, kinds + kinds[-1:] * (len(names) - len(kinds)), strict=True)) | {"dst": settings.ddt}
        self.descs = {name: longer_desc(dims, ndims, types[name], tag) for name, (dims, tag) in wanted.items()}
        if settings.inplace:
            typed.check_in_place(self.descs["src0"], self.descs["dst"])
        self.in_place = {"dst": "src0"} if settings.inplace else {}
        scales = {SCALED[q.argument]: q for q in settings.scales}
        self.scales = {name: q.scales(self.descs[name].dims) for name, q in scales.items()}
        self.attr = settings.attr(self.dims, scales={name: q.mask() for name, q in scales.items()})
        self.peer_slack = chains.peer_slack(self.attr)

    @property
    def argument_bytes(self) -> int:
        return sum(math.prod(desc.padded_dims) * desc.dtype.size_bytes for desc in self.descs.values())

    def describe(self) -> tuple[dnn.BinaryForward, dnn.Attr]:
        return dnn.BinaryForward(cast(BinaryAlgorithm, self.settings.alg), **self.descs), self.attr

    def data(self, exact: bool) -> TensorData:
        random = np.random.default_rng(1)
        arrays = {}
        for name in [name for name in self.descs if name != "dst"]:
            size = random.integers(int(name != "src2"), LARGEST_VALUE, self.descs[name].dims, endpoint=True)
            dtype = self.descs[name].dtype
            signs = random.choice((1,) if dtype == dnn.u8 else (-1, 1), size.shape)
            arrays[name] = encoded((size * signs).astype(np.float32), dtype)
        dst = poison(self.dims, self.descs["dst"].dtype)
        if self.attr.reads_dst():
            dst = arrays["src0"] if self.in_place else typed.numbers(random, self.dims, self.descs["dst"].dtype, -1, 1)
        arrays |= {f"{name}_scales": values.ravel() for name, values in self.scales.items()}
        return TensorData({**arrays, "dst": dst, **chains.operands(self.attr, exact)}, exact)

    def answer(self, data: TensorData) -> Answer:
        numbers = {name: decoded(data.arrays[name], desc.dtype) for name, desc in self.descs.items()}
        for name, scales in self.scales.items():  # rounded once, to f32, here as there
            numbers[name] = numbers[name].astype(np.float32) * scales
        src0, src1 = (numbers[name].astype(np.float64) for name in ("src0", "src1"))
        if self.settings.alg == SELECT:
            values = np.where(numbers["src2"] != 0, src0, src1)
        else:
            values = BINARY[self.settings.alg](src0, src1).astype(np.float64)
        rounds = self.settings.alg == "div" or (bool(self.scales) and self.settings.alg not in EXACT)
        error = rounding(values) if rounds else np.zeros(values.shape)
        return typed.answer(self.attr, values, error, data.arrays, self.descs["dst"].dtype)

    def peer(self, isa: str, threads: int) -> PeerSide:
        from asmdnn.bench.peers.onednn import OnednnPrimitive, Tensor
        from asmdnn.bench.peers.onednn_attributes import quantities_of, tensors_of

        if self.settings.alg not in BINARY_NUMBERS:
            raise Unimplemented(f"onednn: there is no operation {self.settings.alg}")
        tensors = {name: Tensor(ARGUMENTS[name], desc) for name, desc in self.descs.items()} | tensors_of(self.attr)
        tensors |= quantities_of({f"{name}_scales": values for name, values in self.scales.items()}, ARGUMENTS)
        return OnednnPrimitive(self._of_onednn, tensors, isa, threads, ("dst",), self.in_place)

    def _of_onednn(self, peer: "OnednnPrimitive") -> Any:
        from asmdnn.bench.peers.onednn_attributes import attributes

        return peer.describe(
            peer.lib.dnnl_binary_primitive_desc_create,
            *(
                BINARY_NUMBERS[self.settings.alg],
                *(peer.descs[name] for name in ARGUMENTS),
                attributes(peer, self.attr, ("sum", "eltwise", "binary"), ARGUMENTS),
            ),
        )


def _pair(word: str) -> list[str]:
    """One word for both, or one for each; a third is the condition's, of select."""
    words = word.split(":")
    return words if len(words) > 1 else words * 2


def _types(word: str) -> str:
    """One type for both sources, or one for each."""
    return ":".join(map(data_type(), _pair(word)))


def _tags(word: str) -> str:
    """One layout for both sources, or one for each."""
    return ":".join(map(tag, _pair(word)))


def _alg(word: str) -> str:
    return one_of(*BINARY, SELECT)(word.lower().removeprefix("binary_"))


def _title(case: BinaryCase) -> str:
    settings = case.settings
    types = "" if {*settings.sdt.split(":"), settings.ddt} == {"f32"} else f"{settings.sdt} {settings.ddt} "
    dims = ":".join("x".join(map(str, dims)) for dims in case.problem.tensors)
    return f"{settings.alg} {types}{settings.stag} {dims}"


DRIVER = Driver(
    "binary",
    BinarySettings(),
    {
        "alg": Option("alg", _alg, f"{', '.join((*BINARY, SELECT))}", True),
        "sdt": Option("sdt", _types, "data types of the sources: f32 or f32:u8, of select f32:f32:s8", True),
        "ddt": Option("ddt", data_type(), "data type of dst: f32 (default), bf16, f16, s32, s8, u8", True),
        "stag": Option("stag", _tags, "layouts of the sources: abx (default), or one for each, axb:abx", True),
        "dtag": Option("dtag", tag, "layout of dst: any (default) is that of the first source", True),
        **options("relu, linear:2:1, add:f32:per_oc, sum:0.5"),
        "attr-scales": Option("scales", quantities(tuple(SCALED), whole=False),
                              "src:common:0.5+src1:common:2", True, joined),
        "inplace": Option("inplace", boolean, "true: the result replaces src0; false (default)", True),
    },
    dims_problem(2, 3),
    BinaryWork,
    example="--mode=CP --alg=add,mul --threads=1 --peer=onednn 1x64x28x28:1x64x1x1",
    notation="1x64x28x28:1x64x1x1",
    title=_title,
)  # fmt: skip
