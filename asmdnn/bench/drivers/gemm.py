"""`--gemm`: c = alpha * op(a) * op(b) + beta * c in f32, row-major, operands plain or packed."""

from dataclasses import dataclass
from typing import cast

import numpy as np

import asmdnn as dnn
from asmdnn.bench.dims import DimsProblem, dims_problem
from asmdnn.bench.driver import Array, Case, Driver, PeerSide, TensorData, Work
from asmdnn.bench.drivers.matmul import title
from asmdnn.bench.judge import Answer
from asmdnn.bench.problems import FLOAT_BYTES
from asmdnn.bench.products import Filler, answer_of, product
from asmdnn.bench.quantization import real
from asmdnn.bench.words import Option, Settings, one_of
from asmdnn.errors import InvalidArguments
from asmdnn.primitives.attributes.words import number_word
from asmdnn.primitives.products.gemm import Gemm, packed_desc
from asmdnn.types import IsaName

EXACT_SCALES = (0.0, 0.5, 1.0, -1.0)
SCALE_ROUNDINGS = 4


@dataclass(frozen=True, slots=True)
class GemmSettings(Settings):
    """pack: the operands in the packed form, lower-case letters."""

    transa: str = "N"
    transb: str = "N"
    alpha: float = 1.0
    beta: float = 0.0
    pack: str = ""


GemmCase = Case[GemmSettings, DimsProblem]


class GemmWork(Work[TensorData]):
    def __init__(self, case: GemmCase) -> None:
        self.settings = case.settings
        a, b = case.problem.tensors
        if len(a) != 2 or len(b) != 2 or a[1] != b[0]:
            raise InvalidArguments(f"problem '{case.problem}': gemm takes MxK:KxN, the sizes of op(a) and op(b)")
        self.dims = {"a": (a[0], a[1]), "b": (b[0], b[1]), "c": (a[0], b[1])}
        self.reduction = a[1]
        self.flops = 2 * a[0] * a[1] * b[1]

    @property
    def argument_bytes(self) -> int:
        return sum(rows * columns for rows, columns in self.dims.values()) * FLOAT_BYTES

    def describe(self) -> tuple[Gemm, dnn.Attr]:
        settings, isa = self.settings, dnn.Engine(isa=cast(IsaName, self.settings.isa)).isa
        descs = {}
        for name, trans in (("a", settings.transa), ("b", settings.transb)):
            descs[name] = dnn.MemoryDesc(self.dims[name], dnn.f32, "ab" if trans == "N" else "ba")
            if name in settings.pack:
                descs[name] = packed_desc(name.upper(), *self.dims[name], isa)
        beta = {0.0: "zero", 1.0: "one"}.get(settings.beta, "any")
        c = dnn.MemoryDesc(self.dims["c"], dnn.f32, "ab")
        return Gemm(**descs, c=c, unit_alpha=settings.alpha == 1, beta=beta), dnn.Attr()

    def data(self, exact: bool) -> TensorData:
        fill = Filler(self.reduction, exact)
        a, b = fill.factors(self.dims["a"], self.dims["b"])
        c = fill.dst(self.dims["c"], is_read=self.settings.beta != 0)
        scale = np.array([self.settings.alpha, self.settings.beta], np.float32)
        return TensorData({"a": a, "b": b, "c": c, "scale": scale}, exact)

    def answer(self, data: TensorData) -> Answer:
        values, size = product(data.arrays["a"], data.arrays["b"])
        alpha, beta = (float(x) for x in data.arrays["scale"])
        values, size = alpha * values, abs(alpha) * size
        if beta:
            old = beta * data.arrays["c"].astype(np.float64)
            values, size = values + old, size + np.abs(old)
        exact = data.exact and alpha in EXACT_SCALES and beta in EXACT_SCALES
        return answer_of((values, size), self.reduction + SCALE_ROUNDINGS, exact)

    def tolerance(self, data: TensorData) -> Array | float:
        return self.answer(data).tolerance

    def peer(self, isa: str, threads: int) -> PeerSide:
        from asmdnn.bench.peers.gemm import MklGemm, NumpyGemm

        settings, (m, k), (_, n) = self.settings, self.dims["a"], self.dims["b"]
        trans, scales = {"a": settings.transa, "b": settings.transb}, (settings.alpha, settings.beta)
        side = {"mkl": MklGemm, "numpy": NumpyGemm}[settings.peer]
        return side((m, n, k), trans, settings.pack, scales, threads)


def _pack(word: str) -> str:
    return one_of("none", "a", "b", "ab")(word).removeprefix("none")


DRIVER = Driver(
    "gemm",
    GemmSettings(),
    {
        "transa": Option("transa", one_of("N", "T"), "N (default): a is stored m x k, T: k x m", True),
        "transb": Option("transb", one_of("N", "T"), "N (default): b is stored k x n, T: n x k", True),
        "alpha": Option("alpha", real, "the factor of the product (1)", True, number_word),
        "beta": Option("beta", real, "the factor of what c holds (0)", True, number_word),
        "pack": Option("pack", _pack, "operands packed before: none (default), a, b, ab", True,
                       lambda packed: packed or "none"),
    },
    dims_problem(2),
    GemmWork,
    example="--mode=CP --pack=none,b --threads=1 --peer=mkl 16x1024:1024x1024",
    notation='16x1024:1024x4096_n"name"',
    bandwidth_bound=False,
    title=lambda case: title(case.problem),
    peers=("mkl", "numpy"),
)  # fmt: skip
