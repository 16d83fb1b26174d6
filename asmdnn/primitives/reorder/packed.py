"""Reorders from and to types of 4 bits, by way of bytes in the same layout."""

from collections.abc import Iterator

from asmdnn.generators.functions.nibbles import ARGUMENTS, NibblesSpec
from asmdnn.isa.small_floats import byte_of
from asmdnn.isa.vectors import f32_level
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.calls import Call, phases_of
from asmdnn.planning.loops import Loop
from asmdnn.planning.phase import View, views
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import implementation
from asmdnn.primitives.reorder.plan import reordered
from asmdnn.primitives.reorder.quantization import quantization_of
from asmdnn.primitives.reorder.reorder import Reorder
from asmdnn.types import CODED_FLOATS, DATA_TYPES, s4, u4

NAME = "nibbles+reorder"
BYTES_OF = {s4.name: DATA_TYPES["s8"], u4.name: DATA_TYPES["u8"], **{t.name: byte_of(t) for t in CODED_FLOATS}}
PIECE_BYTES = 4096  # of nibbles, in a call
CYCLES_OF_BYTES = 16  # packed in a cycle, about: 1 / 16 of a cycle each


@implementation(NAME, f32_level)
def plan(desc: Reorder, attr: Attr, engine: Engine) -> Plan:
    """Plan a reorder.  Raises Refused."""
    if not any(tensor.dtype.in_a_byte > 1 for tensor in (desc.src, desc.dst)):
        raise Refused("no elements share a byte")
    if attr.post_ops and desc.dst.dtype.in_a_byte > 1:
        raise Refused(f"post-op sum of a dst of {desc.dst.dtype} is not implemented")
    if attr.zero_points and any(tensor.dtype in CODED_FLOATS for tensor in (desc.src, desc.dst)):
        raise Refused("zero points are for integers, and floats of 4 bits have none: leave them out")
    if desc.compensation is not None or desc.dst.may_overlap:
        raise Refused("elements of dst overlap" if desc.dst.may_overlap else "compensation is of s8")
    inside = Reorder(in_bytes(desc.src), in_bytes(desc.dst))
    assembly, engine_isa = Assembly(engine.tuning, engine.isa), f32_level(engine.isa)
    inner = reordered(inside, attr, engine)
    places = {}
    for name, tensor in (("src", desc.src), ("dst", desc.dst)):
        if tensor.dtype.in_a_byte > 1:
            places[name] = f"bytes of {name}"
            assembly.scratch[places[name]] = 2 * tensor.size_bytes
    if "src" in places:
        add_nibbles(assembly, desc.src, ("src", places["src"]), packs=False)
    assembly.add_plan(inner, {name: View(place) for name, place in places.items()})
    if "dst" in places:
        add_nibbles(assembly, desc.dst, (places["dst"], "dst"), packs=True)
    tensors = {"src": desc.src, "dst": desc.dst, **quantization_of(inside.src, inside.dst, attr).tensors}
    return assembly.plan(f"{NAME}:{engine_isa}", tensors, ("dst",))


def in_bytes(tensor: MemoryDesc) -> MemoryDesc:
    """The layout, of a byte for each element."""
    if tensor.dtype.in_a_byte == 1:
        return tensor
    kind, where = BYTES_OF[tensor.dtype.name], {"strides": tensor.strides, "inner_blocks": tensor.inner_blocks}
    return MemoryDesc(tensor.dims, kind, offset0=tensor.offset0, **where)  # type: ignore[arg-type]


def add_nibbles(assembly: Assembly, tensor: MemoryDesc, buffers: tuple[str, str], packs: bool) -> None:
    """All bytes between two buffers."""
    calls = list(calls_of(assembly, tensor, packs))
    assembly.add(phases_of(calls, views(buffers), assembly.tuning.phases))


def calls_of(assembly: Assembly, tensor: MemoryDesc, packs: bool) -> Iterator[Call]:
    """Pieces of one size, and the rest."""
    isa, signed = f32_level(assembly.isa), tensor.dtype == s4
    times, rest = divmod(tensor.size_bytes, PIECE_BYTES)
    sizes = (2, 1) if packs else (1, 2)
    assert len(sizes) == len(ARGUMENTS)
    if times:
        loops = (Loop(times, tuple(PIECE_BYTES * size for size in sizes)),) if times > 1 else ()
        yield Call(
            NibblesSpec(isa=isa, count=PIECE_BYTES, signed=signed, packs=packs),
            (0, 0),
            loops,
            PIECE_BYTES // CYCLES_OF_BYTES,
        )
    if rest:
        starts = tuple(times * PIECE_BYTES * size for size in sizes)
        yield Call(
            NibblesSpec(isa=isa, count=rest, signed=signed, packs=packs), starts, (), 1 + rest // CYCLES_OF_BYTES
        )
