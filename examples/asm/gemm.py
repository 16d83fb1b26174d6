"""A GEMM micro-kernel from nothing, in seven steps: each is the one before with one more idea, and its time.

C[96, 96] += A[96, k] B[k, 96], in f32, row by row.

python -m examples.asm.gemm
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from asmdnn import asm
from asmdnn.asm import CFunction, FunctionBuilder, Register, mem
from examples.asm.compiled import REORDERED, compiled
from examples.asm.table import Rows, microseconds, show
from examples.command import command

SIDE: Final = 96
ROW: Final = 4 * SIDE  # bytes of a row of B and C
PROTOTYPE: Final = "void gemm(const float *a, const float *b, float *c, size_t k)"
REACH: Final = {"a": f"{ROW}*k", "b": f"{ROW}*k", "c": f"{ROW * SIDE}"}


@dataclass(frozen=True)
class Tile:
    """A block of C that stays in registers while k is walked: rows x vectors.

    depth: rounds of k that are written out.  packed: B lies panel after panel, each as wide as the tile.
    """

    rows: int = 1
    vectors: int = 1
    depth: int = 1
    packed: bool = False
    isa: str = "avx2"


def scalar() -> CFunction:
    """Step 1: three loops, one number at a time."""

    @asm.function(PROTOTYPE, reads=REACH, writes={"c": REACH["c"]})
    def gemm(f: FunctionBuilder, a: Register, b: Register, c: Register, k: Register) -> None:
        i, j, left, at_a, at_b = (f.gp.take(name) for name in ("rows", "columns", "k left", "in a", "in b"))
        total, x = f.vectors().take("sum").xmm, f.vectors().take("a").xmm
        f.MOV(asm.low32(i), SIDE)
        with f.steps(i, 1, "rows"):
            f.MOV(asm.low32(j), SIDE)
            with f.steps(j, 1, "columns"):
                f.VMOVSS(total, mem(c, size=4))
                f.MOV(at_a, a)
                f.MOV(at_b, b)
                f.MOV(left, k)
                with f.steps(left, 1, "k"):
                    f.VMOVSS(x, mem(at_a, size=4))
                    f.VFMADD231SS(total, x, mem(at_b, size=4))
                    f.ADD(at_a, 4)
                    f.ADD(at_b, ROW)
                f.VMOVSS(mem(c, size=4), total)
                f.ADD(b, 4)
                f.ADD(c, 4)
            f.SUB(b, ROW)
            f.LEA(a, mem(a, index=k, scale=4))
        f.ret()

    return gemm


def tiled(tile: Tile) -> CFunction:
    """Steps 2 to 7."""

    @asm.function(PROTOTYPE, isa=tile.isa, reads=REACH, writes={"c": REACH["c"]})
    def gemm(f: FunctionBuilder, a: Register, b: Register, c: Register, k: Register) -> None:
        v = f.vector("f32")
        acc = [v.registers.take("acc", tile.vectors) for _ in range(tile.rows)]
        columns, i, j, row_a = tile.vectors * v.lanes, f.gp.take("rows"), f.gp.take("columns"), f.gp.take("row of a")
        step_b = 4 * columns if tile.packed else ROW
        f.LEA(row_a, mem(k, index=k))
        f.LEA(row_a, mem(row_a, index=row_a))
        f.MOV(asm.low32(j), SIDE)
        with f.steps(j, columns, "panels of columns"):
            with f.gp.taken("in a") as at_a, f.gp.taken("in c") as at_c:
                f.MOV(at_a, a)
                f.MOV(at_c, c)
                f.MOV(asm.low32(i), SIDE)
                with f.steps(i, tile.rows, "blocks of rows"):
                    with f.gp.taken("in b") as at_b, f.gp.taken("k left") as left:
                        f.MOV(at_b, b)
                        f.MOV(left, k)
                        multiply(f, tile, (at_a, at_b, at_c, left), row_a, step_b, acc)
                    with f.gp.taken("rows of a") as step:
                        f.IMUL(step, k, 4 * (tile.rows - 1))
                        f.ADD(at_a, step)
                    f.ADD(at_c, ROW * tile.rows)
            if tile.packed:
                with f.gp.taken("panel") as step:
                    f.IMUL(step, k, step_b)
                    f.ADD(b, step)
            else:
                f.ADD(b, 4 * columns)
            f.ADD(c, 4 * columns)
        f.ret()

    return gemm


def multiply(
    f: FunctionBuilder, tile: Tile, at: tuple[Register, ...], row_a: Register, step_b: int, acc: list[list[Register]]
) -> None:
    """One tile of C, its sums kept in `acc`; a and b are walked."""
    v, (a, b, c, left) = f.vector("f32"), at
    for r, row in enumerate(acc):
        for i, x in enumerate(row):
            v.load(x, mem(c, ROW * r + v.bytes * i))
    rows_of_a = f.gp.take("every third row of a", (tile.rows - 1) // 3)
    for before, here in zip((a, *rows_of_a), rows_of_a, strict=False):
        f.LEA(here, mem(before, index=row_a, scale=2))
        f.ADD(here, row_a)

    def element(r: int, at: int) -> asm.Pointer:
        """Row r of a, `at` elements further: the rows between are reached by an index."""
        base = (a, *rows_of_a)[r // 3]
        return mem(base, 4 * at) if r % 3 == 0 else mem(base, 4 * at, index=row_a, scale=r % 3)

    with v.registers.taken("a") as x:
        held = v.registers.take("b", tile.vectors)
        for depth in sorted({1, tile.depth}, reverse=True):
            with f.steps(left, depth, f"{depth} of k"):
                for at_k in range(depth):
                    for i, y in enumerate(held):
                        v.load(y, mem(b, step_b * at_k + v.bytes * i))
                    for r, row in enumerate(acc):
                        v.broadcast(x, element(r, at_k))
                        for into, y in zip(row, held, strict=True):
                            v.fma(into, x, y)
                for moved in (a, *rows_of_a):
                    f.ADD(moved, 4 * depth)
                f.ADD(b, step_b * depth)
        for y in held:
            v.registers.free(y)
    for register in rows_of_a:
        f.gp.free(register)
    for r, row in enumerate(acc):
        for i, x in enumerate(row):
            v.store(mem(c, ROW * r + v.bytes * i), x)


STEPS: Final = (
    ("2. a vector of columns", Tile()),
    ("3. four rows share a vector of b", Tile(rows=4)),
    ("4. 12 sums cover an FMA's wait", Tile(rows=6, vectors=2)),
    ("5. four rounds of k written out", Tile(rows=6, vectors=2, depth=4)),
    ("6. b packed, line after line", Tile(rows=6, vectors=2, depth=4, packed=True)),
    ("7. AVX-512: 24 sums of 16", Tile(rows=12, vectors=2, depth=4, packed=True, isa="avx512_core")),
)


def packed(b: Any, columns: int) -> Any:
    """Panels of so many columns, one after the other."""
    return np.ascontiguousarray(b.reshape(-1, SIDE // columns, columns).swapaxes(0, 1)).ravel()


def columns_of(tile: Tile) -> int:
    return tile.vectors * (16 if tile.isa == "avx512_core" else 8)


def check(function: CFunction, tile: Tile) -> None:
    """Integers, of which every sum is exact."""
    rng = np.random.default_rng(0)
    for k in (0, 1, 3, 4, 9, 32):
        a, b, c = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((SIDE, k), (k, SIDE), (SIDE, SIDE)))
        found = c.copy()
        function(a.ravel(), packed(b, columns_of(tile)) if tile.packed else b.ravel(), found.ravel(), k)
        assert (found == c + a @ b).all(), (tile, k)


IN_C: Final = """for (size_t i = 0; i < 96; i++)
    for (size_t l = 0; l < k; l++)
        for (size_t j = 0; j < 96; j++)
            c[i * 96 + j] += a[i * k + l] * b[l * 96 + j];"""


def main() -> None:
    k = 256
    rows: Rows = {}
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((SIDE, k), dtype=np.float32), rng.standard_normal((k, SIDE), dtype=np.float32)
    c = np.zeros((SIDE, SIDE), np.float32)
    for title, tile in (("1. three loops", None), *STEPS):
        function = tiled(tile) if tile else scalar()
        function.prove(k=5) if tile else function.prove()
        if function.runs_here:
            check(function, tile or Tile())
            operand = packed(b, columns_of(tile)) if tile and tile.packed else b.ravel()
            rows[title] = function.bench(a.ravel(), operand, c.ravel(), k)
    in_c = compiled(PROTOTYPE, IN_C, flags=REORDERED)
    peers: Rows = {}
    if in_c:
        peers["three loops, gcc -O3"] = in_c.bench(a, b, c, k)
    peers["numpy: c += a @ b"] = microseconds(lambda: np.add(c, a @ b, out=c))
    ours = list(reversed(rows.items()))
    table: Rows = dict(ours) | peers
    show(f"{SIDE} x {k} times {k} x {SIDE}, cycles of a row and column", table, SIDE * SIDE)


if __name__ == "__main__":
    command(main, __doc__)
