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
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import NO_ATTR, Attr, refuse_attr
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import plan_of
from asmdnn.primitives.elementwise.schedule import Request, schedule
from asmdnn.primitives.normalization import lrn, lrn_channels
from asmdnn.primitives.normalization.lrn import MOST_PLACES, LrnRequest, phases_over, requested, same_places
from asmdnn.primitives.normalization.lrn_backward_description import LRNBackward
from asmdnn.primitives.normalization.lrn_description import LRNForward
from asmdnn.primitives.normalization.lrn_layout import LrnLayout
from asmdnn.primitives.reorder.copies import Inside, ways_as_passed_or_copied
from asmdnn.primitives.shapes.formats import like
from asmdnn.primitives.shapes.tensors import check_tensors
from asmdnn.types import FLOAT_NAMES, DataType, PropKind, f32

SHARES, BASE, UNUSED = "shares of windows", "base of powers", "result of the forward pass"  # scratch
ONE_PASS, TWO_PASSES, OUTPUTS = "one_pass", "two_passes", ("diff_src",)


def request_of(desc: LRNBackward, attr: Attr, engine: Engine) -> LrnRequest:
    """Raises Refused."""
    refuse_attr(attr, "a gradient")
    if desc.forward().places > MOST_PLACES:
        raise Refused(f"a window has {desc.forward().places} places, at most {MOST_PLACES} are implemented")
    src = like(desc.diff_dst, desc.src)
    kept = {} if desc.workspace is None else {"workspace": like(src, desc.workspace)}
    passed = {"src": src, "diff_src": like(src, desc.diff_src), "diff_dst": like(src, desc.diff_dst), **kept}
    check_tensors(passed, "diff_src", FLOAT_NAMES)
    return requested(desc, passed, engine, is_whole=src.padded_dims == src.dims)  # powers of padding are of 0


def in_one_pass(request: LrnRequest) -> Inside:
    """Kernels that take all channels of pixels.  Raises Refused."""
    desc, passed, engine = request.desc, request.passed, request.engine
    assert isinstance(desc, LRNBackward)
    src = passed["src"]
    if 0 in src.dims:
        return request.empty(ONE_PASS, OUTPUTS)
    lrn_channels.check(desc, src, request.isa)
    tensors = {name: t if same_places(t, src) else dense(src, t.dtype) for name, t in passed.items()}
    assembly, base = Assembly(engine.tuning, engine.isa), "workspace"
    if "workspace" not in passed:
        base = BASE
        add_base(assembly, desc, src, dense(src, f32), engine)
    given = {"dst": tensors["diff_src"], "diff": tensors["diff_dst"], "base": tensors.get(base, dense(src, f32))}
    assembly.add(lrn_channels.phases(desc, {"src": src, **given}, View(base), engine))
    return request.inside(assembly.plan(f"{ONE_PASS}:{request.isa}", tensors, OUTPUTS))


def in_two_passes(request: LrnRequest) -> Inside:
    """Shares of all elements, then sums of them, in a format of which kernels walk along rows.  Raises Refused."""
    desc, tensors, engine = request.desc, request.tensors, request.engine
    assert isinstance(desc, LRNBackward)
    if 0 in request.model.dims:
        return request.empty(TWO_PASSES, OUTPUTS)
    inner = dense(request.model, f32)
    assembly, base = Assembly(engine.tuning, engine.isa), "workspace"
    if base not in tensors:
        base = BASE
        add_base(assembly, desc, tensors["src"], inner, engine)
    given = {"diff_dst": tensors["diff_dst"], base: tensors.get(base, inner)}

    def operation(operands: Mapping[str, Operand], is_share: bool) -> PostOp:
        return ExpressionOp(shares_program(desc.beta, is_share), tuple(operands[name] for name in given))

    share, gradient = (partial(operation, is_share=is_share) for is_share in (True, False))
    shares = Request("shares", ("src", tensors["src"]), ("dst", inner), given, share,
                     more=(("diff_src", tensors["diff_src"], lambda operands: (gradient(operands),)),))  # fmt: skip
    assembly.add_plan(schedule(shares, NO_ATTR, engine), {"dst": View(SHARES)})
    assembly.scratch[SHARES] = inner.size_bytes
    arguments = {SHARES: inner, "diff_src": tensors["diff_src"], "src": tensors["src"]}
    make = partial(LrnGradientSpec, isa=request.isa, factor=2 * desc.beta * desc.forward().factor)
    layout = next(x for x in request.layouts.values() if isinstance(x, LrnLayout))
    assembly.add(phases_over(layout, arguments, make, engine.tuning))
    return request.inside(assembly.plan(f"{TWO_PASSES}:{request.isa}", tensors, OUTPUTS))


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


plans = ways_as_passed_or_copied(request_of, {ONE_PASS: in_one_pass, TWO_PASSES: in_two_passes}, f32_level)
