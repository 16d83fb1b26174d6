"""Products with weights of 4 or 8 bits whose scales are by groups of k: weights become f32 in registers.

Scales and zero points come with the call, one for each column of a group, and are brought into panels in front.
"""

from dataclasses import replace

from asmdnn.errors import InvalidArguments
from asmdnn.generators.dot.quantized import panel_columns
from asmdnn.generators.dot.unpacked import UnpackedProductSpec
from asmdnn.isa.vectors import f32_level, lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import View
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import Attr, Binary
from asmdnn.primitives.attributes.chain import BIAS, Chain, Link, check_accumulation, post_ops_of
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import implementation
from asmdnn.primitives.elementwise import binary
from asmdnn.primitives.elementwise.binary import BinaryForward
from asmdnn.primitives.products.matmul import MatMul
from asmdnn.primitives.quantized.description import QuantizedMatMul
from asmdnn.primitives.quantized.panels import PanelTile, Tensors, finished, readable
from asmdnn.primitives.quantized.unpacked import UnpackedPlan
from asmdnn.primitives.reorder.copies import Reordering, add_reorder
from asmdnn.primitives.shapes.formats import row_major
from asmdnn.types import F32_BYTES, FLOATS, DataType, f32, s4, s8, s32, u4, u8

NAME = "unpacking"
MATRIX = 2  # dims
BOTH_DIMS = 3  # the mask
WEIGHTS = {s4: 4, u4: 4, s8: 8, u8: 8}  # and their bits
SCALES, POINTS = "weights_scales", "weights_zero_points"


@implementation(NAME, f32_level)
def plan(desc: MatMul, attr: Attr, engine: Engine) -> Plan:
    """Plan a product.  Raises Refused, and InvalidArguments for groups that do not fit."""
    group = group_of(desc, attr)
    check_accumulation(attr, f32)
    chain, isa = chain_behind(desc, attr), f32_level(engine.isa)
    (m, k), n = desc.src.dims, desc.dst.dims[1]
    bits, columns = WEIGHTS[desc.weights.dtype], panel_columns(lanes_of(isa))
    table = MemoryDesc((k // group, n), f32, "ab")
    panels = MemoryDesc(table.dims, f32, f"Ba{columns}b")
    points = panels if attr.zero_points else None
    inner = QuantizedMatMul(
        MemoryDesc((m, k), f32, "ab"),
        MemoryDesc((k * bits // 8, n), u8, "any"),
        panels,
        MemoryDesc((m, n), desc.dst.dtype, "any"),
        points,
    )
    tensors = tensors_of(desc, chain, MemoryDesc((k, n), desc.weights.dtype, f"BA{columns}b{32 // bits}a"))
    vector = (table.nelems(),)
    arguments = {SCALES: MemoryDesc(vector, f32, "a")}
    assembly = Assembly(engine.tuning, engine.isa)
    if desc.dst.nelems():
        plain_scales = n % columns == 0
        if not plain_scales:
            assembly.scratch["scales"] = panels.size_bytes
            add_reorder(assembly, Reordering(SCALES, table, "scales", panels))
        if points is not None:
            arguments[POINTS] = MemoryDesc(vector, s32, "a")
            assembly.scratch["offsets"] = panels.size_bytes
            add_offsets(assembly, table, panels, engine)
        inside = {**tensors.inside, **({"offsets": panels} if points else {})}
        CodedPlan(inner, chain, inside, isa, assembly).of(desc.weights.dtype, plain_scales).add()
    elif points is not None:
        arguments[POINTS] = MemoryDesc(vector, s32, "a")
    found = Tensors({**tensors.passed, **arguments}, {**tensors.inside, **arguments})
    return finished(NAME, CodedPlan(inner, chain, found.inside, isa, assembly), found, engine)


class CodedPlan(UnpackedPlan):
    """Of weights that are signed or not, nibbles in the order of k."""

    signed = False

    def of(self, weights: DataType, plain_scales: bool) -> "CodedPlan":
        self.signed, self.plain_scales = weights in (s4, s8), plain_scales
        self.scales = SCALES if plain_scales else "scales"
        return self

    def spec(self, tile: PanelTile) -> UnpackedProductSpec:
        row_bytes = F32_BYTES * self.n if self.plain_scales else 0
        return replace(super().spec(tile), signed=self.signed, in_order=True, scales_row_bytes=row_bytes)


def group_of(desc: MatMul, attr: Attr) -> int:
    """How many k share a scale.  Raises Refused, InvalidArguments."""
    groups = dict(attr.groups).get("weights")
    if desc.weights.dtype not in WEIGHTS or desc.src.dtype not in FLOATS or desc.dst.dtype not in FLOATS:
        raise Refused(f"{desc.src.dtype} times {desc.weights.dtype} to {desc.dst.dtype} is not floats times integers")
    if groups is None or dict(attr.scales) != {"weights": BOTH_DIMS}:
        raise Refused("scales are not of weights alone, of mask 3 and by groups: groups={'weights': (32, 1)}")
    if desc.src.ndims != MATRIX:
        raise Refused(f"src has {desc.src.ndims} dims, only matrices are implemented")
    if dict(attr.zero_points) not in ({}, {"weights": BOTH_DIMS}):
        raise Refused("zero points are not of weights alone, of mask 3, as their scales")
    group, along = groups
    k = desc.src.dims[1]
    if along != 1 or group % 16 or not 16 <= group <= 256:
        raise Refused(f"groups of weights are {groups}, they must be of 16 to 256 k, a multiple of 16, and of 1 column")
    if not k or k % group:
        raise InvalidArguments(f"groups of weights are {groups}, which do not divide k, {k}")
    return int(group)


def chain_behind(desc: MatMul, attr: Attr) -> Chain:
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
    weights = panels if desc.weights.is_any else desc.weights
    if weights != panels and weights.dtype.in_a_byte > 1:
        raise Refused(f"weights are {weights}, kernels take {panels}: reorder them to what `any` becomes")
    if passed["dst"].may_overlap:
        raise Refused("elements of dst overlap")
    inside = {name: readable(t) for name, t in passed.items()}
    src = inside["src"]
    inside["src"] = src if src.dtype == f32 else MemoryDesc(src.dims, f32, "ab")
    return Tensors({**passed, "weights": weights}, {**inside, "weights": panels})


def add_offsets(assembly: Assembly, table: MemoryDesc, panels: MemoryDesc, engine: Engine) -> None:
    """Scales times zero points."""
    points = MemoryDesc(table.dims, s32, "ab")
    made = binary.plan(BinaryForward("mul", table, points, panels), Attr(), engine)
    if not isinstance(made, Plan):
        raise Refused(made.reason)
    places = {"src0": SCALES, "src1": POINTS, "dst": "offsets"}
    assembly.add_plan(made, {name: View(place) for name, place in places.items()})
