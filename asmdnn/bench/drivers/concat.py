"""`--concat`: tensors one after the other along an axis."""

import numpy as np

import asmdnn as dnn
from asmdnn.bench.dims import DimsProblem, desc_of, dims_problem, tag_of_dst
from asmdnn.bench.driver import Array, Case, Driver, TensorData
from asmdnn.bench.judge import Answer
from asmdnn.bench.quantization import Quantity, joined, quantities
from asmdnn.bench.tensor_work import MOST_SOURCES, NUMBERS_OF_MANY, TensorWork
from asmdnn.bench.titles import titled
from asmdnn.bench.values import TYPES, random_values, rounded
from asmdnn.bench.words import DTAG, TAGS, Settings, axis, data_type, option, words_of_each
from asmdnn.errors import InvalidArguments
from asmdnn.records import dataclass

LARGEST_VALUE = 100  # integers to this are numbers of all types


@dataclass(frozen=True, slots=True)
class ConcatSettings(Settings):
    sdt: str = "f32"
    ddt: str = "f32"
    stag: str = "abx"
    dtag: str = "any"
    axis: int = 1
    scales: tuple[Quantity, ...] = ()


class ConcatWork(TensorWork):
    """Elements are moved and, of integers to 100, converted exactly, so one kind of data is enough; scales round once,
    here as there."""

    exactness = (True,)
    function, numbers = "concat", NUMBERS_OF_MANY

    def __init__(self, case: Case[ConcatSettings, DimsProblem]) -> None:
        settings, problem = case.settings, case.problem
        sources = zip(problem.tensors, words_of_each(settings.stag, len(problem.tensors)), strict=True)
        srcs = tuple(desc_of(dims, settings.sdt, each) for dims, each in sources)
        dims, at = list(problem.dims), settings.axis % len(problem.dims)
        dims[at] = sum(each[at] for each in problem.tensors)
        dst = desc_of(tuple(dims), settings.ddt, tag_of_dst(settings))
        self.descs = {f"src{k}": desc for k, desc in enumerate(srcs)}
        found = {q.argument.removeprefix("m"): q for q in settings.scales}
        for name in found.keys() - self.descs.keys():
            raise InvalidArguments(f"{problem}: --attr-scales has m{name}, there are {len(srcs)} sources")
        self.attr = dnn.Attr(scales=self.take_scales(found))
        self.descs |= {"dst": dst}
        self.desc = self.concat = dnn.Concat(srcs, dst, settings.axis)
        self.takes = "dst", len(srcs), self.concat.axis, [f"src{k}" for k in range(len(srcs))]

    def sources(self, random: np.random.Generator, exact: bool) -> dict[str, Array]:
        arrays = {}
        for k, desc in enumerate(self.concat.srcs):
            values = random_values(random, desc.dims, desc.dtype, LARGEST_VALUE, True)
            if self.concat.dst.dtype == dnn.u8:
                values = values.clip(0) if desc.dtype != dnn.bf16 else values & 0x7FFF
            arrays[f"src{k}"] = values
        return arrays

    def answer(self, data: TensorData) -> Answer:
        parts = {name: self.real(data, name) for name in self.descs if name != "dst"}
        for name, scales in self.source_scales.items():
            parts[name] = rounded(parts[name].astype(np.float32) * scales, self.concat.dst.dtype)
        return Answer(np.concatenate([*parts.values()], self.concat.axis), 0.0, "numpy")


DRIVER = Driver(
    "concat",
    ConcatSettings(),
    {
        "sdt": option(data_type(), f"data type of the sources: {', '.join(TYPES)}"),
        "ddt": option(data_type(), "data type of dst"),
        "stag": TAGS,
        "dtag": DTAG,
        "attr-scales": option(quantities(tuple(f"msrc{k}" for k in range(MOST_SOURCES)), whole=False),
                              "of each source: msrc0:common:0.5+msrc1:common:2", joined),
        "axis": axis("the axis (1)"),
    },
    dims_problem(1, MOST_SOURCES),
    ConcatWork,
    example="--mode=CP --stag=abx,axb --threads=1 --peer=onednn 1x64x28x28:1x128x28x28",
    title=titled("{stag} {problem}"),
)  # fmt: skip
