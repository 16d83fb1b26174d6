"""A reorder's plan: quantized or not, and with the sums that the destination asks for.

Its implementations say how it moves elements: by rows, through registers, or one by one (blocks.py).
"""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final

from asmdnn.generators.move.convert import ConvertSpec
from asmdnn.generators.move.convert_narrow import ConvertNarrowSpec
from asmdnn.generators.move.convert_pixels import ConvertDeinterleaveSpec, ConvertInterleaveSpec
from asmdnn.generators.move.convert_transpose import ConvertTransposeSpec
from asmdnn.generators.move.interleave import InterleaveSpec
from asmdnn.generators.move.transpose import TransposeSpec
from asmdnn.generators.move.triples import TriplesBlock
from asmdnn.isa.vectors import f32_level
from asmdnn.memory.summed import SummedDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import Phase
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import implementations_of
from asmdnn.primitives.reorder.compensation import add_compensation, add_sums, compensation_desc
from asmdnn.primitives.reorder.quantization import add_quantized, quantization_of
from asmdnn.primitives.reorder.reorder import Reorder
from asmdnn.primitives.shapes.tensors import refuse_overlap

ROWS, TRANSPOSES, ELEMENTS = "rows", "transposes", "elements"
WAYS: Final[Mapping[str, str]] = {  # and why a reorder goes this way, and no other one
    ROWS: "elements that are dense in src are dense in dst",
    TRANSPOSES: "one loop is dense in src, another one in dst",
    ELEMENTS: "no loop is dense in src and dst, nor one in each",
}
TRANSPOSING = (
    TransposeSpec, InterleaveSpec, ConvertTransposeSpec, ConvertNarrowSpec, ConvertInterleaveSpec,
    ConvertDeinterleaveSpec, TriplesBlock,
)  # fmt: skip


def planned(desc: Reorder, attr: Attr, engine: Engine) -> Plan:
    """Plan a reorder.  Raises Refused."""
    if any(tensor.dtype.in_a_byte > 1 for tensor in (desc.src, desc.dst)):
        raise Refused("elements that share a byte become bytes first")
    return reordered(desc, attr, engine)


def taken(plan: Plan, way: str) -> Plan:
    """The plan, if its kernels go this way.  Raises Refused."""
    own = plan.implementation.partition(":")[0]
    if own != way:
        raise Refused(WAYS[own])
    return plan


plans = implementations_of(planned, {way: partial(taken, way=way) for way in WAYS}, f32_level)


def reordered(desc: Reorder, attr: Attr, engine: Engine) -> Plan:
    """The plan for elements of whole bytes.  Raises Refused."""
    if not (desc.src.holds_elements and desc.dst.holds_elements):
        raise Refused(f"elements of {desc.src} or {desc.dst} are transformed")
    refuse_overlap(dst=desc.dst)
    quantization, assembly = quantization_of(desc.src, desc.dst, attr), Assembly(engine.tuning, engine.isa)
    add_quantized(assembly, desc.src.storage, desc.dst.storage, quantization)
    if isinstance(desc.dst, SummedDesc):
        add_sums(assembly, desc.dst)
    tensors = {"src": desc.src, "dst": desc.dst, **quantization.tensors}
    if desc.compensation is not None:
        add_compensation(assembly, desc.dst.storage, desc.compensation)
        tensors["compensation"] = compensation_desc(desc.dst, desc.compensation)
    outputs = tuple(name for name in ("dst", "compensation") if name in tensors)
    return assembly.plan(f"{way_of(assembly.phases)}:{f32_level(engine.isa)}", tensors, outputs)


def way_of(phases: Iterable[Phase]) -> str:
    """How elements are moved.  A plan mixes kernels, as the rest of a cut dim, or padding, is often another one's."""
    specs = [spec for phase in phases for spec in phase.kernels]
    if any(isinstance(spec, TRANSPOSING) for spec in specs):
        return TRANSPOSES
    return ELEMENTS if any(isinstance(spec, ConvertSpec) and not spec.is_dense for spec in specs) else ROWS
