"""A reorder's plan: quantized or not, and with the sums that the destination asks for."""

from asmdnn.isa.vectors import f32_level
from asmdnn.memory.summed import SummedDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import implementation
from asmdnn.primitives.reorder.compensation import add_compensation, add_sums, compensation_desc
from asmdnn.primitives.reorder.quantization import add_quantized, quantization_of
from asmdnn.primitives.reorder.reorder import Reorder


@implementation("reorder", f32_level)
def plan(desc: Reorder, attr: Attr, engine: Engine) -> Plan:
    """Plan a reorder.  Raises Refused."""
    if any(tensor.dtype.in_a_byte > 1 for tensor in (desc.src, desc.dst)):
        raise Refused("elements that share a byte become bytes first")
    return reordered(desc, attr, engine)


def reordered(desc: Reorder, attr: Attr, engine: Engine) -> Plan:
    """The plan for elements of whole bytes.  Raises Refused."""
    if not (desc.src.holds_elements and desc.dst.holds_elements):
        raise Refused(f"elements of {desc.src} or {desc.dst} are transformed")
    if desc.dst.may_overlap:
        raise Refused("elements of dst overlap")
    quantization, assembly = quantization_of(desc.src, desc.dst, attr), Assembly(engine.tuning, engine.isa)
    add_quantized(assembly, desc.src.storage, desc.dst.storage, quantization)
    if isinstance(desc.dst, SummedDesc):
        add_sums(assembly, desc.dst)
    tensors = {"src": desc.src, "dst": desc.dst, **quantization.tensors}
    if desc.compensation is not None:
        add_compensation(assembly, desc.dst.storage, desc.compensation)
        tensors["compensation"] = compensation_desc(desc.dst, desc.compensation)
    outputs = tuple(name for name in ("dst", "compensation") if name in tensors)
    return assembly.plan(f"reorder:{f32_level(engine.isa)}", tensors, outputs)
