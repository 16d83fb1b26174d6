"""The plan of a local response normalization: kernels for rows that have the same neighbours."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import product
from typing import TypeVar

from asmdnn.generators.functions.lrn import LrnSpec
from asmdnn.generators.functions.lrn_gradient import LrnGradientSpec
from asmdnn.generators.functions.tap_rows import Tap, TapRows
from asmdnn.isa.vectors import f32_level, lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.loops import MAX_STEP, Box, Loop, cut_loop
from asmdnn.planning.move_tuning import NormalizationTuning
from asmdnn.planning.phase import Phase, views
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refused
from asmdnn.planning.tuning import Tuning
from asmdnn.primitives.attributes.attr import Attr, refuse_attr
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.normalization.lrn_backward_description import LRNBackward
from asmdnn.primitives.normalization.lrn_description import LRNForward
from asmdnn.primitives.normalization.lrn_layout import ALONG, LrnLayout, layouts_of, runs_of, taps_of
from asmdnn.primitives.reorder.copies import Inside, ways_as_passed_or_copied
from asmdnn.primitives.shapes.formats import like, of_type, row_major
from asmdnn.primitives.shapes.nests import Nest
from asmdnn.primitives.shapes.row_calls import phases_of, row_calls
from asmdnn.primitives.shapes.tensors import check_tensors, refuse_overlap
from asmdnn.records import dataclass, replace
from asmdnn.types import FLOAT_NAMES, IsaName, f32

Spec = TypeVar("Spec", LrnSpec, LrnGradientSpec)
MOST_PLACES = 343  # of a window, which is unrolled: 7 along three axes


@dataclass(frozen=True, slots=True, eq=False)
class LrnRequest:
    """A description, the tensors as the caller passes them and as kernels take them, the format that these walk along,
    in which ways or why not, and for whom."""

    desc: LRNForward | LRNBackward
    passed: Mapping[str, MemoryDesc]
    tensors: Mapping[str, MemoryDesc]
    model: MemoryDesc
    layouts: Mapping[str, LrnLayout | str]
    engine: Engine

    @property
    def isa(self) -> IsaName:
        return f32_level(self.engine.isa)

    def inside(self, plan: Plan) -> Inside:
        return Inside(plan, self.passed, self.engine.tuning, self.isa)

    def empty(self, name: str, outputs: tuple[str, ...]) -> Inside:
        """Of no elements."""
        return self.inside(Assembly(self.engine.tuning, self.isa).plan(f"{name}:{self.isa}", self.passed, outputs))


def requested(
    desc: LRNForward | LRNBackward, passed: Mapping[str, MemoryDesc], engine: Engine, is_whole: bool = True
) -> LrnRequest:
    """The request of these tensors, of which src comes first.  is_whole: whether kernels may walk along src as it is,
    where some way does.  Otherwise src is plain."""
    src = passed["src"]
    model, layouts = of_type(src, f32), layouts_of(desc, src)
    if 0 not in src.dims and not (is_whole and any(isinstance(x, LrnLayout) for x in layouts.values())):
        model = row_major(src.dims, model)
        layouts = layouts_of(desc, model)
    tensors = {name: of_type(t, f32) if same_places(t, model) else model for name, t in passed.items()}
    return LrnRequest(desc, passed, tensors, model, layouts, engine)


def request_of(desc: LRNForward, attr: Attr, engine: Engine) -> LrnRequest:
    """Raises Refused."""
    refuse_attr(attr)
    if desc.places > MOST_PLACES:
        raise Refused(f"a window has {desc.places} places, at most {MOST_PLACES} are implemented")
    src = like(desc.dst, desc.src)
    workspace = {} if desc.workspace is None else {"workspace": like(src, desc.workspace)}
    passed = {"src": src, "dst": like(src, desc.dst), **workspace}
    check_tensors(passed, "dst", FLOAT_NAMES)
    refuse_overlap(**workspace)
    return requested(desc, passed, engine, is_whole=not (workspace and src.has_padding))  # whose workspace is not zero


def inside_of(request: LrnRequest, name: str) -> Inside:
    """The plan of kernels that walk along rows in one way.  Raises Refused."""
    desc, layout = request.desc, request.layouts[name]
    outputs = tuple(name for name in ("dst", "workspace") if name in request.passed)
    assert isinstance(desc, LRNForward)
    if 0 in desc.src.dims:
        return request.empty(name, outputs)
    if isinstance(layout, str):
        raise Refused(layout)
    make = partial(
        LrnSpec,
        isa=request.isa,
        k=desc.k,
        factor=desc.factor,
        beta=desc.beta,
        has_workspace=desc.workspace is not None,
    )
    phases = phases_over(layout, request.tensors, make, request.engine.tuning)
    return request.inside(Plan(f"{name}:{request.isa}", phases, request.tensors, {}, {}, outputs))


plans = ways_as_passed_or_copied(request_of, {name: partial(inside_of, name=name) for name in ALONG}, f32_level)


def same_places(a: MemoryDesc, b: MemoryDesc) -> bool:
    """Whether elements lie alike, but for where the tensor starts."""
    return (a.dims, a.strides, a.inner_blocks) == (b.dims, b.strides, b.inner_blocks)


def phases_over(
    layout: LrnLayout, tensors: Mapping[str, MemoryDesc], make: Callable[..., Spec], tuning: Tuning
) -> tuple[Phase, ...]:
    """Kernels of all rows, whose arguments are the tensors.  make: the spec of some rows.  Raises Refused."""
    calls = list(calls_of(layout, tuple(tensors.values()), make, tuning))
    costs = {spec: cost(spec, tuning.normalization) for spec in dict.fromkeys(spec for spec, *_ in calls)}
    return phases_of(calls, costs, views(tuple(tensors)), tuning.phases)


def calls_of(
    layout: LrnLayout, tensors: tuple[MemoryDesc, ...], make: Callable[..., Spec], tuning: Tuning
) -> Iterator[tuple[Spec, Box, tuple[Loop, ...]]]:
    """Kernels, and where they are called.  Raises Refused."""
    starts = [tensor.offset0 for tensor in tensors]
    for runs in product(*(tuple(runs_of(axis)) for axis in layout.axes)):
        first = sum(run.start * axis.stride for run, axis in zip(runs, layout.axes, strict=True))
        both = zip(runs, layout.axes, strict=True)
        along: list[Loop] = [Loop(run.times, (axis.stride,)) for run, axis in both if run.times > 1]
        loops: list[Loop] = [of_all(loop, len(tensors)) for loop in (*along, *layout.kept)]
        row: Loop | None = None if layout.row is None else of_all(layout.row, len(tensors))
        box = Box(tuple(first + start for start in starts), (*loops, *([] if row is None else [row])))
        most = max(1, tuning.normalization.lrn_row // layout.unit)
        for piece, steps in cut_loop(box, row, most) if row else [(box, None)]:
            elements = layout.unit * (steps.extent if steps else 1)
            taps = taps_of(layout, elements, [run.shifts for run in runs])
            check_taps(taps)
            rest = Nest(piece.starts, tuple(loop for loop in piece.loops if loop is not steps), ())
            records = replace(tuning.elementwise, record_elements=tuning.normalization.lrn_record)
            for part, some, outer in row_calls(rest, elements, records):
                row_bytes = some.strides_bytes(f32)[0]  # of src, and of dst, which lies alike
                spec = make(
                    rows=some.extent,
                    elements=elements,
                    src_row_bytes=row_bytes,
                    dst_row_bytes=row_bytes,
                    taps=taps,
                    piece=layout.piece or elements,
                )
                yield spec, part, outer


def of_all(loop: Loop, tensors: int) -> Loop:
    """A loop of one tensor for all of them, which lie alike."""
    return Loop(loop.extent, loop.strides * tensors)


def check_taps(taps: tuple[Tap, ...]) -> None:
    """Raise Refused for what is too far."""
    if any(abs(tap.offset_bytes) > f32.size_bytes * MAX_STEP for tap in taps):
        raise Refused("places of a window are more than 2 GiB apart")


def cost(spec: TapRows, tuning: NormalizationTuning) -> int:
    """Expected cycles."""
    vectors = -(-spec.elements // lanes_of(spec.isa))
    return tuning.call_cycles + spec.rows * vectors * (tuning.power_cycles + len(spec.taps))
