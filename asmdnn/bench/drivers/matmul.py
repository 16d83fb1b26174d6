"""`--matmul`: matrix products of all types, with batches, bias, layouts, scales, zero points and post-ops."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import asmdnn as dnn
from asmdnn.bench import chains, older
from asmdnn.bench.attributes import ScaledSettings, numbers_of, scaled_options, scales_of, zero_points_option
from asmdnn.bench.dims import DimsProblem, desc_of, dims_problem
from asmdnn.bench.driver import Array, Case, Driver, PeerSide, TensorData, Work
from asmdnn.bench.judge import Answer
from asmdnn.bench.products import Filler, answer_of, scaled_product
from asmdnn.bench.quantization import Quantity
from asmdnn.bench.typed_words import any_bias_type, older_types_of_tensors, typed, types_of_tensors
from asmdnn.bench.words import (
    Option,
    Strides,
    number,
    show_strides,
    strides,
    tag,
)
from asmdnn.errors import InvalidArguments
from asmdnn.types import DATA_TYPES, DataType

if TYPE_CHECKING:
    from asmdnn.bench.peers.onednn import OnednnPrimitive

ARGUMENTS = {"src": 1, "weights": 33, "bias": 41, "dst": 17}  # oneDNN's numbers
ROW = 2  # benchdnn's default: a bias of its own for each column of a matrix


@dataclass(frozen=True, slots=True)
class MatmulSettings(ScaledSettings):
    """bia_mask: bit d says that the bias has dim d of dst, and not 1."""

    dt: str = "f32"
    stag: str = "any"
    wtag: str = "any"
    dtag: str = "any"
    bia_dt: str = "undef"
    bia_mask: int = ROW
    strides: Strides = ()
    zero_points: tuple[Quantity, ...] = ()

    @property
    def types(self) -> dict[str, DataType]:
        """Of the tensors, by their names."""
        bias = "f32" if self.bia_dt == "undef" else self.bia_dt
        return {**typed(self.dt), "bias": DATA_TYPES[bias]}


MatmulCase = Case[MatmulSettings, DimsProblem]


class MatmulWork(Work[TensorData]):
    def __init__(self, case: MatmulCase) -> None:
        self.settings = settings = case.settings
        src, weights, *given = case.problem.tensors
        self.dims = {"src": src, "weights": weights, "dst": dst_dims(src, weights)}
        if given not in ([], [self.dims["dst"]]):
            raise InvalidArguments(f"dst of {case.problem} has the dims {'x'.join(map(str, self.dims['dst']))}")
        tags = {"src": settings.stag, "weights": settings.wtag, "dst": settings.dtag}
        distances = dict(zip(tags, settings.strides, strict=False))
        types = {name: dtype.name for name, dtype in settings.types.items()}
        self.descs = {name: desc_of(self.dims[name], types[name], tags[name], distances.get(name, ())) for name in tags}
        if settings.bia_dt != "undef":
            bias = tuple(n if settings.bia_mask >> d & 1 else 1 for d, n in enumerate(self.dims["dst"]))
            self.dims["bias"], self.descs["bias"] = bias, desc_of(bias, types["bias"], "abx")
        columns = len(self.dims["dst"]) - 1
        self.scales = scales_of(settings.scales, self.dims, dict.fromkeys(("src", "weights", "dst"), columns))
        self.numbers, points = numbers_of(settings.types, settings.zero_points, self.dims, settings.fpmath)
        self.attr = settings.attr(self.dims["dst"], channels=columns, scales=self.scales.masks, zero_points=points)
        self.exactness, self.peer_slack = chains.exactness(self.attr), chains.peer_slack(self.attr)
        self.reduction = src[-1]
        self.flops = 2 * math.prod(self.dims["dst"]) * self.reduction

    @property
    def argument_bytes(self) -> int:
        return sum(math.prod(desc.dims) * desc.dtype.size_bytes for desc in self.descs.values())

    def describe(self) -> tuple[dnn.MatMul, dnn.Attr]:
        return dnn.MatMul(**self.descs), self.attr

    def data(self, exact: bool) -> TensorData:
        fill = Filler(self.reduction, exact, self.numbers)
        src, weights = fill.factors(self.dims["src"], self.dims["weights"])
        arrays = {"src": src, "weights": weights}
        if "bias" in self.dims:
            arrays["bias"] = fill.values(self.dims["bias"], name="bias")
        arrays["dst"] = fill.dst(self.dims["dst"], self.attr.reads_dst())
        arrays |= chains.operands(self.attr, exact) | dict(self.scales.arrays)
        return TensorData(self.numbers.stored(arrays), exact)

    def answer(self, data: TensorData) -> Answer:
        arrays = self.numbers.read(data.arrays)
        src = self.numbers.centred(arrays, "src")
        sums = scaled_product(src, arrays["weights"], arrays.get("bias"), self.scales.factor)
        divisor = self.scales.divisor
        return answer_of(sums, self.reduction, data.exact, self.attr, arrays, divisor, self.numbers)

    def tolerance(self, data: TensorData) -> Array | float:
        return self.answer(data).tolerance

    def peer(self, isa: str, threads: int) -> PeerSide:
        from asmdnn.bench.peers.onednn import OnednnPrimitive, Tensor
        from asmdnn.bench.peers.onednn_attributes import quantities_of, tensors_of

        tensors = {name: Tensor(ARGUMENTS[name], desc) for name, desc in self.descs.items()}
        tensors |= tensors_of(self.attr) | quantities_of({**self.scales.arrays, **self.numbers.zero_points})
        return OnednnPrimitive(self._of_onednn, tensors, isa, threads)

    def _of_onednn(self, peer: "OnednnPrimitive") -> Any:
        from asmdnn.bench.peers.onednn_attributes import attributes

        descs = peer.descs
        return peer.describe(
            peer.lib.dnnl_matmul_primitive_desc_create,
            *(descs["src"], descs["weights"], descs.get("bias", peer.null), descs["dst"]),
            attributes(peer, self.attr),
        )


def dst_dims(src: tuple[int, ...], weights: tuple[int, ...]) -> tuple[int, ...]:
    """Of the product; what does not fit is left to the description to complain about."""
    batch = (s if w == 1 else w for s, w in zip(src[:-2], weights[:-2], strict=False))
    return (*batch, *src[-2:-1], weights[-1])


def title(problem: DimsProblem) -> str:
    return problem.name or ":".join("x".join(map(str, dims)) for dims in problem.tensors)


DRIVER = Driver(
    "matmul",
    MatmulSettings(),
    {
        "dt": Option("dt", types_of_tensors, "data types of src, weights and dst: f32 (default), u8:s8:f32, ...", True),
        "cfg": Option("dt", older_types_of_tensors, "the same in older words", True, describes=False),
        "stag": Option("stag", tag, "layout of src: any (default), ab, ba, abc, ...", True),
        "wtag": Option("wtag", tag, "layout of weights: any (default: panels), ab, ba, Ba16b, ...", True),
        "dtag": Option("dtag", tag, "layout of dst, as --stag", True),
        "bia_dt": Option("bia_dt", any_bias_type, "undef: no bias (default), or f32, s32, ...", True),
        "bia_mask": Option("bia_mask", number(0), "dims that the bias has, as bits: 2 (default) is one a column", True),
        "strides": Option("strides", strides(3), "of src, weights and dst, SRC:WEI:DST, each may be empty", True,
                          show_strides),
        **scaled_options(),
        **zero_points_option(),
    },
    lambda text: dims_problem(2, 3)(older.product(text)),
    MatmulWork,
    example="--mode=CP --wtag=any,ab --bia_dt=f32 --threads=1 --peer=onednn 16x1024:1024x1024",
    notation='16x1024:1024x4096_n"name"',
    bandwidth_bound=False,
    title=lambda case: title(case.problem),
)  # fmt: skip
