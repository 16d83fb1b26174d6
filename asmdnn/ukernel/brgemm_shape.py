"""What the code of a brgemm depends on, and how its results are cut into tiles."""

from typing import Final

from asmdnn.generators.dot.matmul_shape import ARGUMENTS, MatmulTile
from asmdnn.isa.dot import GROUP_BYTES, Types
from asmdnn.isa.dot import blocks_of as most_rows_of
from asmdnn.isa.vectors import lanes_of
from asmdnn.records import dataclass
from asmdnn.types import DataType
from asmdnn.ukernel.operands import Chained

KINDS: Final = ("stride", "offset", "address")
LATENCY: Final = 10  # FMAs that a core has under way, and two more: a tile of fewer sums waits


@dataclass(frozen=True)
class Brgemm:
    """rows, columns, depth: m, n, k.  a_row_bytes, .. : from row to row, of b from group of k to group.

    accumulate: whether sums start from c.  shift: what the dot product adds to a.
    kind: of KINDS, how the batch is given.  steps: bytes from one a, and one b, to the next, of "stride".
    """

    isa: str
    types: Types
    size: tuple[int, int, int]
    a_row_bytes: int
    b_row_bytes: int
    c_row_bytes: int
    dst_row_bytes: int
    dst: DataType
    accumulate: bool
    shift: int
    chain: Chained
    kind: str = KINDS[0]
    steps: tuple[int, int] = (0, 0)

    @property
    def words(self) -> tuple[str, ...]:
        """Of the frame: those of a tile, those of the chain, and those of the batch."""
        operands = (buffer.name for buffer in self.chain.buffers)
        return (*ARGUMENTS, *operands, "c", "compensation", "batch", "offsets", "a_addresses", "b_addresses")

    def tile(self, rows: int, columns: int) -> MatmulTile:
        """That of a part of the results."""
        vectors = -(-columns // lanes_of(self.isa))
        return MatmulTile(
            isa=self.isa,
            rows=rows,
            columns=columns,
            depth=self.size[2],
            src_row_bytes=self.a_row_bytes,
            src_depth_bytes=GROUP_BYTES,
            weights_row_bytes=self.b_row_bytes,
            panel_vectors=vectors,
            panel_bytes=0,
            padded=False,
            dst_row_bytes=self.dst_row_bytes,
            post_ops=self.chain.post_ops,
            types=self.types,
            dst=self.dst,
            operand_types=self.chain.types,
        )

    def cut(self) -> tuple[int, int]:
        """The rows and the vectors of a tile: the fewest cycles, by FMAs and latency, and half of the loads."""
        rows, columns, _ = self.size
        vectors = -(-columns // lanes_of(self.isa))
        most = most_rows_of(self.types, self.isa)
        found = []
        for wide in range(1, min(vectors, max(most)) + 1):
            high = most[min(count for count in most if count >= wide)]
            blocks = -(-rows // high)
            high = -(-rows // blocks)  # blocks of rows that are nearly alike
            tiles = blocks * -(-vectors // wide)
            found.append((tiles * (2 * max(high * wide, LATENCY) + high + wide), tiles, high, wide))
        *_, high, wide = min(found)
        return high, wide
