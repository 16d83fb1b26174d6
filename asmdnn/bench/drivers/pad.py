"""`--pad`: a tensor with elements around it; oneDNN has none, the words are ours."""

import numpy as np

import asmdnn as dnn
from asmdnn.bench.dims import DimsProblem, desc_of, dims_problem, dims_words, tag_of_dst
from asmdnn.bench.driver import Case, Driver, TensorData
from asmdnn.bench.judge import Answer
from asmdnn.bench.quantization import real
from asmdnn.bench.tensor_work import TensorWork
from asmdnn.bench.words import DT, DTAG, Settings, one_of, option, tag
from asmdnn.errors import InvalidArguments
from asmdnn.primitives.concat.pad import CONSTANT, MODES, PadMode
from asmdnn.records import dataclass

LARGEST_VALUE = 100  # integers to this are numbers of all types


@dataclass(frozen=True, slots=True)
class PadSettings(Settings):
    dt: str = "f32"
    stag: str = "abx"
    dtag: str = "any"
    fill: PadMode = "constant"
    value: float = 0.0


class PadWork(TensorWork):
    """Elements are moved, so one kind of data is enough; the larger half of what is added is behind src."""

    exactness, largest = (True,), LARGEST_VALUE

    def __init__(self, case: Case[PadSettings, DimsProblem]) -> None:
        settings, (inner, outer) = case.settings, case.problem.tensors
        if len(inner) != len(outer):
            raise InvalidArguments(f"{dims_words(case.problem)}: src and dst have one number of dims")
        self.settings, added = settings, [made - size for size, made in zip(inner, outer, strict=True)]
        self.widths = [(n // 2, n - n // 2) for n in added]
        src, dst = desc_of(inner, settings.dt, settings.stag), desc_of(outer, settings.dt, tag_of_dst(settings))
        self.descs = {"src": src, "dst": dst}
        before = tuple(first for first, _ in self.widths)
        self.desc = dnn.Pad(src, dst, before, settings.fill, settings.value)

    def answer(self, data: TensorData) -> Answer:
        x, settings = self.real(data, "src"), self.settings
        more = {"constant_values": settings.value} if settings.fill == CONSTANT else {}
        return Answer(np.pad(x, self.widths, settings.fill, **more), 0.0, "numpy")  # type: ignore[call-overload]


DRIVER = Driver(
    "pad",
    PadSettings(),
    {
        "dt": DT,
        "stag": option(tag, "layout of src: abx (default), axb, nchw, nChw8c, ..."),
        "dtag": DTAG,
        "fill": option(one_of(*MODES), f"what is around src: {', '.join(MODES)}"),
        "value": option(real, "the constant (0)"),
    },
    dims_problem(2),
    PadWork,
    example="--mode=CP --threads=1 1x64x56x56:1x64x58x58",
    peers=(),
)
