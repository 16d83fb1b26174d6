"""Products of floats with weights of 4 or 8 bits, which become f32 in registers.

Scales and zero points of weights come with the call: one, one for each column, or one for each column of a group of k.
They are brought into panels in front.
"""

import math

import numpy as np

from asmdnn.errors import InvalidArguments
from asmdnn.generators.dot.quantized import panel_columns
from asmdnn.generators.dot.unpacked import ROWS_BY_GROUPS, UnpackedProductSpec
from asmdnn.isa.vectors import f32_level, lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import View
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.chain import BIAS, Chain, Link, check_accumulation, post_ops_of
from asmdnn.primitives.attributes.post_ops import Binary
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import implementation
from asmdnn.primitives.elementwise import binary
from asmdnn.primitives.elementwise.binary import BinaryForward
from asmdnn.primitives.products.matmul import MatMul
from asmdnn.primitives.quantized.description import QuantizedMatMul
from asmdnn.primitives.quantized.panels import PanelTile, Tensors, finished, readable
from asmdnn.primitives.quantized.unpacked import UnpackedPlan
from asmdnn.primitives.reorder import packed
from asmdnn.primitives.reorder.copies import WORD, Reordering, add_reorder, copy_of
from asmdnn.primitives.reorder.reorder import Reorder
from asmdnn.primitives.shapes.formats import row_major
from asmdnn.primitives.shapes.tensors import refuse_overlap
from asmdnn.records import dataclass, replace
from asmdnn.types import CODED_FLOATS, F32_BYTES, FLOATS, DataType, f32, s4, s8, s32, u4, u8

NAME = "unpacking"
MATRIX = 2  # dims
COMMON, COLUMNS, BOTH_DIMS = 0, 2, 3  # masks
STEP, MOST_GROUP = 16, 256  # of k in a group of kernels
ONE_TWICE = 0x3F8000003F800000  # 1.0 as f32
WEIGHTS = {s4: 4, u4: 4, s8: 8, u8: 8, **dict.fromkeys(CODED_FLOATS, 4)}  # and their bits
SCALES, POINTS = "weights_scales", "weights_zero_points"


@implementation(NAME, f32_level)
def plan(desc: MatMul, attr: Attr, engine: Engine) -> Plan:
    """Plan a product.  Raises Refused, and InvalidArguments for groups that do not fit."""
    numbers = numbers_of(desc, attr)
    check_accumulation(attr, f32)
    chain, isa = bias_and_post_ops(desc, attr), f32_level(engine.isa)
    (m, k), n = desc.src.dims, desc.dst.dims[1]
    bits, columns = WEIGHTS[desc.weights.dtype], panel_columns(lanes_of(isa))
    panels = MemoryDesc((k // numbers.group, n), f32, f"Ba{columns}b")
    points = panels if numbers.points is not None else None
    inner = QuantizedMatMul(
        MemoryDesc((m, k), f32, "ab"),
        MemoryDesc((k * bits // 8, n), u8, "any"),
        panels,
        MemoryDesc((m, n), desc.dst.dtype, "any"),
        points,
    )
    tensors = tensors_of(desc, chain, MemoryDesc((k, n), desc.weights.dtype, f"BA{columns}b{32 // bits}a"))
    arguments, assembly = numbers.arguments(panels.dims), Assembly(engine.tuning, engine.isa)
    if desc.dst.nelems():
        plain_scales = numbers.scales == BOTH_DIMS and n % columns == 0
        if not plain_scales:
            add_scales(assembly, numbers.scales, panels)
        inside = {**tensors.inside, **({"offsets": panels} if points else {})}
        products = CodedPlan(inner, chain, inside, isa, assembly).of(desc.weights.dtype, plain_scales)
        if numbers.points is not None and products.unscaled:
            spread(assembly, (POINTS, s32, numbers.points), "offsets", panels)
        elif numbers.points is not None:
            add_offsets(assembly, numbers, panels, engine, plain_scales)
        products.add()
    found = Tensors({**tensors.passed, **arguments}, {**tensors.inside, **arguments})
    made = finished(NAME, CodedPlan(inner, chain, found.inside, isa, assembly), found, engine)
    return with_packing(made, desc.weights, engine)


def with_packing(plan: Plan, weights: MemoryDesc, engine: Engine) -> Plan:
    """The plan for weights of 4 bits that are passed in another format than kernels take."""
    if weights.is_any or weights == plan.tensors["weights"]:
        return plan
    answer = packed.plan(Reorder(weights, plan.tensors["weights"]), Attr(), engine)
    if not isinstance(answer, Plan):
        raise Refused(answer.reason)
    assembly = Assembly(engine.tuning, engine.isa)
    panels = assembly.room(copy_of("weights"), plan.tensors["weights"].size_bytes)
    assembly.add_plan(answer, {"src": View("weights"), "dst": View(panels)})
    assembly.add_plan(plan, {"weights": View(panels)})
    name = plan.implementation.removeprefix(f"{WORD}+")
    return assembly.plan(f"{WORD}+{name}", {**plan.tensors, "weights": weights}, plan.outputs)


class CodedPlan(UnpackedPlan):
    """Of weights that are signed or not, nibbles in the order of k.

    unscaled: zero points come as they are, not times scales, which costs nothing where sums of groups are scaled: those
    of integers are exact then, whatever the scales.  For every element it would cost an instruction, up to 10% of the
    time of 3 to 8 rows (Zen 4).  So with zero points the last rows of many are never summed by groups.
    """

    signed, table = False, ""

    def as_many(self, rows: int) -> bool:
        is_rest = self.has_offsets and rows <= ROWS_BY_GROUPS < self.m
        return is_rest or super().as_many(rows)

    @property
    def unscaled(self) -> bool:
        return self.has_offsets and self.m <= ROWS_BY_GROUPS and not self.as_many(self.m)

    def of(self, weights: DataType, plain_scales: bool) -> "CodedPlan":
        self.signed, self.plain_scales = weights in (s4, s8), plain_scales
        self.table = weights.name if weights in CODED_FLOATS else ""
        self.scales = SCALES if plain_scales else "scales"
        return self

    def spec(self, tile: PanelTile) -> UnpackedProductSpec:
        row_bytes = F32_BYTES * self.n if self.plain_scales else 0
        spec = replace(super().spec(tile), signed=self.signed, in_order=True, table=self.table)
        return replace(spec, scales_row_bytes=row_bytes, unscaled=self.unscaled)


@dataclass(frozen=True, slots=True)
class WeightNumbers:
    """group: how many k share a scale and a zero point in kernels.  scales, points: their masks; None: there are none.

    Groups that a caller names are those; where all k share one, kernels take it once for each of theirs.
    """

    group: int
    scales: int | None
    points: int | None

    def arguments(self, dims: tuple[int, ...]) -> dict[str, MemoryDesc]:
        """What comes with the call, of so many groups and columns."""
        given = {SCALES: (self.scales, f32), POINTS: (self.points, s32)}
        return {
            name: MemoryDesc((math.prod(shape_of(mask, dims)),), dtype, "a")
            for name, (mask, dtype) in given.items()
            if mask is not None
        }


def shape_of(mask: int, dims: tuple[int, ...]) -> tuple[int, ...]:
    """Of numbers of a mask, to broadcast to groups and columns."""
    groups, columns = dims
    return groups if mask == BOTH_DIMS else 1, columns if mask else 1


def numbers_of(desc: MatMul, attr: Attr) -> WeightNumbers:
    """What attributes say of weights.  Raises Refused, InvalidArguments."""
    if desc.weights.dtype not in WEIGHTS or desc.src.dtype not in FLOATS or desc.dst.dtype not in FLOATS:
        raise Refused(f"{desc.src.dtype} times {desc.weights.dtype} to {desc.dst.dtype} is not floats times integers")
    scales, points, groups = dict(attr.scales), dict(attr.zero_points), dict(attr.groups).get("weights")
    if points and desc.weights.dtype in CODED_FLOATS:
        raise Refused(f"zero points are for integers, and weights are {desc.weights.dtype}: leave them out")
    if {*scales, *points} - {"weights"}:
        raise Refused("scales and zero points are not of weights alone")
    if desc.src.ndims != MATRIX:
        raise Refused(f"src has {desc.src.ndims} dims, only matrices are implemented")
    masks = scales.get("weights"), points.get("weights")
    for kind, mask in zip(("scales", "zero points"), masks, strict=True):
        if mask not in (None, COMMON, COLUMNS, BOTH_DIMS):
            raise Refused(f"{kind} of weights have the mask {mask}: it is 0, 2, or 3 with groups")
    k = desc.src.dims[1]
    if BOTH_DIMS not in masks:
        return WeightNumbers(whole_group(k), *masks)
    if groups is None:
        raise Refused("scales of mask 3 are by groups: groups={'weights': (32, 1)}")
    group, along = groups
    if along != 1 or group % STEP or not STEP <= group <= MOST_GROUP:
        raise Refused(f"groups of weights are {groups}, they must be of 16 to 256 k, a multiple of 16, and of 1 column")
    if not k or k % group:
        raise InvalidArguments(f"groups of weights are {groups}, which do not divide k, {k}")
    return WeightNumbers(int(group), *masks)


def whole_group(k: int) -> int:
    """The largest group of kernels of which all k are some.  Raises Refused."""
    found = [group for group in range(STEP, MOST_GROUP + 1, STEP) if k and k % group == 0]
    if not found:
        raise Refused(f"k is {k}, weights of 4 bits are multiplied by a multiple of {STEP}")
    return found[-1]


def bias_and_post_ops(desc: MatMul, attr: Attr) -> Chain:
    """The bias, then post-ops.  Raises Refused."""
    links = post_ops_of(attr).links
    if desc.bias is not None:
        links = (Link(Binary("add", desc.bias), (BIAS,)), *links)
    chain = Chain(links)
    if chain.reads_dst:
        raise Refused("post-op sum is not implemented")
    return chain


def tensors_of(desc: MatMul, chain: Chain, panels: MemoryDesc) -> Tensors:
    """As passed, and as kernels read them.  Raises Refused."""
    asked = {"src": desc.src, "dst": desc.dst}
    passed = {name: row_major(t.dims, t) if t.is_any else t for name, t in asked.items()}
    passed |= chain.operands(passed["dst"])
    is_chosen = desc.weights.is_any or desc.weights.dtype.in_a_byte > 1
    weights = panels if is_chosen else desc.weights
    refuse_overlap(dst=passed["dst"])
    inside = {name: readable(t) for name, t in passed.items()}
    src = inside["src"]
    inside["src"] = src if src.dtype == f32 else MemoryDesc(src.dims, f32, "ab")
    return Tensors({**passed, "weights": weights}, {**inside, "weights": panels})


def add_scales(assembly: Assembly, mask: int | None, panels: MemoryDesc) -> None:
    """Scales of a mask for every group of kernels; 1 if there are none."""
    source = SCALES if mask is not None else assembly.constant("one", np.array([ONE_TWICE], np.int64))
    spread(assembly, (source, f32, mask or COMMON), "scales", panels)


def spread(assembly: Assembly, numbers: tuple[str, DataType, int], room: str, panels: MemoryDesc) -> None:
    """Numbers, of a buffer, a type and a mask, as f32 for every group of kernels."""
    source, dtype, mask = numbers
    _, columns = panels.dims
    strides = {BOTH_DIMS: (columns, 1), COLUMNS: (0, 1)}.get(mask, (0, 0))
    assembly.scratch[room] = panels.size_bytes
    add_reorder(assembly, Reordering(source, MemoryDesc(panels.dims, dtype, strides=strides), room, panels))


def add_offsets(
    assembly: Assembly, numbers: WeightNumbers, panels: MemoryDesc, engine: Engine, plain_scales: bool
) -> None:
    """Scales times zero points."""
    assert numbers.points is not None
    assembly.scratch["offsets"] = panels.size_bytes
    points = MemoryDesc(shape_of(numbers.points, panels.dims), s32, "ab")
    scales = MemoryDesc(panels.dims, f32, "ab") if plain_scales else panels
    made = binary.plan(BinaryForward("mul", scales, points, panels), Attr(), engine)
    if not isinstance(made, Plan):
        raise Refused(made.reason)
    places = {"src0": SCALES if plain_scales else "scales", "src1": POINTS, "dst": "offsets"}
    assembly.add_plan(made, {name: View(place) for name, place in places.items()})
