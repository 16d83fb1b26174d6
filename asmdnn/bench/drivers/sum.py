"""`--sum`: the sum of several tensors, each with a factor."""

import asmdnn as dnn
from asmdnn.bench.dims import DimsProblem, desc_of, dims_problem, tag_of_dst
from asmdnn.bench.driver import Case, Driver, TensorData
from asmdnn.bench.judge import Answer
from asmdnn.bench.quantization import real
from asmdnn.bench.tensor_work import NUMBERS_OF_MANY, TensorWork
from asmdnn.bench.titles import titled
from asmdnn.bench.words import DDT, DTAG, TAGS, Settings, data_type, each, flag, option, words_of_each
from asmdnn.definitions.elementwise import weighted_sum, weighted_sum_error
from asmdnn.errors import InvalidArguments
from asmdnn.primitives.attributes.words import number_word
from asmdnn.records import dataclass


@dataclass(frozen=True, slots=True)
class SumSettings(Settings):
    sdt: str = "f32:f32"
    ddt: str = "f32"
    stag: str = "abx"
    dtag: str = "any"
    scales: tuple[float, ...] = ()
    inplace: bool = False


class SumWork(TensorWork):
    exactness = (False,)
    bounds = (-64, 64)
    function, numbers = "sum", NUMBERS_OF_MANY

    def __init__(self, case: Case[SumSettings, DimsProblem]) -> None:
        settings, dims = case.settings, case.problem.dims
        types = settings.sdt.split(":")
        count = len(types)
        tags = words_of_each(settings.stag, count)
        srcs = tuple(desc_of(dims, kind, each) for kind, each in zip(types, tags, strict=True))
        scales = settings.scales * count if len(settings.scales) == 1 else settings.scales
        if len(scales) not in (0, count):
            raise InvalidArguments(f"--scales has {len(scales)} numbers, there are {count} sources")
        dst = desc_of(dims, settings.ddt, tag_of_dst(settings))
        self.descs = {**{f"src{k}": desc for k, desc in enumerate(srcs)}, "dst": dst}
        self.desc = self.sum = dnn.SumForward(srcs, dst, scales)
        self.takes = "dst", count, [*self.sum.scales], [f"src{k}" for k in range(count)]
        if settings.inplace:
            self.replaces("src0")

    def answer(self, data: TensorData) -> Answer:
        terms = [self.real(data, f"src{k}") for k in range(len(self.sum.srcs))]
        values, scales = weighted_sum(terms, self.sum.scales), self.sum.scales
        return self.judged(data, values, weighted_sum_error(terms, scales))


def _scales(word: str) -> tuple[float, ...]:
    """One number for all sources, or one for each."""
    return tuple(map(real, word.split(":")))


DRIVER = Driver(
    "sum",
    SumSettings(),
    {
        "sdt": option(each(data_type()), "data types of the sources, and so their number: f32:f32 (default)"),
        "ddt": DDT,
        "stag": TAGS,
        "dtag": DTAG,
        "scales": option(_scales, "a factor for all sources, or one for each: 0.5:2 (1)",
                         lambda numbers: ":".join(map(number_word, numbers))),
        "inplace": flag("true: the result replaces the first source; false (default)"),
    },
    dims_problem(1),
    SumWork,
    example="--mode=CP --sdt=f32:f32:f32 --scales=1:0.5:2 --threads=1 --peer=onednn 1x64x56x56",
    title=titled("{sources} {types}of {stag} {problem}"),
)  # fmt: skip
