"""`--quantized`: products with weights of 4 or 8 bits and scales by groups, of this library alone."""

import numpy as np

import asmdnn as dnn
from asmdnn.bench import typed
from asmdnn.bench.attributes import ScaledSettings, options
from asmdnn.bench.dims import DimsProblem, desc_of, dims_problem, dims_words
from asmdnn.bench.driver import Array, Case, Driver, TensorData
from asmdnn.bench.judge import Answer
from asmdnn.bench.tensor_work import TensorWork
from asmdnn.bench.words import data_type, flag, number, one_of, option, tag
from asmdnn.definitions.rounding import gamma, rounded_by_groups
from asmdnn.errors import InvalidArguments
from asmdnn.primitives.quantized.octets import in_octets, numbers_in
from asmdnn.records import dataclass
from asmdnn.types import FLOAT_NAMES

ROUNDINGS = 31  # of a result whose sums over a group are exact, and of numbers that its rows are multiplied by


@dataclass(frozen=True, slots=True)
class QuantizedSettings(ScaledSettings):
    dt: str = "f32"
    ddt: str = "f32"
    stag: str = "abx"
    wtag: str = "any"
    bits: int = 4
    group: int = 32
    points: bool = False


class QuantizedWork(TensorWork):
    """points: zero points that differ; else all are half of what the bits hold."""

    exactness = (False,)

    def __init__(self, case: Case[QuantizedSettings, DimsProblem]) -> None:
        settings, ((m, k), (depth, n)) = case.settings, case.problem.tensors
        if k != depth or k % settings.group or k == 0:
            raise InvalidArguments(
                f"{dims_words(case.problem)}: k is one number, and --group={settings.group} divides it"
            )
        self.bits, self.group, self.dims = settings.bits, settings.group, (k, n)
        factors = desc_of((k // self.group, n), "f32", settings.wtag)
        self.descs = {
            "src": desc_of((m, k), settings.dt, settings.stag), "scales": factors,
            "weights": desc_of((k * self.bits // 8, n), "u8", settings.wtag),
            "dst": desc_of((m, n), settings.ddt, "ab"),
        }  # fmt: skip
        self.descs |= {"offsets": factors} if settings.points else {}
        self.point = 0.0 if settings.points else 2.0 ** (self.bits - 1)
        self.attr, self.rounds = settings.attr((m, n)), settings.acc_mode == "strict"
        self.desc = dnn.QuantizedMatMul(**self.descs, zero_point=self.point)  # type: ignore[arg-type]
        self.flops = 2 * m * n * k

    def sources(self, random: np.random.Generator, exact: bool) -> dict[str, Array]:
        src, most = self.descs["src"], 2**self.bits
        scales = random.uniform(0.5, 2, self.descs["scales"].dims).astype(np.float32)
        given = {
            "src": typed.numbers(random, src.dims, src.dtype, -3, 3), "scales": scales,
            "weights": in_octets(random.integers(0, most, self.dims), self.bits),
        }  # fmt: skip
        points = scales * random.integers(1, most, scales.shape).astype(np.float32)
        return given | ({} if self.point else {"offsets": points})

    def answer(self, data: TensorData) -> Answer:
        x, scales = self.real(data, "src"), self.real(data, "scales")[:, None]
        shift = scales * self.point if self.point else self.real(data, "offsets")[:, None]
        numbers = numbers_in(data.arrays["weights"], self.bits).reshape(len(scales), self.group, self.dims[1])
        x = rounded_by_groups(x, self.group) if self.rounds else x
        values = x @ (numbers * scales - shift).reshape(self.dims)
        size = np.abs(x) @ (numbers * scales + shift).reshape(self.dims)
        return self.judged(data, values, size * gamma(ROUNDINGS if self.rounds else self.dims[0] + ROUNDINGS))


DRIVER = Driver(
    "quantized",
    QuantizedSettings(),
    {
        "dt": option(data_type(*FLOAT_NAMES), "data type of src: f32 (default), bf16, f16"),
        "ddt": option(data_type(*FLOAT_NAMES), "data type of dst, likewise"),
        "stag": option(tag, "layout of src: ab (default), ba"),
        "wtag": option(tag, "layout of weights, scales and offsets: any (default), ab"),
        "bits": option(lambda word: int(one_of("4", "8")(word)), "of an element of weights: 4 (default), 8"),
        "group": option(number(1), "elements of k that share a scale (32)"),
        "points": flag("true: zero points that differ; false (default)"),
        "attr-acc-mode": option(one_of("strict", "f32"), "strict (default): src is rounded to s8; f32"),
        **options("relu, linear:2:1"),
    },
    dims_problem(2),
    QuantizedWork,
    example="--mode=CP --bits=4,8 --threads=1 1x4096:4096x4096",
    bandwidth_bound=False,
    peers=(),
)
