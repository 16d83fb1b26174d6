"""Products of rows with panels of packed weights: tiles of few rows, part of a panel each.

Panels have the columns of four vectors, so that the weights and scales of a tile are two streams.
"""

from collections.abc import Iterator, Mapping

from asmdnn.generators.contract import KernelSpec
from asmdnn.generators.dot.panel_product import PANEL_VECTORS
from asmdnn.generators.dot.quantized import panel_columns
from asmdnn.generators.functions.postops import Operand
from asmdnn.isa.vectors import lanes_of, vector_bytes
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.calls import Call, phases_of
from asmdnn.planning.loops import Loop
from asmdnn.planning.phase import views
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import Attr, refuse_scales
from asmdnn.primitives.attributes.chain import Chain, post_ops_of
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.quantized.description import QuantizedMatMul
from asmdnn.primitives.reorder.copies import between_reorders
from asmdnn.primitives.shapes.formats import row_major
from asmdnn.primitives.shapes.tensors import check_tensors
from asmdnn.records import dataclass
from asmdnn.types import FLOAT_NAMES

LANE_BITS = 32
CALL_CYCLES = 60  # about


@dataclass(frozen=True, slots=True)
class Span:
    """Some rows from one on, `times` such tiles one after the other; and likewise the columns of panels."""

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


@dataclass(frozen=True, slots=True)
class PanelTile:
    """Of a product: rows, columns that dst has of so many vectors of a panel, dst's distance of rows, post-ops."""

    rows: int
    columns: int
    vectors: int
    dst_row_bytes: int
    operands: Mapping[str, Operand]


class PanelPlan:
    """Phases as they come together.  most_rows: of a tile.  scales: the buffer; plain_scales: rows of all columns,
    which are whole panels."""

    most_rows: int
    scales, plain_scales = "scales", False

    def __init__(
        self, desc: QuantizedMatMul, chain: Chain, tensors: Mapping[str, MemoryDesc], isa: str, assembly: Assembly
    ) -> None:
        self.desc, self.chain, self.tensors, self.isa, self.assembly = desc, chain, tensors, isa, assembly
        (self.m, self.k), (_, self.n) = desc.src.dims, desc.dst.dims
        self.groups = self.k // desc.group
        self.has_offsets = "offsets" in tensors

    def sources(self) -> dict[str, tuple[int, int]]:
        """What kernels read of rows of src, in the order of frames: where it starts, and bytes from row to row."""
        raise NotImplementedError

    def spec(self, tile: PanelTile) -> KernelSpec:
        raise NotImplementedError

    def vectors_of(self, rows: int) -> int:
        """How many of a panel a tile of so many rows has."""
        raise NotImplementedError

    def cycles(self, tile: PanelTile) -> int:
        raise NotImplementedError

    def add_products(self) -> None:
        names = (*self.sources(), "weights", self.scales, *["offsets"] * self.has_offsets, "dst", *self.chain.names)
        calls = [call for rows in spans_of(self.m, self.most_rows) for call in self.products(rows)]
        self.assembly.add(phases_of(calls, views(names), self.assembly.tuning.phases))

    def products(self, rows: Span) -> Iterator[Call]:
        """Of these rows: all whole panels part by part, then the last one."""
        lanes = lanes_of(self.isa)
        vectors = self.vectors_of(rows.size)
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
        sources = self.sources()
        argument = len(sources) + 2 + self.has_offsets
        operands = {
            name: Operand(i, places[name][1] if rows.size > 1 else 0, 0, places[name][2] == 0 and columns > 1)
            for i, name in enumerate(places, argument)
        }
        own = {
            "weights": (self.k * self.desc.bits // LANE_BITS * width, register * first),
            "scales": (width if self.plain_scales else self.groups * width, register * first),
            "offsets": (self.groups * width, register * first),
        }
        starts, along, down = [], [], []
        for start, row in sources.values():
            starts.append(start + rows.first * row)
            along.append(0)
            down.append(rows.size * row)
        for name in own if self.has_offsets else ("weights", "scales"):
            size, start = own[name]
            starts.append(panel * size + start)
            along.append(size)
            down.append(0)
        for base, row, step in places.values():
            starts.append(base + rows.first * row + column * step)
            along.append(PANEL_VECTORS * lanes * step)
            down.append(rows.size * row)
        dst = operands.pop("dst")
        tile = PanelTile(rows.size, columns, vectors, dst.row_bytes, operands)
        loops = tuple(
            Loop(span.times, tuple(steps)) for span, steps in ((panels, along), (rows, down)) if span.times > 1
        )
        return Call(self.spec(tile), tuple(starts), loops, CALL_CYCLES + self.cycles(tile))

    def place(self, name: str) -> tuple[int, int, int]:
        """Of a matrix: where it starts, bytes from row to row, and from column to column."""
        tensor = self.tensors[name]
        size = tensor.dtype.size_bytes
        row, column = (size * step if n > 1 else 0 for n, step in zip(tensor.dims, tensor.strides, strict=True))
        return size * tensor.offset0, row, column


@dataclass(frozen=True, slots=True)
class Tensors:
    """passed: by the caller; inside: as kernels read them."""

    passed: Mapping[str, MemoryDesc]
    inside: Mapping[str, MemoryDesc]


def tensors_of(desc: QuantizedMatMul, chain: Chain, isa: str) -> Tensors:
    """In the formats that kernels of this level take.  Raises Refused."""
    columns = panel_columns(lanes_of(isa))
    formats = {"weights": f"BA{columns}b4a", "scales": f"Ba{columns}b", "offsets": f"Ba{columns}b"}
    given = {name: getattr(desc, name) for name in ("src", *formats) if getattr(desc, name) is not None}
    panels = {name: MemoryDesc(t.dims, t.dtype, formats[name]) for name, t in given.items() if name in formats}
    asked = {**given, "dst": desc.dst}
    passed = {name: panels.get(name, row_major(t.dims, t)) if t.is_any else t for name, t in asked.items()}
    passed |= chain.operands(passed["dst"])
    check_tensors({name: passed[name] for name in ("src", "dst")}, "dst", FLOAT_NAMES)
    return Tensors(passed, {name: panels.get(name, readable(t)) for name, t in passed.items()})


def readable(tensor: MemoryDesc) -> MemoryDesc:
    """A matrix with dense rows."""
    is_read = not tensor.inner_blocks and (tensor.strides[1] == 1 or tensor.dims[1] == 1)
    return tensor if is_read else row_major(tensor.dims, tensor)


def chain_after(attr: Attr) -> Chain:
    """Raises Refused for what these kernels do not do."""
    refuse_scales(attr)
    chain = post_ops_of(attr)
    if chain.reads_dst:
        raise Refused("post-op sum is not implemented")
    return chain


def finished(name: str, products: PanelPlan, tensors: Tensors, engine: Engine) -> Plan:
    """Of all phases, between reorders where a caller passes other formats."""
    whole = products.assembly.plan(f"{name}:{products.isa}", tensors.inside, ("dst",))
    return between_reorders(whole, tensors.passed, engine.tuning, isa=engine.isa)
