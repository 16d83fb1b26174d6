"""The plan of a softmax: kernels for dense rows, or for lanes side by side that are reduced over rows apart."""

from collections.abc import Mapping

from asmdnn.generators.functions.postops import BinaryOp, EltwiseOp, PostOp
from asmdnn.generators.functions.softmax import SoftmaxSpec
from asmdnn.generators.functions.softmax_lanes import SoftmaxLanesSpec
from asmdnn.isa.elements import element_of
from asmdnn.isa.vectors import f32_level, lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.loops import MAX_STEP, Loop, cut_loop
from asmdnn.planning.phase import views
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refused
from asmdnn.planning.tuning import SoftmaxTuning, Tuning
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.chain import Chain, scaled_post_ops
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import implementations_of
from asmdnn.primitives.elementwise.schedule import check_tensors, operands_along, phases_of, types_of
from asmdnn.primitives.reorder.copies import WORD, between_reorders
from asmdnn.primitives.shapes.formats import dense_like, like, of_type
from asmdnn.primitives.shapes.nests import Calls, Nest, check_copied, lanes_in, read_nest, row_calls, row_in, with_last
from asmdnn.primitives.softmax.description import SoftmaxForward
from asmdnn.records import dataclass
from asmdnn.types import DATA_TYPES, DataType, f32

SRC, DST = range(2)
NATIVE = ("src", "dst")
ROWS, LANES = "rows", "lanes"  # the implementations

Spec = SoftmaxSpec | SoftmaxLanesSpec


@dataclass(frozen=True, slots=True, eq=False)
class SoftmaxRequest:
    """What is asked of a softmax.

    passed: its tensors as a caller passes them; tensors: of the types that kernels take.  after: what is done to
    results in the end.
    """

    desc: SoftmaxForward
    passed: Mapping[str, MemoryDesc]
    tensors: Mapping[str, MemoryDesc]
    after: Chain
    isa: str
    tuning: Tuning

    def planned(self, way: str, calls: Calls[Spec], tensors: Mapping[str, MemoryDesc]) -> Plan:
        """The plan of these calls, between reorders of tensors that are passed otherwise."""
        costs = {spec: cost(spec, self.tuning.softmax) for spec in dict.fromkeys(spec for spec, *_ in calls)}
        in_place = ("src",) if tensors["src"] == tensors["dst"] else ()
        sizes = [tensor.dtype.size_bytes for tensor in tensors.values()]
        phases = phases_of(calls, costs, views(tuple(tensors)), self.tuning.phases, sizes)
        tensors = self.after.arguments(tensors)
        plan = Plan(
            implementation=f"{way}:{self.isa}",
            phases=phases,
            tensors=tensors,
            constants={},
            scratch_bytes={},
            outputs=("dst",),
            in_place=in_place,
        )
        return between_reorders(plan, self.after.arguments(self.passed), self.tuning, isa=self.isa)

    def nest(self, tensors: Mapping[str, MemoryDesc]) -> Nest:
        """Raises Refused."""
        return read_nest(tuple(tensors.values()), tensors["dst"].dims, (self.desc.axis,), DST)

    def rows(self, tensors: Mapping[str, MemoryDesc]) -> Calls[Spec]:
        """Rows along the axis.  Raises Refused."""
        nest = self.nest(tensors)
        axis = row_in(nest)
        calls: Calls[Spec] = []
        for box, some, outer in row_calls(nest, axis.extent, self.tuning.elementwise):
            before, after = self.chains(tensors, axis, some)
            types = types_of(tensors)
            strides_bytes = some.strides_of(types)
            spec = SoftmaxSpec(
                isa=self.isa,
                rows=some.extent,
                elements=axis.extent,
                src_row_bytes=strides_bytes[SRC],
                dst_row_bytes=strides_bytes[DST],
                before=before,
                after=after,
                log=self.desc.alg == "log",
                types=(types[SRC].name, types[DST].name),
                prefetches=self.desc.src.size_bytes >= self.tuning.softmax.prefetched_bytes and types[SRC] == f32,
            )
            calls.append((spec, box, outer))
        return calls

    def lanes(self, tensors: Mapping[str, MemoryDesc]) -> Calls[Spec]:
        """Vectors of a dense loop, each reduced along the axis.  Raises Refused."""
        nest = self.nest(tensors)
        lanes, axis = lanes_in(nest), nest.row
        if max(axis.strides) > MAX_STEP:
            raise Refused("neighbours along the axis are more than 2 GiB apart")
        calls: Calls[Spec] = []
        vector = lanes_of(self.isa)
        whole = max(1, self.tuning.elementwise.record_elements // axis.extent // vector) * vector
        for box, some in cut_loop(nest.box, lanes, whole):
            before, after = self.chains(tensors, some, axis)
            types = types_of(tensors)
            strides_bytes = axis.strides_of(types)
            spec = SoftmaxLanesSpec(
                isa=self.isa,
                rows=axis.extent,
                elements=some.extent,
                src_row_bytes=strides_bytes[SRC],
                dst_row_bytes=strides_bytes[DST],
                before=before,
                after=after,
                log=self.desc.alg == "log",
                types=(types[SRC].name, types[DST].name),
            )
            calls.append((spec, box, tuple(loop for loop in box.loops if loop is not some)))
        return calls

    def chains(
        self, tensors: Mapping[str, MemoryDesc], row: Loop, rows: Loop
    ) -> tuple[tuple[PostOp, ...], tuple[PostOp, ...]]:
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
    passed = {"src": src, "dst": dst, **masks, **chain.operands(dst)}
    check_tensors(passed, "dst", tuple(DATA_TYPES))
    tensors = {name: of_type(tensor, read_as(name, tensor)) for name, tensor in passed.items()}
    return SoftmaxRequest(desc, passed, tensors, chain, f32_level(engine.isa), engine.tuning)


def read_as(name: str, tensor: MemoryDesc) -> DataType:
    """The type that kernels take: src and dst as they are but for f8, which takes registers; of all else f32."""
    return tensor.dtype if name in NATIVE and element_of(tensor.dtype).converts_alone else f32


def along_rows(request: SoftmaxRequest) -> Plan:
    if 0 in request.passed["dst"].dims:
        return Assembly(request.tuning, request.isa).plan(f"{ROWS}:{request.isa}", request.passed, ("dst",))
    return request.planned(ROWS, request.rows(request.tensors), request.tensors)


def across_lanes(request: SoftmaxRequest) -> Plan:
    return request.planned(LANES, request.lanes(request.tensors), request.tensors)


def along_copied_rows(request: SoftmaxRequest) -> Plan:
    """The axis becomes the last one."""
    check_copied(lambda: request.rows(request.tensors), lambda: request.lanes(request.tensors))
    dst = request.tensors["dst"]
    model = with_last(dst, (request.desc.axis,))
    tensors = {
        name: of_type(model, tensor.dtype) if tensor.dims == dst.dims else dense_like(model, tensor)
        for name, tensor in request.tensors.items()
    }
    return request.planned(ROWS, request.rows(tensors), tensors)


def cost(spec: Spec, tuning: SoftmaxTuning) -> int:
    """Expected cycles."""
    vectors = -(-spec.elements // lanes_of(spec.isa))
    row = vectors * tuning.vector_cycles
    if isinstance(spec, SoftmaxSpec):
        row += tuning.row_cycles // max(1, spec.held)
    return tuning.call_cycles + spec.rows * row


plans = implementations_of(
    request_of, {ROWS: along_rows, LANES: across_lanes, f"{WORD}+{ROWS}": along_copied_rows}, f32_level
)
