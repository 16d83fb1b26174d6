"""The plan of a product with weights of 4 or 8 bits that are multiplied as such: rows of src as bytes, then tiles."""

from collections.abc import Iterator

from asmdnn.generators.dot.quantize import QuantizeSpec
from asmdnn.generators.dot.quantized import QuantizedProductSpec, rows_together, vectors_of
from asmdnn.isa.nibbles import nibble_level
from asmdnn.isa.vectors import f32_level
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.calls import Call, phases_of
from asmdnn.planning.loops import Loop
from asmdnn.planning.phase import views
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.chain import check_accumulation
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import implementation
from asmdnn.primitives.quantized.description import QuantizedMatMul
from asmdnn.primitives.quantized.panels import (
    CALL_CYCLES,
    LANE_BITS,
    PanelPlan,
    PanelTile,
    chain_after,
    finished,
    spans_of,
    tensors_of,
)
from asmdnn.types import F32_BYTES, s32

NAME = "nibbles"
OCTETS, SCALES, SUMS = "src as bytes", "scales of src", "sums of src"
ROWS_OF_RECORD = 8  # that are quantised in one
VECTOR_CYCLES, GROUP_CYCLES = 2, 20  # of a vector of weights, a group of src: about


@implementation(NAME, nibble_level)
def plan(desc: QuantizedMatMul, attr: Attr, engine: Engine) -> Plan:
    """Plan a product.  Raises Refused, and InvalidArguments for post-ops that do not fit dst."""
    chain = chain_after(attr)
    check_accumulation(attr, s32)
    if desc.table:
        raise Refused(f"weights are numbers of {desc.table}, which are no integers")
    isa = nibble_level(engine.isa)
    tensors = tensors_of(desc, chain, isa)
    products = NibblePlan(desc, chain, tensors.inside, isa, Assembly(engine.tuning, engine.isa))
    if desc.dst.nelems():
        products.add()
    return finished(NAME, products, tensors, engine)


class NibblePlan(PanelPlan):
    """src is rounded in a phase in front."""

    def add(self) -> None:
        assembly, phases = self.assembly, self.assembly.tuning.phases
        self.most_rows = rows_together(self.isa, self.desc.bits)
        numbers = F32_BYTES * self.m * self.groups
        assembly.scratch |= {OCTETS: self.m * self.k, SCALES: numbers, SUMS: numbers}
        assembly.add(phases_of(list(self.quantizing()), views(("src", OCTETS, SCALES, SUMS)), phases))
        self.add_products()

    def quantizing(self) -> Iterator[Call]:
        """Records of a few rows."""
        src, factor = self.tensors["src"], 1.0 if self.has_offsets else -self.desc.zero_point
        size = src.dtype.size_bytes
        for span in spans_of(self.m, ROWS_OF_RECORD):
            row_bytes = size * src.strides[0] if span.size > 1 else size * self.k
            spec = QuantizeSpec(
                isa=f32_level(self.isa), rows=span.size, elements=self.k, group=self.desc.group,
                src_row_bytes=row_bytes, factor=factor, kind=src.dtype.name,
            )  # fmt: skip
            steps = (size * src.strides[0], self.k, F32_BYTES * self.groups, F32_BYTES * self.groups)
            starts = [span.first * step for step in steps]
            starts[0] += size * src.offset0
            loops = (Loop(span.times, tuple(span.size * step for step in steps)),) if span.times > 1 else ()
            yield Call(spec, tuple(starts), loops, CALL_CYCLES + GROUP_CYCLES * span.size * self.groups)

    def sources(self) -> dict[str, tuple[int, int]]:
        numbers = F32_BYTES * self.groups
        return {OCTETS: (0, self.k), SCALES: (0, numbers), SUMS: (0, numbers)}

    def vectors_of(self, rows: int) -> int:
        return vectors_of(self.isa, rows, self.desc.bits)

    def spec(self, tile: PanelTile) -> QuantizedProductSpec:
        return QuantizedProductSpec(
            isa=self.isa, rows=tile.rows, columns=tile.columns, vectors=tile.vectors, depth=self.k,
            group=self.desc.group, dst_row_bytes=tile.dst_row_bytes, offsets=self.has_offsets,
            after=self.chain.on_registers(tile.operands), kind=self.desc.dst.dtype.name, bits=self.desc.bits,
        )  # fmt: skip

    def cycles(self, tile: PanelTile) -> int:
        return VECTOR_CYCLES * tile.vectors * (1 + tile.rows) * self.k * self.desc.bits // LANE_BITS
