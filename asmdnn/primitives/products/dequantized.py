"""Products of quantised matrices with any scales and zero points: of the numbers that they stand for.

    integers   src and weights, less their zero points, become s32; sums are exact, modulo 2^32, and scaled after
    floats     src and weights, less their zero points and times their scales, become f32, and so are sums

Both matrices are written in every call, so these come after all ways that read bytes as they lie.  Floats are for
scales along k, which come before sums, and for a src of floats; a dst of s32 then has the rounded sum of floats.
"""

from collections.abc import Iterator

from asmdnn.isa.dot import F32, S32, Types
from asmdnn.isa.vectors import f32_level
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import View
from asmdnn.planning.refusal import Refusal, Refused
from asmdnn.planning.unhindered import without_needless_barriers
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import Answer
from asmdnn.primitives.products import matmul_tiles
from asmdnn.primitives.products.matmul import MatMul
from asmdnn.primitives.products.quantities import add_numbers, room_of
from asmdnn.primitives.shapes.formats import row_major
from asmdnn.records import replace
from asmdnn.types import FLOATS, FLOATS8, INTEGERS8, PACKED_TYPES, s4, u4

FACTORS = ("src", "weights")
KINDS = {"integers": S32, "floats": F32}
QUANTIZED = (*INTEGERS8, s4, u4)


def plans(desc: MatMul, attr: Attr, engine: Engine) -> Iterator[Answer]:
    """One of each of KINDS, or why there is none; nothing of other types."""
    if desc.src.dtype not in (*INTEGERS8, *FLOATS, *FLOATS8) or not is_quantized(desc, attr):
        return
    isa = f32_level(engine.isa)
    for name, types in KINDS.items():
        try:
            check(desc, attr, types)
            yield from planned(name, types, (desc, attr, engine))
        except Refused as reason:
            yield Refusal(f"{name}:{isa}", str(reason))


def is_quantized(desc: MatMul, attr: Attr) -> bool:
    """Whether weights are integers or of 4 bits, or floats with scales that no other way has."""
    floats = (*FLOATS, *FLOATS8)
    return desc.weights.dtype in (*INTEGERS8, *PACKED_TYPES.values()) or (
        desc.weights.dtype in floats and desc.src.dtype in floats and scales_k(desc, attr)
    )


def check(desc: MatMul, attr: Attr, types: Types) -> None:
    """Raise Refused for what others multiply, or nothing does."""
    if {name for of in (attr.scales, attr.zero_points) for name, _ in of} - {*FACTORS, "dst"}:
        raise Refused("scales and zero points are not of src, weights and dst")
    if "dst" in dict(attr.groups):
        raise Refused("groups are of dst, which has a scale for all or one for each index of a dim")
    kinds = {"src": desc.src.dtype, "weights": desc.weights.dtype}
    floats = {x: f"{x} {'are' if x == 'weights' else 'is'} {t}" for x, t in kinds.items() if t not in QUANTIZED}
    if types == S32 and floats:
        raise Refused(f"{min(floats.values())}: only integers have sums of integers")
    points = [floats[x] for x, _ in attr.zero_points if x in floats]
    if points:
        raise Refused(f"zero points are for integers, and {points[0]}: leave them out")
    if types == S32 and scales_k(desc, attr):
        raise Refused("scales along k come before sums, and these are of integers")


def scales_k(desc: MatMul, attr: Attr) -> bool:
    """Whether scales come before sums."""
    ndims, masks = desc.dst.ndims, dict(attr.scales)
    return bool(masks.get("src", 0) >> ndims - 1 & 1 or masks.get("weights", 0) >> ndims - 2 & 1) or any(
        name in masks for name in dict(attr.groups)
    )


def planned(name: str, types: Types, request: tuple[MatMul, Attr, Engine]) -> Iterator[Answer]:
    """Of numbers in scratch.  Raises Refused."""
    desc, attr, engine = request
    before, after = parts_of(attr, types)
    passed = {x: resolved(getattr(desc, x)) for x in FACTORS}
    numbers = {x: MemoryDesc(d.dims, types.src, "any") for x, d in passed.items()}
    numbers = {x: row_major(d.dims, d) for x, d in numbers.items()}
    assembly, arguments = Assembly(engine.tuning, engine.isa), dict[str, MemoryDesc]()
    for x in FACTORS:
        arguments |= add_numbers(assembly, engine, (x, passed[x]), numbers[x], before)
    inner = replace(desc, **numbers)
    for answer in matmul_tiles.plan(inner, after, engine, types=types):
        if isinstance(answer, Refusal):
            yield Refusal(f"{name}+{answer.implementation}", answer.reason)
            continue
        whole = assembly.branch()
        whole.add_plan(answer, {x: View(room_of(x)) for x in FACTORS if passed[x].nelems()})
        tensors = {**answer.tensors, **passed, **arguments}
        yield without_needless_barriers(whole.plan(f"{name}+{answer.implementation}", tensors, answer.outputs))


def parts_of(attr: Attr, types: Types) -> tuple[Attr, Attr]:
    """What is done to factors, and to sums."""
    points = dict(attr.zero_points)
    scales = dict(attr.scales)
    of_sums = {x: mask for x, mask in scales.items() if x == "dst" or types == S32}
    before = Attr(
        scales={x: mask for x, mask in scales.items() if x not in of_sums},
        zero_points={x: mask for x, mask in points.items() if x in FACTORS},
        groups={x: sizes for x, sizes in attr.groups if x in FACTORS and (x in points or x not in of_sums)},
    )
    of_dst = {x: mask for x, mask in points.items() if x == "dst"}
    return before, attr.changed(scales=of_sums, zero_points=of_dst, groups={}, fpmath_mode="strict")


def resolved(d: MemoryDesc) -> MemoryDesc:
    return row_major(d.dims, d) if d.is_any else d
