"""`--binary`: operations on two tensors, of which the second may be broadcast."""

from typing import Any, cast

import numpy as np

import asmdnn as dnn
from asmdnn.bench import chains
from asmdnn.bench.attributes import ScaledSettings, options
from asmdnn.bench.dims import DimsProblem, dims_problem, longer_desc, tag_of_dst
from asmdnn.bench.driver import Array, Case, Driver, TensorData
from asmdnn.bench.judge import Answer
from asmdnn.bench.peers.onednn_numbers import BINARY as BINARY_NUMBERS
from asmdnn.bench.quantization import joined, quantities
from asmdnn.bench.tensor_work import TensorWork
from asmdnn.bench.titles import titled
from asmdnn.bench.values import decoded, encoded
from asmdnn.bench.words import DDT, DTAG, after, data_type, flag, one_of, option, tag, words_of_each
from asmdnn.definitions.elementwise import BINARY, rounding_error
from asmdnn.errors import InvalidArguments
from asmdnn.records import dataclass
from asmdnn.types import BinaryAlgorithm

SELECT = "select"
SOURCES = ("src0", "src1", "src2")
SCALED = {"src": "src0", "src1": "src1"}  # benchdnn's words, and the tensors
EXACT = ("max", "min", "ge", "gt", "le", "lt", "eq", "ne", "and", "or", "xor", "fmod", "mod", SELECT)
LARGEST_VALUE = 8  # integers to this, so that some are equal; 0 is not among them: quotients stay finite


@dataclass(frozen=True, slots=True)
class BinarySettings(ScaledSettings):
    alg: str = "add"
    sdt: str = "f32:f32"
    ddt: str = "f32"
    stag: str = "abx:abx"
    dtag: str = "any"
    inplace: bool = False


class BinaryWork(TensorWork):
    exactness = (False,)
    function, post_ops = "binary", ("sum", "eltwise", "binary")

    def __init__(self, case: Case[BinarySettings, DimsProblem]) -> None:
        settings, tensors = case.settings, case.problem.tensors
        self.alg, ndims = settings.alg, max(map(len, tensors))
        names, count = (SOURCES, "three") if self.alg == SELECT else (SOURCES[:2], "two")
        if len(tensors) != len(names):
            raise InvalidArguments(f"{case.problem}: {self.alg} takes {count} tensors")
        sources = [dims + (1,) * (ndims - len(dims)) for dims in tensors]
        result = tuple(max(sizes) if 0 not in sizes else 0 for sizes in zip(*sources, strict=True))
        kinds, tags = (words_of_each(word, len(names)) for word in (settings.sdt, settings.stag))
        wanted = dict(zip(names, zip(tensors, kinds, tags, strict=True), strict=True))
        wanted["dst"] = (result, settings.ddt, tag_of_dst(settings))
        self.descs = {name: longer_desc(dims, ndims, kind, tag) for name, (dims, kind, tag) in wanted.items()}
        if settings.inplace:
            self.replaces("src0")
        scales = {SCALED[q.argument]: q for q in settings.scales}
        self.attr = settings.attr(result, scales=self.take_scales(scales))
        self.peer_slack = chains.peer_slack(self.attr)
        self.desc = dnn.BinaryForward(cast(BinaryAlgorithm, self.alg), **self.descs)
        self.takes = self.number_of(BINARY_NUMBERS, "operation", self.alg), "src0", "src1", "dst"

    def sources(self, random: np.random.Generator, exact: bool) -> dict[str, Array]:
        arrays = {}
        for name, desc in self.descs.items():
            if name == "dst":
                continue
            size = random.integers(int(name != "src2"), LARGEST_VALUE, desc.dims, endpoint=True)
            signs = random.choice((1,) if desc.dtype == dnn.u8 else (-1, 1), size.shape)
            arrays[name] = encoded((size * signs).astype(np.float32), desc.dtype)
        return arrays

    def answer(self, data: TensorData) -> Answer:
        numbers = {name: self.real(data, name) for name in self.descs}
        for name, scales in self.source_scales.items():  # rounded once, to f32, here as there
            scaled = decoded(data.arrays[name], self.descs[name].dtype).astype(np.float32) * scales
            numbers[name] = scaled.astype(np.float64)
        if self.alg == SELECT:
            values = np.where(numbers["src2"] != 0, numbers["src0"], numbers["src1"])
        else:
            values = BINARY[self.alg](numbers["src0"], numbers["src1"]).astype(np.float64)
        rounds = self.alg == "div" or (bool(self.source_scales) and self.alg not in EXACT)
        return self.judged(data, values, rounding_error(values) if rounds else 0.0)


def _of_both(parse: Any) -> Any:
    """One word for both, or one for each; a third is the condition's, of select."""

    def words(word: str) -> str:
        found = word.split(":")
        return ":".join(map(parse, found if len(found) > 1 else found * 2))

    return words


DRIVER = Driver(
    "binary",
    BinarySettings(),
    {
        "alg": option(after("binary_", one_of(*BINARY, SELECT)), f"{', '.join((*BINARY, SELECT))}"),
        "sdt": option(_of_both(data_type()), "data types of the sources: f32 or f32:u8, of select f32:f32:s8"),
        "ddt": DDT,
        "stag": option(_of_both(tag), "layouts of the sources: abx (default), or one for each, axb:abx"),
        "dtag": DTAG,
        **options("relu, linear:2:1, add:f32:per_oc, sum:0.5"),
        "attr-scales": option(quantities(tuple(SCALED), whole=False), "src:common:0.5+src1:common:2", joined),
        "inplace": flag("true: the result replaces src0; false (default)"),
    },
    dims_problem(2, 3),
    BinaryWork,
    example="--mode=CP --alg=add,mul --threads=1 --peer=onednn 1x64x28x28:1x64x1x1",
    title=titled("{alg} {types}{stag} {dims}"),
)  # fmt: skip
