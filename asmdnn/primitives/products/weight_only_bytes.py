"""Products of bytes whose weights have zero points, or scales by groups of k: as floats.

Tiles of integers have sums of all k, which one scale for each column can follow.  Here src, less its zero point and
times its scale, becomes f32 in front; weights become f32 in registers, as for a src of floats.  A dst of integers is
rounded behind, with its scale and zero point.  Sums are those of f32, so a dst of s32, which promises exact ones, is
refused.
"""

from asmdnn.isa.vectors import f32_level
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import View
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import implementation
from asmdnn.primitives.products.matmul import MatMul
from asmdnn.primitives.products.weight_only import COMMON, MATRIX, NAME
from asmdnn.primitives.products.weight_only import plan as plan_of_floats
from asmdnn.primitives.reorder.copies import WORD
from asmdnn.primitives.reorder.plan import reordered
from asmdnn.primitives.reorder.reorder import Reorder
from asmdnn.primitives.shapes.formats import row_major
from asmdnn.records import replace
from asmdnn.types import FLOATS, INTEGERS8, f32, s32

ROWS = 1  # the mask of a scale for each
FLOAT_SRC, FLOAT_DST = "src as floats", "dst as floats"
OPERANDS = ("src", "dst")


@implementation(NAME, f32_level)
def plan(desc: MatMul, attr: Attr, engine: Engine) -> Plan:
    """Plan a product.  Raises Refused, and InvalidArguments for groups that do not fit."""
    check(desc, attr)
    passed = {name: resolved(getattr(desc, name)) for name in OPERANDS}
    floats = {"src": MemoryDesc(desc.src.dims, f32, "ab")}
    if attr_of("dst", attr) != Attr() or passed["dst"].dtype not in FLOATS:
        floats["dst"] = MemoryDesc(desc.dst.dims, f32, "ab")
    inner = plan_of_floats(replace(desc, **{**passed, **floats}), attr_of("weights", attr, attr), engine)
    if not isinstance(inner, Plan):
        raise Refused(inner.reason)
    assembly, tensors = Assembly(engine.tuning, engine.isa), {**inner.tensors, **passed}
    rooms = zip(floats.values(), (FLOAT_SRC, FLOAT_DST), strict=False)
    places = {name: View(assembly.room(room, d.size_bytes)) for name, (d, room) in zip(floats, rooms, strict=True)}
    before = reordered(Reorder(passed["src"], floats["src"]), attr_of("src", attr), engine)
    assembly.add_plan(before, {"dst": places["src"]})
    assembly.add_plan(inner, places)
    plans = [before]
    if "dst" in floats:
        plans.append(reordered(Reorder(floats["dst"], passed["dst"]), attr_of("dst", attr), engine))
        assembly.add_plan(plans[-1], {"src": places["dst"]})
    for made in plans:
        tensors |= {name: d for name, d in made.tensors.items() if name not in OPERANDS}
    return assembly.plan(f"{WORD}+{inner.implementation.removeprefix(f'{WORD}+')}", tensors, ("dst",))


def check(desc: MatMul, attr: Attr) -> None:
    """Raise Refused for what tiles of integers multiply, or nothing does."""
    masks, points = dict(attr.scales), dict(attr.zero_points)
    if desc.src.dtype not in INTEGERS8:
        raise Refused(f"src is {desc.src.dtype}, bytes become floats")
    if desc.dst.ndims != MATRIX:
        raise Refused(f"dst has {desc.dst.ndims} dims, {MATRIX} are multiplied so")
    if "weights" not in points and "weights" not in dict(attr.groups):
        raise Refused("weights have neither zero points nor groups, which tiles of integers lack")
    if desc.dst.dtype == s32:
        raise Refused("dst is s32, and sums are f32 where weights have zero points or groups: take f32, s8 or u8")
    if masks.get("src", COMMON) not in (COMMON, ROWS) or masks.get("dst", COMMON) != COMMON:
        raise Refused(f"scales are {masks}: of src they have the mask 0 or 1, of dst 0")
    if any(points.get(name, COMMON) != COMMON for name in OPERANDS):
        raise Refused(f"zero points are {points}: of src and dst they have the mask 0")
    if {*masks, *points} - {*OPERANDS, "weights"} or {*dict(attr.groups)} - {"weights"}:
        raise Refused("scales and zero points are not of src, weights and dst, or groups not of weights")


def resolved(d: MemoryDesc) -> MemoryDesc:
    return row_major(d.dims, d) if d.is_any else d


def attr_of(name: str, attr: Attr, rest: Attr | None = None) -> Attr:
    """What attributes say of a tensor's numbers.  rest: whose post-ops and groups come with it."""
    scales, points = ({n: mask for n, mask in of if n == name} for of in (attr.scales, attr.zero_points))
    if rest is None:
        return Attr(scales=scales, zero_points=points)
    return Attr(
        rest.post_ops,
        scales=scales,
        zero_points=points,
        groups=dict(rest.groups),
        accumulation_mode=rest.accumulation_mode,
    )
