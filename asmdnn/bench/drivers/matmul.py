"""`--matmul`: matrix products of all types, with batches, bias, layouts, scales, zero points and post-ops."""

import math
from collections.abc import Sequence

import asmdnn as dnn
from asmdnn.bench import older
from asmdnn.bench.attributes import scaled_options, zero_points_option
from asmdnn.bench.dims import DimsProblem, desc_of, dims_problem
from asmdnn.bench.driver import Case, Driver
from asmdnn.bench.product_work import Arrays, Doubles, ProductSettings, ProductWork, product_options
from asmdnn.bench.typed_words import types_of_matrices
from asmdnn.bench.words import Strides, number, option, show_strides, strides
from asmdnn.definitions.products import product, product_size
from asmdnn.errors import InvalidArguments
from asmdnn.records import dataclass

ROW = 2  # benchdnn's default: a bias of its own for each column of a matrix
TENSORS = ("src", "weights", "dst")


@dataclass(frozen=True, slots=True)
class MatmulSettings(ProductSettings):
    """bia_mask: bit d says that the bias has dim d of dst, and not 1."""

    bia_mask: int = ROW
    strides: Strides = ()


class MatmulWork(ProductWork):
    function = "matmul"

    def __init__(self, case: Case[MatmulSettings, DimsProblem]) -> None:
        settings = case.settings
        src, weights, *given = case.problem.tensors
        dims = {"src": src, "weights": weights, "dst": dst_dims(src, weights)}
        if given not in ([], [dims["dst"]]):
            raise InvalidArguments(f"dst of {case.problem} has the dims {'x'.join(map(str, dims['dst']))}")
        tags = {"src": settings.stag, "weights": settings.wtag, "dst": settings.dtag}
        distances = dict(zip(TENSORS, settings.strides, strict=False))
        types = {name: dtype.name for name, dtype in settings.types.items()}
        self.descs = {name: desc_of(dims[name], types[name], tags[name], distances.get(name, ())) for name in TENSORS}
        if settings.bia_dt != "undef":
            bias = tuple(n if settings.bia_mask >> d & 1 else 1 for d, n in enumerate(dims["dst"]))
            self.descs["bias"] = desc_of(bias, types["bias"], "abx")
        self.set_attributes(settings, dims, dict.fromkeys(TENSORS, len(dims["dst"]) - 1))
        self.desc = dnn.MatMul(**self.descs)
        self.takes = "src", "weights", "bias" if "bias" in self.descs else None, "dst"
        self.reduction = src[-1]
        self.flops = 2 * math.prod(dims["dst"]) * self.reduction

    def sums(self, x: Arrays) -> Sequence[Doubles]:
        return [product(x["src"], x["weights"])]

    def sizes(self, x: Arrays) -> Sequence[Doubles]:
        return [product_size(x["src"], x["weights"])]


def dst_dims(src: tuple[int, ...], weights: tuple[int, ...]) -> tuple[int, ...]:
    """Of the product; what does not fit is left to the description to complain about."""
    batch = (s if w == 1 else w for s, w in zip(src[:-2], weights[:-2], strict=False))
    return (*batch, *src[-2:-1], weights[-1])


DRIVER = Driver(
    "matmul",
    MatmulSettings(),
    {
        **product_options("layout of src: any (default), ab, ba, abc, ...",
                          "layout of weights: any (default: panels), ab, ba, Ba16b, ...", "layout of dst, as --stag",
                          "undef: no bias (default), or f32, s32, ..."),
        "attr-scales": scaled_options(("wei",))["attr-scales"],
        **zero_points_option(with_weights=True),
        "dt": option(types_of_matrices,
                     "data types of src, weights and dst: f32 (default), u8:s8:f32, f8_e4m3, f32:nf4:f32, ..."),
        "bia-mask": option(number(0), "dims that the bias has, as bits: 2 (default) is one a column"),
        "strides": option(strides(3), "of src, weights and dst, SRC:WEI:DST, each may be empty", show_strides),
    },
    lambda text: dims_problem(2, 3)(older.product(text)),
    MatmulWork,
    example="--mode=CP --wtag=any,ab --bia-dt=f32 --threads=1 --peer=onednn 16x1024:1024x1024",
    notation='16x1024:1024x4096_n"name"',
    bandwidth_bound=False,
)  # fmt: skip
