"""The plan of a product with weights of 4 or 8 bits that become f32 in registers; src is multiplied as it is."""

from asmdnn.generators.dot.unpacked import ROWS_BY_GROUPS, UnpackedProductSpec, unpacked_rows, unpacked_vectors
from asmdnn.isa.vectors import f32_level
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.plan import Plan
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.attributes.chain import check_accumulation
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.core.implementation import implementation
from asmdnn.primitives.quantized.description import QuantizedMatMul
from asmdnn.primitives.quantized.panels import PanelPlan, PanelTile, Tensors, chain_after, finished, tensors_of
from asmdnn.types import F32_BYTES, f32

NAME = "unpacking"
NUMBER_CYCLES = 2  # of a vector of numbers: about


@implementation(NAME, f32_level)
def plan(desc: QuantizedMatMul, attr: Attr, engine: Engine) -> Plan:
    """Plan a product.  Raises Refused, and InvalidArguments for post-ops that do not fit dst."""
    chain = chain_after(attr)
    check_accumulation(attr, f32)
    isa = f32_level(engine.isa)
    found = tensors_of(desc, chain, isa)
    src = found.inside["src"]
    inside = {**found.inside, "src": src if src.dtype == f32 else MemoryDesc(src.dims, f32, "ab")}
    products = UnpackedPlan(desc, chain, inside, isa, Assembly(engine.tuning, engine.isa))
    if desc.dst.nelems():
        products.add()
    return finished(NAME, products, Tensors(found.passed, inside), engine)


class UnpackedPlan(PanelPlan):
    """One phase."""

    def add(self) -> None:
        most = unpacked_rows(self.isa)
        self.most_rows = -(-self.m // -(-self.m // most))  # of as many tiles as must be, equal ones
        self.add_products()

    def sources(self) -> dict[str, tuple[int, int]]:
        start, row, _ = self.place("src")
        return {"src": (start, row)}

    def vectors_of(self, rows: int) -> int:
        return unpacked_vectors(self.isa, rows, self.as_many(rows))

    def as_many(self, rows: int) -> bool:
        """Whether few rows are summed as more are."""
        return self.assembly.tuning.products.scaled_rows <= rows <= ROWS_BY_GROUPS

    def spec(self, tile: PanelTile) -> UnpackedProductSpec:
        _, src_row_bytes, _ = self.place("src")
        return UnpackedProductSpec(
            isa=self.isa,
            rows=tile.rows,
            columns=tile.columns,
            vectors=tile.vectors,
            depth=self.k,
            group=self.desc.group,
            src_row_bytes=src_row_bytes if tile.rows > 1 else F32_BYTES * self.k,
            dst_row_bytes=tile.dst_row_bytes,
            offsets=self.has_offsets,
            zero_point=0.0 if self.has_offsets else self.desc.zero_point,
            after=self.chain.on_registers(tile.operands),
            kind=self.desc.dst.dtype.name,
            bits=self.desc.bits,
            table=self.desc.table,
            as_many=self.as_many(tile.rows),
        )

    def cycles(self, tile: PanelTile) -> int:
        return tile.vectors * (NUMBER_CYCLES + tile.rows // 2) * self.k
