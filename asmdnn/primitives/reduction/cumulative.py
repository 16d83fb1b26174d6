"""Cumulative sums and products along an axis: the descriptions, and the plans."""

from typing import ClassVar

from asmdnn.generators.contract import KernelSpec
from asmdnn.generators.functions.cumulative import CumulativeSumSpec
from asmdnn.generators.functions.elementwise import ElementwiseSpec
from asmdnn.generators.functions.expression import Builder
from asmdnn.generators.functions.postops import ExpressionOp, Operand
from asmdnn.generators.move.rows import RowsSpec
from asmdnn.isa.vectors import NARROWEST, f32_level, lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.planning.loops import MAX_STEP, Box, Loop, cut_loop
from asmdnn.planning.move_tuning import ReductionTuning
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import Attr, refuse_attr
from asmdnn.primitives.attributes.numbers import check_flag
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.reduction.along_axis import AlongAxis, Tensors, implementations_along
from asmdnn.primitives.shapes.formats import like, of_type
from asmdnn.primitives.shapes.nests import Nest, lanes_in, read_nest, row_in, with_last
from asmdnn.primitives.shapes.row_calls import Calls, row_calls
from asmdnn.primitives.shapes.tensors import check_tensor, check_tensors, checked_axis
from asmdnn.records import dataclass
from asmdnn.types import FLOAT_NAMES, f32

SRC, DST = range(2)
ALGORITHMS = {"sum": "sum", "mul": "product"}


@dataclass(frozen=True, slots=True)
class CumulativeSum:
    """dst = the sums of src along `axis`, from the first element to each; -1 is the last axis.

    exclusive: without the element itself, so the first is 0.  reverse: from each element to the last one.  src and dst
    have the same dims, in any formats; in place, unless exclusive, if they have one format.
    Source: ONNX's CumSum.  Raises InvalidArguments.
    """

    alg: ClassVar[str] = "sum"

    src: MemoryDesc
    dst: MemoryDesc
    axis: int
    exclusive: bool = False
    reverse: bool = False

    def __post_init__(self) -> None:
        check_tensor("src", self.src)
        check_tensor("dst", self.dst, self.src.dims)
        object.__setattr__(self, "axis", checked_axis(self.axis, self.src))
        for name in ("exclusive", "reverse"):
            check_flag(f"{type(self).__name__}.{name}", getattr(self, name))

    def __str__(self) -> str:
        words = [f"cumulative {ALGORITHMS[self.alg]} of {self.src} to {self.dst}, axis {self.axis}"]
        return ", ".join(words + ["exclusive"] * self.exclusive + ["reverse"] * self.reverse)


@dataclass(frozen=True, slots=True)
class CumulativeProduct(CumulativeSum):
    """dst = the products of src along `axis`, from the first element to each; -1 is the last axis.

    exclusive: without the element itself, so the first is 1.  reverse: from each element to the last one.  src and dst
    are those of a `CumulativeSum`.
    Source: ONNX's CumProd.  Raises InvalidArguments.
    """

    alg: ClassVar[str] = "mul"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class CumulativeRequest(AlongAxis[KernelSpec]):
    """What is asked of cumulative sums or products; tensors: as f32."""

    desc: CumulativeSum

    def in_place(self, tensors: Tensors) -> bool:
        return tensors["src"] == tensors["dst"] and not self.desc.exclusive

    def axis_last(self) -> Tensors:
        return dict.fromkeys(self.passed, with_last(self.tensors["src"], (self.desc.axis,)))

    def cost(self, spec: KernelSpec) -> int:
        return cost(spec, self.tuning.reduction)

    def nest(self, tensors: Tensors) -> Nest:
        """Raises Refused."""
        return read_nest(tuple(tensors.values()), tensors["dst"].dims, (self.desc.axis,), DST)

    def rows(self, tensors: Tensors) -> Calls[KernelSpec]:
        """Rows along the axis.  Raises Refused."""
        nest = self.nest(tensors)
        axis = row_in(nest)
        calls: Calls[KernelSpec] = []
        for box, rows, outer in row_calls(nest, axis.extent, self.tuning.elementwise):
            calls += of_axis(self.desc, self.isa, "rows", (box, outer), (rows, axis))
        return calls

    def lanes(self, tensors: Tensors) -> Calls[KernelSpec]:
        """Vectors of a dense loop, each summed down the axis.  Raises Refused."""
        nest = self.nest(tensors)
        lanes, axis = lanes_in(nest), nest.row
        calls: Calls[KernelSpec] = []
        if axis.extent * max(axis.strides) > MAX_STEP:
            raise Refused("the axis spans more than 2 GiB")
        for box, some in cut_loop(nest.box, lanes, self.tuning.reduction.lanes):
            outer = tuple(loop for loop in box.loops if loop is not some)
            calls += of_axis(self.desc, self.isa, "lanes", (box, outer), (axis, some))
        return calls


def request_of(desc: CumulativeSum, attr: Attr, engine: Engine) -> CumulativeRequest:
    """Raises Refused."""
    refuse_attr(attr)
    src = like(desc.dst, desc.src)
    passed = {"src": src, "dst": like(src, desc.dst)}
    check_tensors(passed, "dst", FLOAT_NAMES)
    tensors = {name: of_type(tensor, f32) for name, tensor in passed.items()}
    isa = f32_level(engine.isa)
    return CumulativeRequest(desc=desc, passed=passed, tensors=tensors, isa=isa, tuning=engine.tuning)


def of_axis(
    desc: CumulativeSum, isa: str, along: str, where: tuple[Box, tuple[Loop, ...]], loops: tuple[Loop, Loop]
) -> Calls[KernelSpec]:
    """The calls for a loop over rows and one along them: sums, which without the element itself lie one step further,
    after zeros, or products after ones."""
    (box, outer), (rows, row) = where, loops
    axis = row if along == "rows" else rows
    src_row_bytes, dst_row_bytes = rows.strides_bytes(f32)

    def sums(rows: int, elements: int) -> CumulativeSumSpec:
        return CumulativeSumSpec(
            isa=isa, along=along, rows=rows, elements=elements, src_row_bytes=src_row_bytes,
            dst_row_bytes=dst_row_bytes, reverse=desc.reverse, alg=desc.alg,
        )  # fmt: skip

    if not desc.exclusive:
        return [(sums(rows.extent, row.extent), box, outer)]
    one = (rows.extent, 1) if along == "rows" else (1, row.extent)
    first = axis.extent - 1 if desc.reverse else 0
    if desc.alg == "sum":
        firsts: KernelSpec = RowsSpec(
            isa=NARROWEST, rows=one[0], row_bytes=f32.size_bytes * one[1], src_step=0, dst_step=dst_row_bytes, zero=True
        )
    else:
        firsts = ones_of(isa, one, src_row_bytes, dst_row_bytes)
    calls: Calls[KernelSpec] = [(firsts, moved(box, (0, first * axis.strides[DST])), outer)]
    if axis.extent > 1:
        less = (rows.extent, row.extent - 1) if along == "rows" else (rows.extent - 1, row.extent)
        further = (axis.strides[SRC], 0) if desc.reverse else (0, axis.strides[DST])
        calls.append((sums(*less), moved(box, further), outer))
    return calls


def ones_of(isa: str, dims: tuple[int, int], src_row_bytes: int, dst_row_bytes: int) -> ElementwiseSpec:
    """Rows of ones, whatever src holds."""
    (x,) = (build := Builder()).inputs
    one = ExpressionOp(build.finish(build.where(x == x, 1.0, 1.0)), ())
    return ElementwiseSpec(
        isa=isa, rows=dims[0], elements=dims[1], src=Operand(SRC, src_row_bytes, 0, False), dst_row_bytes=dst_row_bytes,
        chain=(one,),
    )  # fmt: skip


def moved(box: Box, steps: tuple[int, int]) -> Box:
    return Box(tuple(at + step for at, step in zip(box.starts, steps, strict=True)), box.loops, box.padding)


def cost(spec: KernelSpec, tuning: ReductionTuning) -> int:
    """Expected cycles."""
    if isinstance(spec, RowsSpec | ElementwiseSpec):
        return tuning.call_cycles + spec.rows
    assert isinstance(spec, CumulativeSumSpec)
    vectors = -(-spec.elements // lanes_of(spec.isa))
    return tuning.call_cycles + spec.rows * (tuning.row_cycles + tuning.sum_cycles * vectors)


plans = implementations_along(request_of)
