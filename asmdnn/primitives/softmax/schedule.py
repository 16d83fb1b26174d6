"""The plan of a softmax: kernels for dense rows, or for lanes side by side that are reduced over rows apart."""

from collections.abc import Mapping

from asmdnn.generators.functions.postops import BinaryOp, EltwiseOp, Operand, PostOp
from asmdnn.generators.functions.softmax import SoftmaxSpec
from asmdnn.generators.functions.softmax_lanes import SoftmaxLanesSpec
from asmdnn.isa.vectors import f32_level, lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import views
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.chain import Chain, post_ops_of
from asmdnn.primitives.elementwise.loops import Box, Loop
from asmdnn.primitives.elementwise.schedule import MAX_STEP, MOST_ROWS, check_tensors, cut_loop, phases_of
from asmdnn.primitives.engine import Engine
from asmdnn.primitives.formats import dense_like, like
from asmdnn.primitives.implementation import implementation
from asmdnn.primitives.nests import Nest, nest_of, with_last
from asmdnn.primitives.reorder.copies import between_reorders
from asmdnn.primitives.softmax.description import SoftmaxForward

SRC, DST = range(2)
RECORD_ELEMENTS = 4096
PREFETCHED_BYTES = 8 << 20  # a src so large comes from memory
CALL_CYCLES, ROW_CYCLES, VECTOR_CYCLES = 30, 40, 9

Spec = SoftmaxSpec | SoftmaxLanesSpec
Calls = list[tuple[Spec, Box, tuple[Loop, ...]]]


@implementation("softmax", f32_level)
def plan(desc: SoftmaxForward, attr: Attr, engine: Engine) -> Plan:
    """Plan a softmax.  Raises Refused, and InvalidArguments for post-ops that do not fit dst."""
    isa = f32_level(engine.isa)
    src = like(desc.dst, desc.src)
    dst, chain = like(src, desc.dst), post_ops_of(attr)
    if attr.quantizes:
        raise Refused("scales and zero points are not implemented")
    if chain.reads_dst:
        raise Refused("post-op sum is not implemented: dst holds exponentials meanwhile")
    masks = {} if desc.mask is None else {"mask": dense_like(dst, desc.mask) if desc.mask.is_any else desc.mask}
    passed = {"src": src, "dst": dst, **masks, **chain.operands(dst)}
    check_tensors(passed, "dst")
    name = f"softmax:{isa}"
    if 0 in dst.dims:
        return Assembly().plan(name, passed, ("dst",))
    request = Request(desc, chain, isa)
    calls = request.calls(passed)
    tensors: Mapping[str, MemoryDesc] = passed
    if calls is None:
        model = with_last(dst, (desc.axis,))
        tensors = {
            name: model if tensor.dims == dst.dims else dense_like(model, tensor) for name, tensor in passed.items()
        }
        calls = request.calls(tensors)
        assert calls is not None, "rows along the axis are dense"
    index = {spec: i for i, spec in enumerate(dict.fromkeys(spec for spec, *_ in calls))}
    in_place = ("src",) if tensors["src"] == tensors["dst"] else ()
    phases = phases_of(calls, index, views(tuple(tensors)), cost)
    return between_reorders(Plan(name, phases, tensors, {}, {}, ("dst",), in_place), passed)


class Request:
    """A softmax of tensors in whatever formats."""

    def __init__(self, desc: SoftmaxForward, after: Chain, isa: str) -> None:
        self.desc, self.after, self.isa = desc, after, isa

    def calls(self, tensors: Mapping[str, MemoryDesc]) -> Calls | None:
        """Kernels, and where they are called; None for formats that no kernel reads."""
        nest = nest_of(tuple(tensors.values()), tensors["dst"].dims, (self.desc.axis,), DST)
        if nest is None or len(nest.reduced) > 1:
            return None
        axis = nest.reduced[0] if nest.reduced else Loop(1, (1,) * len(tensors))
        if is_dense(axis):
            return self.rows(tuple(tensors), nest, axis)
        lanes = next((loop for loop in nest.kept if is_dense(loop)), None)
        return None if lanes is None or max(axis.strides) > MAX_STEP else self.lanes(tuple(tensors), nest, axis, lanes)

    def rows(self, names: tuple[str, ...], nest: Nest, axis: Loop) -> Calls:
        """Rows along the axis: the longest of the other loops is theirs, in parts of a record."""
        calls: Calls = []
        others = (loop for loop in nest.kept if max(loop.strides) <= MAX_STEP)
        rows = max(others, key=lambda x: x.extent, default=Loop(1, (0,) * len(names)))
        most = max(1, min(MOST_ROWS, RECORD_ELEMENTS // axis.extent))
        for box, some in cut_loop(nest.box, rows, most):
            before, after = self.chains(names, axis, some)
            spec = SoftmaxSpec(
                self.isa, some.extent, axis.extent, 4 * some.strides[SRC], 4 * some.strides[DST], before, after,
                self.desc.alg == "log", self.desc.src.size_bytes >= PREFETCHED_BYTES,
            )  # fmt: skip
            calls.append((spec, box, tuple(loop for loop in box.loops if loop is not some)))
        return calls

    def lanes(self, names: tuple[str, ...], nest: Nest, axis: Loop, lanes: Loop) -> Calls:
        """Vectors of a dense loop, each reduced along the axis."""
        calls: Calls = []
        whole = max(1, RECORD_ELEMENTS // axis.extent // lanes_of(self.isa)) * lanes_of(self.isa)
        for box, some in cut_loop(nest.box, lanes, whole):
            before, after = self.chains(names, some, axis)
            spec = SoftmaxLanesSpec(
                self.isa, axis.extent, some.extent, 4 * axis.strides[SRC], 4 * axis.strides[DST], before, after,
                self.desc.alg == "log",
            )  # fmt: skip
            calls.append((spec, box, tuple(loop for loop in box.loops if loop is not some)))
        return calls

    def chains(self, names: tuple[str, ...], row: Loop, rows: Loop) -> tuple[tuple[PostOp, ...], tuple[PostOp, ...]]:
        """What comes before and after, for a kernel with dense rows."""
        operands = {
            name: Operand(a, 4 * rows.strides[a], 0, row.strides[a] == 0 and row.extent > 1)
            for a, name in enumerate(names)
        }
        scale, mask = self.desc.scale, self.desc.mask
        scaling = (EltwiseOp("linear", scale, 0.0, 1.0),) if scale != 1 else ()
        masking = (BinaryOp("add", operands["mask"]),) if mask is not None else ()
        return (*scaling, *masking), self.after.on_registers(operands)


def is_dense(loop: Loop) -> bool:
    """In src and dst; other tensors move along with them, or not at all."""
    return loop.strides[SRC] == loop.strides[DST] == 1 and max(loop.strides) == 1


def cost(spec: Spec) -> int:
    """Expected cycles."""
    vectors = -(-spec.elements // lanes_of(spec.isa))
    per_row = (
        ROW_CYCLES // max(1, spec.held) + vectors * VECTOR_CYCLES
        if isinstance(spec, SoftmaxSpec)
        else vectors * VECTOR_CYCLES
    )
    return CALL_CYCLES + spec.rows * per_row
