"""The plan of a softmax: kernels for dense rows, or for lanes side by side that are reduced over rows apart."""

from typing import Any

from asmdnn.generators.functions.postops import BinaryOp, EltwiseOp, PostOp
from asmdnn.generators.functions.softmax import SoftmaxSpec
from asmdnn.generators.functions.softmax_lanes import SoftmaxLanesSpec
from asmdnn.isa.elements import element_of, narrowing_level
from asmdnn.isa.vectors import f32_level, lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.planning.loops import MAX_STEP, Loop, cut_loop
from asmdnn.planning.move_tuning import SoftmaxTuning
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.chain import Chain, scaled_post_ops
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.reduction.along_axis import AlongAxis, Tensors, implementations_along
from asmdnn.primitives.shapes.formats import dense_like, like, of_type
from asmdnn.primitives.shapes.nests import Nest, lanes_in, read_nest, row_in, with_last
from asmdnn.primitives.shapes.row_calls import Calls, operands_along, row_calls, types_of, widest
from asmdnn.primitives.shapes.tensors import check_tensors
from asmdnn.primitives.softmax.description import SoftmaxForward
from asmdnn.records import dataclass
from asmdnn.types import DATA_TYPES, DataType, f32

SRC, DST = range(2)
NATIVE = ("src", "dst")

Spec = SoftmaxSpec | SoftmaxLanesSpec


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SoftmaxRequest(AlongAxis[Spec]):
    """What is asked of a softmax.  after: what is done to results in the end; stored_at: the level of code that stores
    them."""

    desc: SoftmaxForward
    after: Chain
    stored_at: str

    def arguments(self, tensors: Tensors) -> Tensors:
        return self.after.arguments(tensors)

    def axis_last(self) -> Tensors:
        dst = self.tensors["dst"]
        model = with_last(dst, (self.desc.axis,))
        return {
            name: of_type(model, tensor.dtype) if tensor.dims == dst.dims else dense_like(model, tensor)
            for name, tensor in self.tensors.items()
        }

    def cost(self, spec: Spec) -> int:
        return cost(spec, self.tuning.softmax)

    def nest(self, tensors: Tensors) -> Nest:
        """Raises Refused."""
        return read_nest(tuple(tensors.values()), tensors["dst"].dims, (self.desc.axis,), DST)

    def rows(self, tensors: Tensors) -> Calls[Spec]:
        """Rows along the axis.  Raises Refused."""
        nest = self.nest(tensors)
        axis = row_in(nest)
        calls: Calls[Spec] = []
        far = tensors["src"].size_bytes >= self.tuning.softmax.prefetched_bytes and tensors["src"].dtype == f32
        for box, some, outer in row_calls(nest, axis.extent, self.tuning.elementwise, widest(tensors)):
            calls.append((SoftmaxSpec(**self.fields(tensors, axis, some), prefetches=far), box, outer))
        return calls

    def lanes(self, tensors: Tensors) -> Calls[Spec]:
        """Vectors of a dense loop, each reduced along the axis.  Raises Refused."""
        nest = self.nest(tensors)
        lanes, axis = lanes_in(nest), nest.row
        if max(axis.strides) > MAX_STEP:
            raise Refused("neighbours along the axis are more than 2 GiB apart")
        calls: Calls[Spec] = []
        vector = lanes_of(self.isa)
        whole = max(1, self.tuning.elementwise.record_elements // axis.extent // vector) * vector
        for box, some in cut_loop(nest.box, lanes, whole):
            spec = SoftmaxLanesSpec(**self.fields(tensors, some, axis))
            calls.append((spec, box, tuple(loop for loop in box.loops if loop is not some)))
        return calls

    def fields(self, tensors: Tensors, row: Loop, rows: Loop) -> dict[str, Any]:
        """Those that both kernels have, of `rows` with the elements of `row`, which are dense."""
        types = types_of(tensors)
        strides_bytes = rows.strides_of(types)
        before, after = self.chains(tensors, row, rows)
        return {
            "isa": self.stored_at,
            "rows": rows.extent,
            "elements": row.extent,
            "src_row_bytes": strides_bytes[SRC],
            "dst_row_bytes": strides_bytes[DST],
            "before": before,
            "after": after,
            "log": self.desc.alg == "log",
            "types": (types[SRC].name, types[DST].name),
        }

    def chains(self, tensors: Tensors, row: Loop, rows: Loop) -> tuple[tuple[PostOp, ...], tuple[PostOp, ...]]:
        """What comes before and after, for a kernel with dense rows."""
        operands = operands_along(tensors, row, rows)
        scale, mask = self.desc.scale, self.desc.mask
        scaling = (EltwiseOp("linear", scale, 0.0, 1.0),) if scale != 1 else ()
        masking = (BinaryOp("add", operands["mask"]),) if mask is not None else ()
        return (*scaling, *masking), self.after.on_registers(operands)


def request_of(desc: SoftmaxForward, attr: Attr, engine: Engine) -> SoftmaxRequest:
    """Raises Refused, and InvalidArguments for post-ops that do not fit dst."""
    src = like(desc.dst, desc.src)
    dst = like(src, desc.dst)
    chain = scaled_post_ops(attr, {"src": src, "dst": dst})
    if chain.reads_dst:
        raise Refused("post-op sum is not implemented: dst holds exponentials meanwhile")
    masks = {} if desc.mask is None else {"mask": dense_like(dst, desc.mask) if desc.mask.is_any else desc.mask}
    passed = {"src": src, "dst": dst, **masks, **chain.operands(dst, DATA_TYPES.values())}
    check_tensors(passed, "dst", tuple(DATA_TYPES))
    tensors = {name: of_type(tensor, read_as(name, tensor)) for name, tensor in passed.items()}
    return SoftmaxRequest(
        desc=desc,
        passed=passed,
        tensors=tensors,
        after=chain,
        isa=f32_level(engine.isa),
        stored_at=narrowing_level(tensors["dst"].dtype.name, engine.isa),
        tuning=engine.tuning,
    )


def read_as(name: str, tensor: MemoryDesc) -> DataType:
    """The type that kernels take: src and dst as they are but for f8, which takes registers; of all else f32."""
    return tensor.dtype if name in NATIVE and element_of(tensor.dtype).converts_alone else f32


def cost(spec: Spec, tuning: SoftmaxTuning) -> int:
    """Expected cycles."""
    vectors = -(-spec.elements // lanes_of(spec.isa))
    row = vectors * tuning.vector_cycles
    if isinstance(spec, SoftmaxSpec):
        row += tuning.row_cycles // max(1, spec.held)
    return tuning.call_cycles + spec.rows * row


plans = implementations_along(request_of)
