"""`--ip`: inner products of all types forward, of f32 backward."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

import asmdnn as dnn
from asmdnn.bench import chains
from asmdnn.bench.attributes import WeightsSettings, numbers_of, scaled_options, scales_of, zero_points_option
from asmdnn.bench.dims import desc_of
from asmdnn.bench.driver import Array, Case, Driver, PeerSide, TensorData, Work
from asmdnn.bench.ip_problem import IpProblem, ip_problem
from asmdnn.bench.judge import Answer
from asmdnn.bench.products import Filler, answer_of, product, scaled_product
from asmdnn.bench.quantization import Quantity
from asmdnn.bench.typed_words import any_bias_type, older_types_of_tensors, typed, types_of_tensors
from asmdnn.bench.words import IMAGES, Option, direction, tag
from asmdnn.primitives.products.inner_product import InnerProduct
from asmdnn.types import DATA_TYPES, DataType

if TYPE_CHECKING:
    from asmdnn.bench.peers.onednn import OnednnPrimitive

FORWARD = {"FWD_B": 64, "FWD_D": 64, "FWD_I": 96}  # oneDNN's prop kinds
FORWARD_TRAINING = 64
ARGUMENTS = {"src": 1, "weights": 33, "bias": 41, "dst": 17}  # oneDNN's numbers
GRADIENTS = {"src": 129, "weights": 161, "bias": 169, "dst": 145}
WRITTEN = {"BWD_D": ("src",), "BWD_W": ("weights",), "BWD_WB": ("weights", "bias")}


@dataclass(frozen=True, slots=True)
class IpSettings(WeightsSettings):
    bia_dt: str = "undef"
    zero_points: tuple[Quantity, ...] = ()

    @property
    def types(self) -> dict[str, DataType]:
        """Of the tensors, by their names."""
        bias = "f32" if self.bia_dt == "undef" else self.bia_dt
        return {**typed(self.dt), "bias": DATA_TYPES[bias]}

    @property
    def has_bias(self) -> bool:
        return self.dir in ("FWD_B", "BWD_WB") or (self.bia_dt != "undef" and self.dir in FORWARD)


IpCase = Case[IpSettings, IpProblem]


class IpWork(Work[TensorData]):
    """Tensors by role: src, weights, bias, dst.  `written` are those whose gradients a backward pass computes."""

    def __init__(self, case: IpCase) -> None:
        self.settings, self.problem = case.settings, case.problem
        self.written = WRITTEN.get(self.settings.dir, ())
        settings, p = self.settings, self.problem
        self.dims = {"src": p.src_dims, "weights": p.weights_dims, "bias": (p.oc,), "dst": p.dst_dims}
        tags = {"src": settings.stag, "weights": settings.wtag, "bias": "a", "dst": settings.dtag}
        used = [role for role in self.dims if role != "bias" or settings.has_bias]
        self.descs = {role: desc_of(self.dims[role], settings.types[role].name, tags[role]) for role in used}
        self.scales = scales_of(settings.scales, self.dims, {"src": 1, "weights": 0, "dst": 1})
        self.numbers, points = numbers_of(settings.types, settings.zero_points, self.dims, settings.fpmath)
        self.attr = settings.attr(p.dst_dims, scales=self.scales.masks, zero_points=points)
        self.exactness, self.peer_slack = chains.exactness(self.attr), chains.peer_slack(self.attr)
        self.reduction = {"src": p.oc, "weights": p.mb}.get((self.written or ("dst",))[0], p.inputs)
        self.flops = 2 * p.mb * p.oc * p.inputs

    @property
    def argument_bytes(self) -> int:
        return sum(int(np.prod(desc.dims)) * desc.dtype.size_bytes for desc in self.descs.values())

    def name(self, role: str) -> str:
        """Of the argument: what is written backward is a gradient, and so is dst."""
        return f"diff_{role}" if self.written and (role in self.written or role == "dst") else role

    def describe(self) -> tuple[InnerProduct, dnn.Attr]:
        tensors = {self.name(role): desc for role, desc in self.descs.items()}
        if not self.written:
            training = self.settings.dir != "FWD_I"
            kind = dnn.PropKind.forward_training if training else dnn.PropKind.forward_inference
            return dnn.InnerProductForward(**tensors, prop_kind=kind), self.attr
        if "src" in self.written:
            return dnn.InnerProductBackwardData(**tensors), self.attr
        return dnn.InnerProductBackwardWeights(**tensors), self.attr

    def data(self, exact: bool) -> TensorData:
        fill = Filler(self.reduction, exact, self.numbers)
        written = self.written or ("dst",)
        read = [role for role in self.descs if role not in written and role != "bias"]
        factors = fill.factors(*(self.dims[role] for role in read))
        arrays = {self.name(role): array for role, array in zip(read, factors, strict=True)}
        if "bias" in self.descs and "bias" not in written:
            arrays["bias"] = fill.values(self.dims["bias"], name="bias")
        arrays |= {self.name(role): fill.dst(self.dims[role], self.attr.reads_dst()) for role in written}
        arrays |= chains.operands(self.attr, exact) | dict(self.scales.arrays)
        return TensorData(self.numbers.stored(arrays), exact)

    def answer(self, data: TensorData) -> Answer:
        written = self.written or ("dst",)
        flat = {role: self._flat(data, role) for role in self.descs if role not in written}
        if self.written:
            return self._gradients(flat, data.exact)
        bias = flat["bias"].T if "bias" in flat else None
        src, arrays = self.numbers.centred(flat, "src"), self.numbers.read(data.arrays)
        sums = scaled_product(src, flat["weights"].T, bias, self.scales.factor)
        divisor = self.scales.divisor
        return answer_of(sums, self.reduction, data.exact, self.attr, arrays, divisor, self.numbers)

    def _gradients(self, flat: dict[str, Array], exact: bool) -> Answer:
        if "src" in self.written:
            values, size = product(flat["dst"], flat["weights"])
            dims = self.dims["src"]
            return answer_of((values.reshape(dims), size.reshape(dims)), self.reduction, exact)
        values, size = product(flat["dst"].T, flat["src"])
        if "bias" not in self.written:
            dims = self.dims["weights"]
            return answer_of((values.reshape(dims), size.reshape(dims)), self.reduction, exact)
        sums, sizes = flat["dst"].sum(axis=0, dtype=np.float64), np.abs(flat["dst"]).sum(axis=0, dtype=np.float64)
        both = [np.concatenate((first.ravel(), second)) for first, second in ((values, sums), (size, sizes))]
        return answer_of((both[0], both[1]), self.reduction, exact)

    def _flat(self, data: TensorData, role: str) -> Array:
        """As a matrix, a row an image or an output channel."""
        array = self.numbers.read({role: data.arrays[self.name(role)]})[role]
        return array.reshape(len(array), -1)

    def tolerance(self, data: TensorData) -> Array | float:
        return self.answer(data).tolerance

    def peer(self, isa: str, threads: int) -> PeerSide:
        from asmdnn.bench.peers.onednn import OnednnPrimitive, Tensor
        from asmdnn.bench.peers.onednn_attributes import quantities_of, tensors_of

        def number_of(role: str) -> int:
            return (ARGUMENTS if self.name(role) == role else GRADIENTS)[role]

        tensors = {self.name(role): Tensor(number_of(role), desc) for role, desc in self.descs.items()}
        tensors |= tensors_of(self.attr) | quantities_of({**self.scales.arrays, **self.numbers.zero_points})
        results = tuple(self.name(role) for role in self.written or ("dst",))
        return OnednnPrimitive(self._of_onednn, tensors, isa, threads, results)

    def _of_onednn(self, peer: "OnednnPrimitive") -> Any:
        from asmdnn.bench.peers.onednn_attributes import attributes

        src, weights, dst = (peer.descs[self.name(role)] for role in ("src", "weights", "dst"))
        bias = peer.descs.get(self.name("bias"), peer.null)
        attributes = attributes(peer, self.attr)
        create, kind = peer.lib.dnnl_inner_product_forward_primitive_desc_create, FORWARD.get(self.settings.dir)
        if not self.written:
            return peer.describe(create, kind, src, weights, bias, dst, attributes)
        forward = peer.describe(create, FORWARD_TRAINING, src, weights, bias, dst, peer.null)
        if "src" in self.written:
            backward = peer.lib.dnnl_inner_product_backward_data_primitive_desc_create
            return peer.describe(backward, src, weights, dst, forward, attributes)
        backward = peer.lib.dnnl_inner_product_backward_weights_primitive_desc_create
        return peer.describe(backward, src, weights, bias, dst, forward, attributes)


def _completed(settings: IpSettings, problem: IpProblem) -> tuple[IpSettings, IpProblem]:
    return replace(settings, mb=0), replace(problem, mb=settings.mb or problem.mb)


DRIVER = Driver(
    "ip",
    IpSettings(),
    {
        "dir": Option("dir", direction(*FORWARD, *WRITTEN),
                      "FWD_B with bias (default), FWD_D, FWD_I; BWD_D data, BWD_W weights, BWD_WB and bias", True),
        "dt": Option("dt", types_of_tensors, "data types of src, weights and dst: f32 (default), u8:s8:f32, ...", True),
        "cfg": Option("dt", older_types_of_tensors, "the same in older words", True, describes=False),
        "bia-dt": Option("bia_dt", any_bias_type, "f32, s32, ...: a bias in every forward direction; undef (default)",
                         True),
        "stag": Option("stag", tag, "layout of src or diff_src: any (default), ab, abcd, acdb, aBcd8b, ...", True),
        "wtag": Option("wtag", tag, "layout of weights or diff_weights: any (default), ab, ba, ...", True),
        "dtag": Option("dtag", tag, "layout of dst or diff_dst: any (default), ab, ba", True),
        **scaled_options(),
        **zero_points_option(),
        "mb": IMAGES,
    },
    ip_problem,
    IpWork,
    example="--mode=CP --dir=FWD_B,BWD_D,BWD_WB --threads=1 --peer=onednn mb16ic1024oc1000",
    notation='mb16ic256ih7oc1000n"name"',
    bandwidth_bound=False,
    completed=_completed,
)  # fmt: skip
