"""The plan of a product with weights of 4 or 8 bits: rows of src as bytes, then tiles of few rows, part of a panel.

Panels have the columns of four vectors, so that the weights and scales of a tile are two streams.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from asmdnn.generators.dot.quantize import QuantizeSpec
from asmdnn.generators.dot.quantized import (
    PANEL_VECTORS,
    QuantizedProductSpec,
    panel_columns,
    rows_together,
    vectors_of,
)
from asmdnn.generators.functions.postops import Operand
from asmdnn.isa.nibbles import nibble_level
from asmdnn.isa.vectors import f32_level, lanes_of, vector_bytes
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.calls import Call, phases_of
from asmdnn.planning.loops import Loop
from asmdnn.planning.phase import views
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.chain import Chain, post_ops_of
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import implementation
from asmdnn.primitives.elementwise.schedule import check_tensors
from asmdnn.primitives.quantized.description import QuantizedMatMul
from asmdnn.primitives.reorder.copies import between_reorders
from asmdnn.primitives.shapes.formats import row_major
from asmdnn.types import F32_BYTES, bf16, f16, f32

NAME = "nibbles"
LANE_BITS = 32
OCTETS, SCALES, SUMS = "src as bytes", "scales of src", "sums of src"
TYPES = (f32.name, bf16.name, f16.name)  # of src and dst
ROWS_OF_RECORD = 8  # that are quantised in one
VECTOR_CYCLES, GROUP_CYCLES, CALL_CYCLES = 2, 20, 60  # of a vector of weights, a group of src, a call: about


@implementation(NAME, nibble_level)
def plan(desc: QuantizedMatMul, attr: Attr, engine: Engine) -> Plan:
    """Plan a product.  Raises Refused, and InvalidArguments for post-ops that do not fit dst."""
    if attr.quantizes:
        raise Refused("scales and zero points are not implemented")
    chain = post_ops_of(attr)
    if chain.reads_dst:
        raise Refused("post-op sum is not implemented")
    isa = nibble_level(engine.isa)
    columns = panel_columns(lanes_of(isa))
    formats = {"weights": f"BA{columns}b4a", "scales": f"Ba{columns}b", "offsets": f"Ba{columns}b"}
    given = {name: getattr(desc, name) for name in ("src", *formats) if getattr(desc, name) is not None}
    panels = {name: MemoryDesc(t.dims, t.dtype, formats[name]) for name, t in given.items() if name in formats}
    asked = {**given, "dst": desc.dst}
    passed = {name: panels.get(name, row_major(t.dims, t)) if t.is_any else t for name, t in asked.items()}
    passed |= chain.operands(passed["dst"])
    check_tensors({name: passed[name] for name in ("src", "dst")}, "dst", TYPES)
    tensors = {name: panels.get(name, readable(t)) for name, t in passed.items()}
    assembly = Assembly(engine.tuning, engine.isa)
    if desc.dst.nelems():
        QuantizedPlan(desc, chain, tensors, isa, assembly).add()
    whole = assembly.plan(f"{NAME}:{isa}", tensors, ("dst",))
    return between_reorders(whole, passed, engine.tuning, isa=engine.isa)


def readable(tensor: MemoryDesc) -> MemoryDesc:
    """A matrix with dense rows."""
    is_read = not tensor.inner_blocks and (tensor.strides[1] == 1 or tensor.dims[1] == 1)
    return tensor if is_read else row_major(tensor.dims, tensor)


@dataclass(frozen=True, slots=True)
class Span:
    """Some rows from one on, `times` such tiles one behind the other; and likewise the columns of panels."""

    first: int
    size: int
    times: int


def spans_of(whole: int, most: int) -> Iterator[Span]:
    """Equal ones, and the rest."""
    times, rest = divmod(whole, most)
    if times:
        yield Span(0, most, times)
    if rest:
        yield Span(times * most, rest, 1)


class QuantizedPlan:
    """Phases as they come together."""

    def __init__(
        self, desc: QuantizedMatMul, chain: Chain, tensors: Mapping[str, MemoryDesc], isa: str, assembly: Assembly
    ) -> None:
        self.desc, self.chain, self.tensors, self.isa, self.assembly = desc, chain, tensors, isa, assembly
        (self.m, self.k), (_, self.n) = desc.src.dims, desc.dst.dims
        self.groups = self.k // desc.group
        self.has_offsets = "offsets" in tensors

    def add(self) -> None:
        assembly, phases = self.assembly, self.assembly.tuning.phases
        numbers = F32_BYTES * self.m * self.groups
        assembly.scratch |= {OCTETS: self.m * self.k, SCALES: numbers, SUMS: numbers}
        assembly.add(phases_of(list(self.quantizing()), views(("src", OCTETS, SCALES, SUMS)), phases))
        names = (OCTETS, SCALES, SUMS, "weights", "scales", *["offsets"] * self.has_offsets, "dst", *self.chain.names)
        most = rows_together(self.isa, self.desc.bits)
        calls = [call for rows in spans_of(self.m, most) for call in self.products(rows)]
        assembly.add(phases_of(calls, views(names), phases))

    def quantizing(self) -> Iterator[Call]:
        """Records of a few rows."""
        src, factor = self.tensors["src"], 1.0 if self.has_offsets else -self.desc.zero_point
        size = src.dtype.size_bytes
        for span in spans_of(self.m, ROWS_OF_RECORD):
            row_bytes = size * src.strides[0] if span.size > 1 else size * self.k
            spec = QuantizeSpec(
                f32_level(self.isa),
                span.size,
                self.k,
                group=self.desc.group,
                src_row_bytes=row_bytes,
                factor=factor,
                kind=src.dtype.name,
            )
            steps = (size * src.strides[0], self.k, F32_BYTES * self.groups, F32_BYTES * self.groups)
            starts = [span.first * step for step in steps]
            starts[0] += size * src.offset0
            loops = (Loop(span.times, tuple(span.size * step for step in steps)),) if span.times > 1 else ()
            yield Call(spec, tuple(starts), loops, CALL_CYCLES + GROUP_CYCLES * span.size * self.groups)

    def products(self, rows: Span) -> Iterator[Call]:
        """Of these rows: all whole panels part by part, then the last one."""
        lanes = lanes_of(self.isa)
        vectors = vectors_of(self.isa, rows.size, self.desc.bits)
        for panels in spans_of(self.n, PANEL_VECTORS * lanes):
            used = -(-panels.size // lanes)
            for first in range(0, used, vectors):
                some = min(vectors, used - first)
                columns = min(panels.size - first * lanes, some * lanes)
                yield self.product(rows, panels, (first, some, columns))

    def product(self, rows: Span, panels: Span, part: tuple[int, int, int]) -> Call:
        """part: of every panel the first vector, how many, and how many columns these have in dst."""
        first, vectors, columns = part
        lanes, register = lanes_of(self.isa), vector_bytes(self.isa)
        column, width = panels.first + first * lanes, PANEL_VECTORS * register
        panel = panels.first // (PANEL_VECTORS * lanes)
        places = {name: self.place(name) for name in ("dst", *self.chain.names)}
        operands = {
            name: Operand(i, places[name][1] if rows.size > 1 else 0, 0, places[name][2] == 0 and columns > 1)
            for i, name in enumerate(places, 5 + self.has_offsets)
        }
        own = {
            "weights": (self.k * self.desc.bits // LANE_BITS * width, register * first),
            "scales": (self.groups * width, register * first),
            "offsets": (self.groups * width, register * first),
        }
        starts, along, down = [], [], []
        for name in (OCTETS, SCALES, SUMS):
            row = self.k if name == OCTETS else F32_BYTES * self.groups
            starts.append(rows.first * row)
            along.append(0)
            down.append(rows.size * row)
        for name in ("weights", "scales", *["offsets"] * self.has_offsets):
            size, start = own[name]
            starts.append(panel * size + start)
            along.append(size)
            down.append(0)
        for base, row, step in places.values():
            starts.append(base + rows.first * row + column * step)
            along.append(PANEL_VECTORS * lanes * step)
            down.append(rows.size * row)
        dst = operands.pop("dst")
        spec = QuantizedProductSpec(
            isa=self.isa,
            rows=rows.size,
            columns=columns,
            vectors=vectors,
            depth=self.k,
            group=self.desc.group,
            dst_row_bytes=dst.row_bytes,
            offsets=self.has_offsets,
            after=self.chain.on_registers(operands),
            kind=self.desc.dst.dtype.name,
            bits=self.desc.bits,
        )
        loops = tuple(
            Loop(span.times, tuple(steps)) for span, steps in ((panels, along), (rows, down)) if span.times > 1
        )
        cycles = CALL_CYCLES + VECTOR_CYCLES * vectors * (1 + rows.size) * self.k * self.desc.bits // LANE_BITS
        return Call(spec, tuple(starts), loops, cycles)

    def place(self, name: str) -> tuple[int, int, int]:
        """Of dst and what is read beside it: where it starts, bytes from row to row, and from column to column."""
        tensor = self.tensors[name]
        size = tensor.dtype.size_bytes
        row, column = (size * step if n > 1 else 0 for n, step in zip(tensor.dims, tensor.strides, strict=True))
        return size * tensor.offset0, row, column
