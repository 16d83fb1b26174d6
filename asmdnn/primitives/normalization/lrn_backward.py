"""The plan of a backward local response normalization: two products of each element, then sums of one over windows.

The sums are of what every element passes on to all in its window, so that it is computed once an element.  The other
one, diff_src without the sums, has a power in common with it, and waits in diff_src.
"""

from collections.abc import Mapping
from functools import partial

from asmdnn.generators.functions.lrn_gradient import LrnGradientSpec, shares_program
from asmdnn.generators.functions.postops import ExpressionOp, Operand, PostOp
from asmdnn.isa.vectors import f32_level
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import View
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import NO_ATTR, Attr, refuse_attr
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import plan_of
from asmdnn.primitives.elementwise.schedule import Request, check_tensors, schedule
from asmdnn.primitives.normalization import lrn, lrn_channels
from asmdnn.primitives.normalization.lrn import MOST_PLACES, phases_over, same_places
from asmdnn.primitives.normalization.lrn_backward_description import LRNBackward
from asmdnn.primitives.normalization.lrn_description import LRNForward
from asmdnn.primitives.normalization.lrn_layout import layout_of
from asmdnn.primitives.reorder.copies import Inside, as_passed_or_copied
from asmdnn.primitives.shapes.formats import like, of_type, row_major
from asmdnn.types import FLOAT_NAMES, DataType, PropKind, f32

SHARES, BASE, UNUSED = "shares of windows", "base of powers", "result of the forward pass"  # scratch


def inside_of(desc: LRNBackward, attr: Attr, engine: Engine) -> Inside:
    """The plan in a format of which kernels walk along rows.  Raises Refused."""
    isa, tuning = f32_level(engine.isa), engine.tuning
    refuse_attr(attr, "a gradient")
    if desc.forward().places > MOST_PLACES:
        raise Refused(f"a window has {desc.forward().places} places, at most {MOST_PLACES} are implemented")
    src = like(desc.diff_dst, desc.src)
    kept = {} if desc.workspace is None else {"workspace": like(src, desc.workspace)}
    passed = {"src": src, "diff_src": like(src, desc.diff_src), "diff_dst": like(src, desc.diff_dst), **kept}
    check_tensors(passed, "diff_src", FLOAT_NAMES)
    if 0 in src.dims:
        return Inside(Assembly(tuning, isa).plan(f"lrn:{isa}", passed, ("diff_src",)), passed, tuning, isa)
    if lrn_channels.takes(desc, src, isa):
        return Inside(by_pixels(desc, passed, engine), passed, tuning, isa)
    is_whole = not src.may_overlap and src.padded_dims == src.dims  # powers of what pads blocks are of 0
    model, layout = of_type(src, f32), layout_of(desc, src) if is_whole else None
    if layout is None:
        model = row_major(src.dims, model)
        layout = layout_of(desc, model)
        assert layout is not None, "rows of plain tensors are dense"
    tensors = {name: of_type(t, f32) if same_places(t, model) else model for name, t in passed.items()}
    inner = MemoryDesc(model.dims, model.dtype, strides=model.strides, inner_blocks=model.inner_blocks)
    assembly, base = Assembly(tuning, engine.isa), "workspace"
    if not kept:
        base = BASE
        add_base(assembly, desc, tensors["src"], inner, engine)
    given = {"diff_dst": tensors["diff_dst"], base: tensors.get(base, inner)}

    def operation(operands: Mapping[str, Operand], is_share: bool) -> PostOp:
        return ExpressionOp(shares_program(desc.beta, is_share), tuple(operands[name] for name in given))

    both = (partial(operation, is_share=is_share) for is_share in (True, False))
    request = Request("shares", ("src", tensors["src"]), ("dst", inner), given, next(both),
                      second=("diff_src", tensors["diff_src"], next(both)))  # fmt: skip
    assembly.add_plan(schedule(request, NO_ATTR, engine), {"dst": View(SHARES)})
    assembly.scratch[SHARES] = inner.size_bytes
    gradient = {"diff_src": tensors["diff_src"]}
    arguments = {SHARES: inner, **gradient, "src": tensors["src"]}
    make = partial(LrnGradientSpec, isa=isa, factor=2 * desc.beta * desc.forward().factor)
    assembly.add(phases_over(layout, arguments, make, tuning))
    return Inside(assembly.plan(f"lrn:{isa}", tensors, ("diff_src",)), passed, tuning, isa)


def by_pixels(desc: LRNBackward, passed: Mapping[str, MemoryDesc], engine: Engine) -> Plan:
    """The plan of kernels that take all channels of pixels.  Raises Refused."""
    src, isa = passed["src"], f32_level(engine.isa)
    tensors = {name: t if same_places(t, src) else dense(src, t.dtype) for name, t in passed.items()}
    assembly, base = Assembly(engine.tuning, engine.isa), "workspace"
    if "workspace" not in passed:
        base = BASE
        add_base(assembly, desc, src, dense(src, f32), engine)
    given = {"dst": tensors["diff_src"], "diff": tensors["diff_dst"], "base": tensors.get(base, dense(src, f32))}
    assembly.add(lrn_channels.phases(desc, {"src": src, **given}, View(base), engine))
    return assembly.plan(f"lrn:{isa}", tensors, ("diff_src",))


def dense(model: MemoryDesc, dtype: DataType) -> MemoryDesc:
    """Laid out alike, from its first element on."""
    return MemoryDesc(model.dims, dtype, strides=model.strides, inner_blocks=model.inner_blocks)


def add_base(assembly: Assembly, desc: LRNBackward, src: MemoryDesc, base: MemoryDesc, engine: Engine) -> None:
    """What the powers are of, by the forward pass.  Raises Refused."""
    numbers = desc.local_size, desc.alpha, desc.beta, desc.k
    forward = LRNForward(PropKind.forward_training, desc.alg, src, base, *numbers, base)
    places = {"dst": View(UNUSED), "workspace": View(BASE)}
    assembly.add_plan(plan_of((lrn.plans,), forward, engine), places)
    assembly.scratch |= dict.fromkeys((UNUSED, BASE), base.size_bytes)


plans = as_passed_or_copied("lrn", inside_of, f32_level)
