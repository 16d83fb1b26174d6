"""The plans of backward softmax and layer normalization."""

from collections.abc import Mapping
from functools import partial

from asmdnn.generators.functions.postops import ExpressionOp
from asmdnn.generators.functions.row_programs import (
    factor_program,
    norm_programs,
    row_sums_program,
    scaled_program,
    softmax_programs,
)
from asmdnn.isa.vectors import f32_level
from asmdnn.memory import MemoryDesc
from asmdnn.memory.tags import LETTERS
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import View
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refused
from asmdnn.planning.unhindered import without_needless_barriers
from asmdnn.primitives.attributes.attr import NO_ATTR, Attr, refuse_attr
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import implementations_of
from asmdnn.primitives.elementwise.schedule import Request, schedule
from asmdnn.primitives.normalization.statistics import by_statistics
from asmdnn.primitives.reduction.gradient_sums import Summed, add_sums
from asmdnn.primitives.reorder.copies import Reordering, add_reorder
from asmdnn.primitives.row_gradients.description import LayerNormBackward, SoftmaxBackward
from asmdnn.primitives.row_gradients.schedule import WAYS, RowRequest, row_plan
from asmdnn.primitives.shapes.formats import like, row_major
from asmdnn.primitives.shapes.nests import as_row_of, without_last
from asmdnn.primitives.shapes.tensors import check_tensors
from asmdnn.types import FLOAT_NAMES, f32

FACTORS = "factors"  # scratch
IMAGES = ("src", "diff_src", "diff_dst")


def softmax_request(desc: SoftmaxBackward, attr: Attr, engine: Engine) -> RowRequest:
    """What is asked of a backward softmax.  Raises Refused."""
    refuse_attr(attr, "a gradient")
    dst = like(desc.diff_dst, desc.dst)
    diff_dst, diff_src = like(dst, desc.diff_dst), like(dst, desc.diff_src)
    passed = {"dst": dst, "diff_src": diff_src, "diff_dst": diff_dst}
    check_tensors(passed, "diff_src", FLOAT_NAMES)
    return RowRequest("softmaxback", passed, {}, desc.axis, softmax_programs(desc.alg == "log"), engine)


plan_softmax = implementations_of(softmax_request, WAYS, f32_level)


@by_statistics("rows")
def plan_layer_norm(desc: LayerNormBackward, attr: Attr, engine: Engine, way: str) -> Plan:
    """Plan a backward layer normalization.  Raises Refused."""
    refuse_attr(attr, "a gradient")
    src = like(desc.diff_dst, desc.src)
    diff_dst, diff_src = like(src, desc.diff_dst), like(src, desc.diff_src)
    extra = {name: tensor for name in ("mean", "variance", "scale") if (tensor := getattr(desc, name)) is not None}
    extra = {name: row_major(tensor.dims, tensor) if tensor.is_any else tensor for name, tensor in extra.items()}
    for name in {"mean", "variance"} & extra.keys():
        check_tensors({name: extra[name]}, name)
    given = {"src": src, "diff_src": diff_src, "diff_dst": diff_dst, **extra}
    passed = {FACTORS if name == "variance" else name: tensor for name, tensor in given.items()}
    plan = of_given(passed, engine) if desc.use_global_stats else of_rows(desc.rms, passed, engine)
    assembly = Assembly(engine.tuning, engine.isa)
    if src.nelems():
        assembly.add_plan(factors(extra["variance"], desc.epsilon, engine), {"dst": View(FACTORS)})
    assembly.scratch[FACTORS] = extra["variance"].size_bytes
    sums = with_sums(assembly, desc, {**passed, **plan.tensors}, engine)
    assembly.add_plan(plan, {})  # last, as diff_src may be the memory of what is summed
    in_place = tuple(pair for pair in plan.in_place if pair[0] in IMAGES)
    whole = assembly.plan(f"{way}:{f32_level(engine.isa)}", {**given, **sums}, ("diff_src", *sums), in_place)
    return without_needless_barriers(whole)


def of_rows(rms: bool, passed: Mapping[str, MemoryDesc], engine: Engine) -> Plan:
    """diff_src where statistics are those of src.  Raises Refused."""
    src = passed["src"]
    as_row = partial(as_row_of, ndims=src.ndims)
    views = {name: as_row if name == "scale" else without_last for name in passed if name not in IMAGES}
    programs = norm_programs(src.dims[-1], not rms, "scale" in passed)
    what = "rmsnormback" if rms else "layernormback"
    check_tensors(passed, "diff_src", FLOAT_NAMES)
    return row_plan(RowRequest(what, passed, views, src.ndims - 1, programs, engine))


def of_given(passed: Mapping[str, MemoryDesc], engine: Engine) -> Plan:
    """diff_src where statistics were given: every element by itself.  Raises Refused."""
    operands = {FACTORS: without_last(passed[FACTORS])}
    if "scale" in passed:
        operands["scale"] = as_row_of(passed["scale"], passed["src"].ndims)
    if blocked := [name for name, tensor in operands.items() if tensor is None]:
        raise Refused(f"{blocked[0]} is blocked, it must be plain")
    found = {name: tensor for name, tensor in operands.items() if tensor is not None}
    program = scaled_program("scale" in found)
    images = ("diff_dst", passed["diff_dst"]), ("diff_src", passed["diff_src"])
    return schedule(
        Request("given", *images, found, lambda of: ExpressionOp(program, tuple(of[name] for name in found))),
        NO_ATTR, engine,
    )  # fmt: skip


def factors(variance: MemoryDesc, epsilon: float, engine: Engine) -> Plan:
    """1 / sqrt(variance + epsilon), in the format of the variance."""
    op = ExpressionOp(factor_program(epsilon), ())
    return schedule(Request("factors", ("variance", variance), ("dst", variance), {}, lambda _: op), NO_ATTR, engine)


def with_sums(
    assembly: Assembly, desc: LayerNormBackward, tensors: Mapping[str, MemoryDesc], engine: Engine
) -> dict[str, MemoryDesc]:
    """Add the gradients of scale and shift, sums over rows; their tensors.  Raises Refused."""
    wanted = {name: getattr(desc, name) for name in ("diff_scale", "diff_shift") if getattr(desc, name) is not None}
    src, others = tensors["src"], {}
    if not wanted:
        return {}
    if 0 in src.dims:
        raise Refused(f"src has no elements, of which there is no sum for {', '.join(wanted)}")
    for name in ("mean", FACTORS):
        if name in tensors and "diff_scale" in wanted:
            wide = without_last(tensors[name])
            if wide is None:
                raise Refused(f"{name} is blocked, it must be plain")
            others[name] = wide
    wanted = {name: MemoryDesc(t.dims, f32, "a") if t.is_any else t for name, t in wanted.items()}
    dense = MemoryDesc((*[1] * (src.ndims - 1), src.dims[-1]), f32, LETTERS[: src.ndims])
    plain = MemoryDesc(dense.dims[-1:], f32, "a")
    buffers = {name: name if tensor == plain else f"dense {name}" for name, tensor in wanted.items()}
    read = {name: tensors[name] for name in (("src", "diff_dst") if others else ("diff_dst",))}
    program = row_sums_program(len(others), "diff_shift" in wanted)
    add_sums(assembly, Summed("layernormback", program, read, others, dst=dense, results=tuple(buffers.values())))
    for name, buffer in buffers.items():
        if buffer != name:
            assembly.scratch[buffer] = plain.size_bytes
            add_reorder(assembly, Reordering(buffer, plain, name, wanted[name]))
    return wanted
