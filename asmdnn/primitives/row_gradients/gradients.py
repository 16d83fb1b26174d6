"""The plans of backward softmax and layer normalization."""

from functools import partial

from asmdnn.generators.functions.postops import ExpressionOp
from asmdnn.generators.functions.row_programs import norm_programs, normalized_gradient, softmax_programs
from asmdnn.isa.vectors import f32_level
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import View
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import NO_ATTR, Attr
from asmdnn.primitives.elementwise.schedule import Request, schedule
from asmdnn.primitives.engine import Engine
from asmdnn.primitives.formats import like, row_major
from asmdnn.primitives.implementation import implementation, plan_of
from asmdnn.primitives.nests import as_row_of, without_last
from asmdnn.primitives.reduction import reduction
from asmdnn.primitives.reduction.description import ReductionForward
from asmdnn.primitives.row_gradients.description import LayerNormBackward, SoftmaxBackward
from asmdnn.primitives.row_gradients.schedule import RowRequest, check_attr, row_plan
from asmdnn.types import f32

PRODUCTS = "gradients times normalized"  # scratch


@implementation("rows", f32_level)
def plan_softmax(desc: SoftmaxBackward, attr: Attr, engine: Engine) -> Plan:
    """Plan a backward softmax.  Raises Refused."""
    check_attr(attr)
    dst = like(desc.diff_dst, desc.dst)
    diff_dst, diff_src = like(dst, desc.diff_dst), like(dst, desc.diff_src)
    passed = {"dst": dst, "diff_src": diff_src, "diff_dst": diff_dst}
    request = RowRequest("softmaxback", passed, {}, desc.axis, softmax_programs(desc.alg == "log"))
    return row_plan(request, engine)


@implementation("rows", f32_level)
def plan_layer_norm(desc: LayerNormBackward, attr: Attr, engine: Engine) -> Plan:
    """Plan a backward layer normalization.  Raises Refused."""
    check_attr(attr)
    src = like(desc.diff_dst, desc.src)
    diff_dst, diff_src = like(src, desc.diff_dst), like(src, desc.diff_src)
    extra = {name: tensor for name in ("mean", "variance", "scale") if (tensor := getattr(desc, name)) is not None}
    extra = {name: row_major(tensor.dims, tensor) if tensor.is_any else tensor for name, tensor in extra.items()}
    passed = {"src": src, "diff_src": diff_src, "diff_dst": diff_dst, **extra}
    as_row = partial(as_row_of, ndims=src.ndims)
    views = {name: as_row if name == "scale" else without_last for name in extra}
    programs = norm_programs(src.dims[-1], desc.epsilon, not desc.rms, "scale" in extra)
    what = "rmsnormback" if desc.rms else "layernormback"
    plan = row_plan(RowRequest(what, passed, views, src.ndims - 1, programs), engine)
    return with_sums(desc, plan, engine)


def with_sums(desc: LayerNormBackward, plan: Plan, engine: Engine) -> Plan:
    """The plan, and the gradients of scale and shift behind it: sums over rows.  Raises Refused."""
    wanted = {name: getattr(desc, name) for name in ("diff_scale", "diff_shift") if getattr(desc, name) is not None}
    if not wanted:
        return plan
    tensors = dict(plan.tensors)
    src = tensors["src"]
    if 0 in src.dims:
        raise Refused(f"src has no elements, of which there is no sum for {', '.join(wanted)}")
    assembly = Assembly(engine.tuning, engine.isa)
    assembly.add_plan(plan, {})
    for name, tensor in wanted.items():
        tensors[name] = result = MemoryDesc(tensor.dims, f32, "a") if tensor.is_any else tensor
        summed, buffer = tensors["diff_dst"], "diff_dst"
        if name == "diff_scale":
            summed, buffer = MemoryDesc(src.dims, f32, "abcdefghijkl"[: src.ndims]), PRODUCTS
            assembly.add_plan(products(desc, plan, summed, engine), {"dst": View(PRODUCTS)})
            assembly.scratch[PRODUCTS] = summed.size_bytes
        row = as_row_of(result, src.ndims)
        if row is None:
            raise Refused(f"{name} is blocked, it must be a vector")
        row = MemoryDesc((*[1] * (src.ndims - 1), *result.dims), f32, strides=row.strides, offset0=row.offset0)
        sums = plan_of((reduction.plans,), ReductionForward("sum", summed, row), engine)
        assembly.add_plan(sums, {"src": View(buffer), "dst": View(name)})
    return assembly.plan(plan.implementation, tensors, ("diff_src", *wanted))


def products(desc: LayerNormBackward, plan: Plan, dst: MemoryDesc, engine: Engine) -> Plan:
    """diff_dst times normalized src, into dst."""
    found = {"diff_dst": plan.tensors["diff_dst"]}
    for name in ("mean", "variance"):
        if name in plan.tensors:
            tensor = plan.tensors[name]
            wide = without_last(tensor)
            if wide is None:
                raise Refused(f"{name} is blocked, it must be plain")
            found[name] = wide
    program = normalized_gradient(desc.epsilon, not desc.rms)
    request = Request(
        "products",
        ("src", plan.tensors["src"]),
        ("dst", dst),
        found,
        lambda operands: ExpressionOp(program, tuple(operands[name] for name in found)),
    )
    return schedule(request, NO_ATTR, engine)
