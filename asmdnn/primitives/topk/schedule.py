"""The plan of the k best: kernels for dense rows, or for lanes side by side that are searched down rows apart."""

from collections.abc import Mapping

from asmdnn.generators.functions.topk import TopKSpec
from asmdnn.generators.functions.topk_lists import Order
from asmdnn.isa.vectors import f32_level, lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.memory.tags import tag_of
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.loops import Loop, cut_loop
from asmdnn.planning.phase import views
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refused
from asmdnn.planning.tuning import TopKTuning, Tuning
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.elementwise.schedule import MAX_STEP, phases_of
from asmdnn.primitives.engine import Engine
from asmdnn.primitives.formats import of_type, row_major
from asmdnn.primitives.implementation import implementation
from asmdnn.primitives.nests import Calls, Nest, is_dense, nest_of, row_calls, with_last, without_axis
from asmdnn.primitives.reorder.copies import between_reorders
from asmdnn.primitives.topk.description import TopKForward
from asmdnn.types import bf16, f16, f32, s8, u8

NAME = "topk"
SRC, DST = range(2)
TYPES = (f32, bf16, f16, s8, u8)  # of src and values: f32 has all their numbers
MOST_K = 32  # levels of lists, whose code is unrolled


@implementation(NAME, f32_level)
def plan(desc: TopKForward, attr: Attr, engine: Engine) -> Plan:
    """Plan a top-k, arg-max or arg-min.  Raises Refused."""
    isa, tuning = f32_level(engine.isa), engine.tuning
    if attr.post_ops or attr.quantizes:
        raise Refused("post-ops, scales and zero points are not implemented")
    if desc.k > MOST_K:
        raise Refused(f"k is {desc.k}, at most {MOST_K} is implemented: sort the axis with numpy.argsort instead")
    src = row_major(desc.src.dims, desc.src) if desc.src.is_any else desc.src
    results = {"dst": desc.dst, **({} if desc.values is None else {"values": desc.values})}
    passed = {"src": src} | {name: in_order_of(src, x, desc.axis) if x.is_any else x for name, x in results.items()}
    check_tensors(passed)
    name, outputs = f"{NAME}:{isa}", tuple(results)
    if 0 in src.dims:
        return Assembly(tuning).plan(name, passed, outputs)
    tensors: Mapping[str, MemoryDesc] = {n: x if n == "dst" else of_type(x, f32) for n, x in passed.items()}
    calls = calls_of(desc, tensors, isa, tuning)
    if calls is None:
        rows = with_last(tensors["src"], (desc.axis,))
        tensors = {name: rows if name == "src" else in_order_of(rows, x, desc.axis) for name, x in tensors.items()}
        calls = calls_of(desc, tensors, isa, tuning)
        assert calls is not None, "rows along the axis are dense"
    costs = {spec: cost(spec, tuning.topk) for spec in dict.fromkeys(spec for spec, *_ in calls)}
    phases = phases_of(calls, costs, views(tuple(tensors)), tuning.phases)
    return between_reorders(Plan(name, phases, tensors, {}, {}, outputs), passed, tuning)


def in_order_of(src: MemoryDesc, desc: MemoryDesc, axis: int) -> MemoryDesc:
    """A dense format with the dims in the order of src's memory, and in its blocks but for the axis."""
    order = sorted(range(src.ndims), key=lambda dim: (-src.strides[dim], dim))
    return MemoryDesc(desc.dims, desc.dtype, tag_of(tuple(order), tuple(b for b in src.inner_blocks if b[0] != axis)))


def check_tensors(tensors: Mapping[str, MemoryDesc]) -> None:
    """Raise Refused unless these tensors can be addressed."""
    for name, desc in tensors.items():
        if name != "dst" and desc.dtype not in TYPES:
            raise Refused(f"{name} is {desc.dtype}, only {', '.join(x.name for x in TYPES)} is implemented")
        if name != "src" and desc.may_overlap:
            raise Refused(f"elements of {name} overlap")


def calls_of(desc: TopKForward, tensors: Mapping[str, MemoryDesc], isa: str, tuning: Tuning) -> Calls[TopKSpec] | None:
    """Kernels, and where they are called; None for formats that no kernel reads."""
    found = [without_axis(tensor, desc.axis) for tensor in tensors.values()]
    kept = [tensor for tensor in found if tensor is not None]
    steps = [tensor.strides[desc.axis] for tensor in tensors.values()]
    if len(kept) < len(found) or len(set(steps[DST:])) > 1:
        return None
    nest = nest_of(kept, kept[SRC].dims, (), SRC)
    if nest is None or any(len(set(loop.strides[DST:])) > 1 for loop in nest.kept):
        return None
    if steps[SRC] == 1 or desc.src.dims[desc.axis] == 1:
        return along_rows(desc, nest, steps[DST], isa, tuning)
    lanes = next((loop for loop in nest.kept if is_dense(loop)), None)
    return None if lanes is None or max(steps) > MAX_STEP else down_rows(desc, nest, lanes, steps, isa, tuning)


def along_rows(desc: TopKForward, nest: Nest, step: int, isa: str, tuning: Tuning) -> Calls[TopKSpec]:
    """Rows along the axis."""
    calls: Calls[TopKSpec] = []
    for box, some, outer in row_calls(nest, desc.src.dims[desc.axis], tuning.elementwise):
        src_row_bytes, dst_row_bytes, *_ = some.strides_bytes(f32)
        strides = (src_row_bytes, dst_row_bytes, step * f32.size_bytes)
        calls.append((spec_of(desc, isa, "rows", (some.extent, desc.src.dims[desc.axis]), strides), box, outer))
    return calls


def down_rows(
    desc: TopKForward, nest: Nest, lanes: Loop, steps: list[int], isa: str, tuning: Tuning
) -> Calls[TopKSpec]:
    """Vectors of a dense loop, each searched down the axis."""
    calls: Calls[TopKSpec] = []
    rows, vector = desc.src.dims[desc.axis], lanes_of(isa)
    whole = max(tuning.topk.lanes, tuning.elementwise.record_elements // rows // vector * vector)
    for box, some in cut_loop(nest.box, lanes, whole):
        strides = (steps[SRC] * f32.size_bytes, steps[DST] * f32.size_bytes, f32.size_bytes)
        spec = spec_of(desc, isa, "lanes", (rows, some.extent), strides)
        calls.append((spec, box, tuple(loop for loop in box.loops if loop is not some)))
    return calls


def spec_of(desc: TopKForward, isa: str, along: str, size: tuple[int, int], strides: tuple[int, int, int]) -> TopKSpec:
    order = Order(desc.alg == "max", desc.select_last, desc.nan_last)
    rows, elements = size
    src_row_bytes, dst_row_bytes, dst_step_bytes = strides
    return TopKSpec(
        isa=isa,
        along=along,
        k=desc.k,
        rows=rows,
        elements=elements,
        src_row_bytes=src_row_bytes,
        dst_row_bytes=dst_row_bytes,
        dst_step_bytes=dst_step_bytes,
        order=order,
        has_values=desc.values is not None,
    )


def cost(spec: TopKSpec, tuning: TopKTuning) -> int:
    """Expected cycles."""
    vectors = -(-spec.elements // lanes_of(spec.isa))
    each = tuning.vector_cycles + (tuning.level_cycles * spec.k if spec.k > 1 else 0)
    ends = spec.k * tuning.result_cycles * (spec.rows if spec.along == "rows" else vectors)
    return tuning.call_cycles + spec.rows * vectors * each + ends
