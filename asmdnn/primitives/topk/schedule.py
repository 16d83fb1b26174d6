"""The plans of the k best: lists of dense rows, or of lanes side by side that are searched down rows apart; or rows are
sorted."""

from collections.abc import Callable
from typing import Final

from asmdnn.generators.functions.topk import TopKSpec
from asmdnn.generators.functions.topk_lists import Order
from asmdnn.generators.functions.topk_sorted import SortedTopKSpec
from asmdnn.isa.lines import MAX_OFFSET
from asmdnn.isa.vectors import NARROWEST, f32_level, lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.memory.tags import tag_of
from asmdnn.planning.loops import MAX_STEP, cut_loop
from asmdnn.planning.move_tuning import TopKTuning
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import Attr, refuse_attr
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import implementations_of
from asmdnn.primitives.reduction.along_axis import (
    LANES,
    ROWS,
    AlongAxis,
    Tensors,
    across_lanes,
    along_copied_rows,
    along_rows,
    results,
)
from asmdnn.primitives.reorder.copies import WORD, between_reorders
from asmdnn.primitives.shapes.formats import of_type, row_major
from asmdnn.primitives.shapes.nests import Nest, check_copied, is_dense, read_nest, with_last, without_axis
from asmdnn.primitives.shapes.row_calls import Calls, check_row, row_calls
from asmdnn.primitives.topk.by_sorting import phase_of_rows, sizes_of
from asmdnn.primitives.topk.description import TopKForward
from asmdnn.records import dataclass
from asmdnn.types import FLOATS, f32, s8, u8

SRC, DST = range(2)
TYPES = (*FLOATS, s8, u8)  # of src and values: f32 has all their numbers
SORTED = "sorted"  # an implementation
STATE = "state"  # the memory of a row that is sorted, of each thread


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TopKRequest(AlongAxis[TopKSpec]):
    """What is asked of a top-k."""

    desc: TopKForward

    def axis_last(self) -> Tensors:
        src, axis = with_last(self.tensors["src"], (self.desc.axis,)), self.desc.axis
        return {name: src if name == "src" else in_order_of(src, x, axis) for name, x in self.tensors.items()}

    def cost(self, spec: TopKSpec) -> int:
        return cost(spec, self.tuning.topk)

    def steps(self, tensors: Tensors) -> list[int]:
        """Of every tensor along the axis.  Raises Refused where results have several."""
        found = [tensor.strides[self.desc.axis] for tensor in tensors.values()]
        if len(set(found[DST:])) > 1:
            raise Refused("dst and values have different formats")
        return found

    def nest(self, tensors: Tensors) -> Nest:
        """Of the other dims.  Raises Refused."""
        found = [without_axis(tensor, self.desc.axis) for tensor in tensors.values()]
        kept = [tensor for tensor in found if tensor is not None]
        if len(kept) < len(found):
            raise Refused("the axis is in blocks")
        nest = read_nest(kept, kept[SRC].dims, (), SRC)
        if any(len(set(loop.strides[DST:])) > 1 for loop in nest.kept):
            raise Refused("dst and values have different formats")
        return nest

    def is_dense(self, tensors: Tensors) -> bool:
        """Whether src's elements along the axis touch."""
        return tensors["src"].strides[self.desc.axis] == 1 or tensors["src"].dims[self.desc.axis] == 1

    def rows(self, tensors: Tensors) -> Calls[TopKSpec]:
        """Rows along the axis.  Raises Refused."""
        desc, step, nest = self.desc, self.steps(tensors)[DST], self.nest(tensors)
        if not self.is_dense(tensors):
            raise Refused("elements along the axis do not lie side by side")
        if desc.k > (most := self.most_listed):
            raise Refused(f"k is {desc.k}, rows have lists up to {most}")
        if desc.k * step * f32.size_bytes > MAX_OFFSET:
            raise Refused("results of a row are more than 2 GiB apart")
        calls: Calls[TopKSpec] = []
        for box, some, outer in row_calls(nest, desc.src.dims[desc.axis], self.tuning.elementwise):
            src_row_bytes, dst_row_bytes, *_ = some.strides_bytes(f32)
            strides = (src_row_bytes, dst_row_bytes, step * f32.size_bytes)
            size = (some.extent, desc.src.dims[desc.axis])
            calls.append((spec_of(desc, self.isa_of_rows, "rows", size, strides), box, outer))
        return calls

    @property
    def most_listed(self) -> int:
        """Results of a row that a list has, at most: longer ones are sorted."""
        tuning = self.tuning.topk
        is_short = self.desc.src.dims[self.desc.axis] <= tuning.listed_elements
        return tuning.most_listed if is_short else tuning.most_listed_long

    @property
    def isa_of_rows(self) -> str:
        """Of kernels of dense rows: the lower level for short ones."""
        tuning = self.tuning.topk
        longest = tuning.narrow_elements if self.desc.k > 1 else tuning.narrow_largest
        return NARROWEST if self.desc.src.dims[self.desc.axis] <= longest else self.isa

    def lanes(self, tensors: Tensors) -> Calls[TopKSpec]:
        """Vectors of a dense loop, each searched down the axis.  Raises Refused."""
        desc, steps, nest = self.desc, self.steps(tensors), self.nest(tensors)
        if self.is_dense(tensors):
            raise Refused("elements along the axis lie side by side")
        if desc.k > self.tuning.topk.most_listed_lanes:
            raise Refused(f"k is {desc.k}, lanes have lists up to {self.tuning.topk.most_listed_lanes}")
        lanes = next((loop for loop in nest.kept if is_dense(loop)), None)
        if lanes is None:
            raise Refused("no elements beside the axis lie side by side")
        if max(steps) > MAX_STEP:
            raise Refused("neighbours along the axis are more than 2 GiB apart")
        calls: Calls[TopKSpec] = []
        rows, vector = desc.src.dims[desc.axis], lanes_of(self.isa)
        whole = max(self.tuning.topk.lanes, self.tuning.elementwise.record_elements // rows // vector * vector)
        for box, some in cut_loop(nest.box, lanes, whole):
            strides = (steps[SRC] * f32.size_bytes, steps[DST] * f32.size_bytes, f32.size_bytes)
            spec = spec_of(desc, self.isa, "lanes", (rows, some.extent), strides)
            calls.append((spec, box, tuple(loop for loop in box.loops if loop is not some)))
        return calls

    def sorted(self, tensors: Tensors) -> Plan:
        """Every row along the axis is sorted.  Raises Refused."""
        desc, nest = self.desc, self.nest(tensors)
        if not self.is_dense(tensors):
            raise Refused("elements along the axis do not lie side by side")
        check_row(desc.src.dims[desc.axis])
        sizes = sizes_of(desc.src.dims[desc.axis], desc.k)
        spec = SortedTopKSpec(
            isa=self.isa,
            call="whole",
            k=desc.k,
            size=sizes.size,
            dst_step_bytes=f32.size_bytes * self.steps(tensors)[DST],
            order=order_of(desc),
            has_values=desc.values is not None,
        )
        plan = Plan(
            implementation=f"{SORTED}:{self.isa}",
            phases=(phase_of_rows(sizes, spec, nest, self.tuning.topk),),
            tensors=tensors,
            constants={},
            scratch_bytes={STATE: sizes.state_bytes(self.isa)},
            outputs=results(tensors),
            per_part=(STATE,),
        )
        return between_reorders(plan, self.passed, self.tuning, isa=self.isa)


def by_sorting(request: TopKRequest) -> Plan:
    return request.sorted(request.tensors)


def by_sorting_copies(request: TopKRequest) -> Plan:
    check_copied(lambda: request.sorted(request.tensors))
    return request.sorted(request.axis_last())


def request_of(desc: TopKForward, attr: Attr, engine: Engine) -> TopKRequest:
    """Raises Refused."""
    refuse_attr(attr)
    src = row_major(desc.src.dims, desc.src) if desc.src.is_any else desc.src
    results = {"dst": desc.dst, **({} if desc.values is None else {"values": desc.values})}
    passed = {"src": src} | {name: in_order_of(src, x, desc.axis) if x.is_any else x for name, x in results.items()}
    check_tensors(passed)
    tensors = {name: tensor if name == "dst" else of_type(tensor, f32) for name, tensor in passed.items()}
    isa = f32_level(engine.isa)
    return TopKRequest(desc=desc, passed=passed, tensors=tensors, isa=isa, tuning=engine.tuning)


def in_order_of(src: MemoryDesc, desc: MemoryDesc, axis: int) -> MemoryDesc:
    """A dense format with the dims in the order of src's memory, and in its blocks but for the axis."""
    order = sorted(range(src.ndims), key=lambda dim: (-src.strides[dim], dim))
    return MemoryDesc(desc.dims, desc.dtype, tag_of(tuple(order), tuple(b for b in src.inner_blocks if b[0] != axis)))


def check_tensors(tensors: Tensors) -> None:
    """Raise Refused unless these tensors can be addressed."""
    for name, desc in tensors.items():
        if name != "dst" and desc.dtype not in TYPES:
            raise Refused(f"{name} is {desc.dtype}, only {', '.join(x.name for x in TYPES)} is implemented")
        if name != "src" and desc.may_overlap:
            raise Refused(f"elements of {name} overlap")


def order_of(desc: TopKForward) -> Order:
    return Order(desc.alg == "max", desc.select_last, desc.nan_last)


def spec_of(desc: TopKForward, isa: str, along: str, size: tuple[int, int], strides: tuple[int, int, int]) -> TopKSpec:
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
        order=order_of(desc),
        has_values=desc.values is not None,
    )


def cost(spec: TopKSpec, tuning: TopKTuning) -> int:
    """Expected cycles."""
    vectors = -(-spec.elements // lanes_of(spec.isa))
    each = tuning.vector_cycles + (tuning.level_cycles * spec.k if spec.k > 1 else 0)
    ends = spec.k * tuning.result_cycles * (spec.rows if spec.along == "rows" else vectors)
    return tuning.call_cycles + spec.rows * vectors * each + ends


WAYS: Final[dict[str, Callable[[TopKRequest], Plan]]] = {
    ROWS: along_rows,
    LANES: across_lanes,
    SORTED: by_sorting,
    f"{WORD}+{ROWS}": along_copied_rows,
    f"{WORD}+{SORTED}": by_sorting_copies,
}
plans = implementations_of(request_of, WAYS, f32_level)
