"""`--gemm`: c = alpha * op(a) * op(b) + beta * c in f32, row-major, operands plain or packed."""

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

import asmdnn as dnn
from asmdnn.bench.dims import DimsProblem, dims_problem
from asmdnn.bench.driver import Array, Case, Driver, PeerSide, TensorData
from asmdnn.bench.product_work import Arrays, Doubles, ProductWork
from asmdnn.bench.quantization import real
from asmdnn.bench.words import Settings, one_of, option
from asmdnn.definitions.products import product, product_size
from asmdnn.errors import InvalidArguments
from asmdnn.primitives.attributes.words import number_word
from asmdnn.primitives.products.gemm import Gemm, packed_desc
from asmdnn.records import dataclass
from asmdnn.types import IsaName

EXACT_SCALES = frozenset((0.0, 0.5, 1.0, -1.0))
SCALE_ROUNDINGS = 4


@dataclass(frozen=True, slots=True)
class GemmSettings(Settings):
    """pack: the operands in the packed form, lower-case letters."""

    transa: str = "N"
    transb: str = "N"
    alpha: float = 1.0
    beta: float = 0.0
    pack: str = ""


class GemmWork(ProductWork):
    results = ("c",)

    def __init__(self, case: Case[GemmSettings, DimsProblem]) -> None:
        self.settings = settings = case.settings
        a, b = case.problem.tensors
        if len(a) != 2 or len(b) != 2 or a[1] != b[0]:
            raise InvalidArguments(f"problem '{case.problem}': gemm takes MxK:KxN, the sizes of op(a) and op(b)")
        self.sides = {"a": (a[0], a[1]), "b": (b[0], b[1])}
        isa, trans = dnn.Engine(isa=cast(IsaName, settings.isa)).isa, {"a": settings.transa, "b": settings.transb}
        self.descs = {
            name: packed_desc(name.upper(), *sizes, isa)
            if name in settings.pack
            else dnn.MemoryDesc(sizes, dnn.f32, "ab" if trans[name] == "N" else "ba")
            for name, sizes in self.sides.items()
        } | {"c": dnn.MemoryDesc((a[0], b[1]), dnn.f32, "ab")}
        beta = {0.0: "zero", 1.0: "one"}.get(settings.beta, "any")
        self.desc = Gemm(**self.descs, unit_alpha=settings.alpha == 1, beta=beta)
        self.reduction, self.flops = a[1], 2 * a[0] * a[1] * b[1]

    @property
    def reads_result(self) -> bool:
        return self.settings.beta != 0

    @property
    def roundings(self) -> int:
        return self.reduction + SCALE_ROUNDINGS

    def data(self, exact: bool) -> TensorData:
        scale = np.array([self.settings.alpha, self.settings.beta], np.float32)
        found = super().data(exact)
        is_exact = exact and {self.settings.alpha, self.settings.beta} <= EXACT_SCALES
        return TensorData({**found.arrays, "scale": scale}, is_exact)

    def numbers_of(self, data: TensorData) -> dict[str, Array]:
        """The old c, too."""
        return dict(data.arrays)

    def sums(self, x: Arrays) -> Sequence[Doubles]:
        return [self._of(x, product(x["a"], x["b"]), lambda number: number)]

    def sizes(self, x: Arrays) -> Sequence[Doubles]:
        return [self._of(x, product_size(x["a"], x["b"]), np.abs)]

    def _of(self, x: Arrays, products: Doubles, sign: Callable[[Any], Any]) -> Doubles:
        """alpha * products + beta * c."""
        alpha, beta = (float(number) for number in x["scale"])
        scaled: Doubles = sign(alpha) * products
        return scaled + sign(beta * x["c"].astype(np.float64)) if beta else scaled

    def peer(self, isa: str, threads: int) -> PeerSide:
        from asmdnn.bench.peers.gemm import MklGemm, NumpyGemm

        settings, (m, k), (_, n) = self.settings, self.sides["a"], self.sides["b"]
        trans, scales = {"a": settings.transa, "b": settings.transb}, (settings.alpha, settings.beta)
        side = {"mkl": MklGemm, "numpy": NumpyGemm}[settings.peer]
        return side((m, n, k), trans, settings.pack, scales, threads)


def _pack(word: str) -> str:
    return one_of("none", "a", "b", "ab")(word).removeprefix("none")


DRIVER = Driver(
    "gemm",
    GemmSettings(),
    {
        "transa": option(one_of("N", "T"), "N (default): a is stored m x k, T: k x m"),
        "transb": option(one_of("N", "T"), "N (default): b is stored k x n, T: n x k"),
        "alpha": option(real, "the factor of the product (1)", number_word),
        "beta": option(real, "the factor of what c holds (0)", number_word),
        "pack": option(_pack, "operands packed before: none (default), a, b, ab", lambda packed: packed or "none"),
    },
    dims_problem(2),
    GemmWork,
    example="--mode=CP --pack=none,b --threads=1 --peer=mkl 16x1024:1024x1024",
    notation='16x1024:1024x4096_n"name"',
    bandwidth_bound=False,
    peers=("mkl", "numpy"),
)  # fmt: skip
