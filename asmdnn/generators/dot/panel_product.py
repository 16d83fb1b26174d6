"""What products of rows with a panel of packed weights have in common: pointers, post-ops, and the stores."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint, Range
from asmdnn.generators.functions.chain import chain_words, compose, operands_of
from asmdnn.generators.functions.postops import Operand, PostOp
from asmdnn.generators.functions.row_code import Computation
from asmdnn.generators.functions.rows import Vectors, operands_touched, rows_touched
from asmdnn.generators.functions.typed_program import of_lanes
from asmdnn.generators.functions.values import Source
from asmdnn.generators.stepping import repeated
from asmdnn.isa.assembler import Register, mem
from asmdnn.isa.elements import size_of
from asmdnn.isa.registers import Shaped
from asmdnn.isa.vector import Broadcast, Lanes, Vector
from asmdnn.isa.vectors import vector_class

PANEL_VECTORS: Final = 4
QUAD_BYTES: Final = 4


class PanelProduct:
    """What specs have in common.  depth: of k, in groups of `group`; bits: of an element of weights."""

    __slots__ = ()
    isa: str
    rows: int
    columns: int
    depth: int
    group: int
    dst_row_bytes: int
    after: tuple[PostOp, ...]
    kind: str
    bits: int
    offsets: bool

    def named(self, what: str) -> str:
        """The name of the kernel."""
        size = f"{self.rows}x{self.columns}x{self.depth}by{self.group}"
        words = [*["offsets"] * self.offsets, *chain_words(self.after), checksum(self)]
        return f"{what}_{self.kind}_{size}_{'_'.join(words)}__{self.isa}"

    def touched(self, reads: Iterable[Range]) -> Footprint:
        """With what post-ops read, and dst."""
        operands = operands_touched(self.after, self.rows, self.columns)
        written = rows_touched(self.dst, self.rows, self.dst_row_bytes, self.columns, size_of(self.kind))
        return Footprint(tuple(dict.fromkeys((*reads, *operands))), written)

    @property
    def frame(self) -> tuple[str, ...]:
        raise NotImplementedError

    @property
    def block(self) -> int:
        """How many k a lane holds."""
        return 8 * QUAD_BYTES // self.bits

    @property
    def dst(self) -> int:
        """The number of its argument."""
        return self.frame.index("dst")

    @property
    def groups(self) -> int:
        return self.depth // self.group

    @property
    def panel_bytes(self) -> int:
        """Of a panel's row, of scales as of weights."""
        return PANEL_VECTORS * vector_class(self.isa).bytes


class PanelProductCode(Computation):
    """sums: a register for each row and vector, which hold the products in the end.  pointers: to all arguments before
    dst.  held: registers that are free then."""

    sums: list[list[Register]]
    pointers: list[Register]
    held: list[Shaped]

    def __init__(self, product: PanelProduct, v: Vector) -> None:
        super().__init__(v)
        self.product = product

    def pointer(self, argument: int) -> Register:
        asm = self.v.asm
        found: Register = asm.gp.take(f"argument {argument}")
        asm.MOV(found, mem(asm.frame, 8 * argument))
        return found

    def emit(self) -> None:
        """Group after group, then the end."""
        v = self.v
        v.zeros(self.sums)
        with v.asm.repeated(self.product.groups, "groups left", "groups"):
            self.group()
        v.asm.gp.free(self.pointers)
        v.registers.free(self.held)
        self.end()

    def group(self) -> None:
        """The products of a group; pointers go on to the next one."""
        raise NotImplementedError

    @contextmanager
    def some_blocks(self, most: int) -> Iterator[int]:
        """Around the code for as many blocks of a group as it yields, for all of them."""
        blocks = self.product.group // self.product.block
        unrolled = next(n for n in range(min(most, blocks), 0, -1) if blocks % n == 0)
        with repeated(self.v.asm, blocks // unrolled, "blocks"):
            yield unrolled

    def end(self) -> None:
        """Post-ops, and the stores."""
        v, spec = self.v, self.product
        v.asm.role("results")
        full, rest = divmod(spec.columns, v.lanes)
        parts: list[Lanes] = [*[v] * full, *([v.tail(rest)] if rest else [])]
        vectors, dst = Vectors(v, parts, 0, None), self.pointer(spec.dst)
        operands = [self.of_rows(operand, vectors) for operand in operands_of(spec.after)]
        values = [x for of_row in self.sums for x in of_row[: len(parts)]]
        v.registers.free([of_row[len(parts) :] for of_row in self.sums])
        program = of_lanes(compose(spec.after), ("f32",), (spec.kind,))
        results = self.apply(program, [values, *operands])
        for i, x in enumerate(results):
            r, j = divmod(i, len(parts))
            vectors.store_last(dst, j, x, r * spec.dst_row_bytes, spec.kind)

    def of_rows(self, operand: Operand | None, vectors: Vectors) -> list[Source]:
        assert operand is not None, "sums of what dst held are refused"
        pointer = self.pointer(operand.argument)
        found: list[Source] = []
        for r in range(self.product.rows):
            found += vectors.sources(lambda: pointer, operand.element, r * operand.row_bytes)
        return [Source(x.locate, x.lanes or Broadcast(self.v)) for x in found] if self.product.rows > 1 else found
