"""The start of a tile: accumulators begin with dst, a bias, or zero.

Tiles of convolutions and of matrix products share it: in a convolution a row is a pixel, a column a channel.
epilogue.py has the end of a tile.
"""

from collections.abc import Callable, Sequence

from asmdnn.generators.dot.matmul_shape import Bias
from asmdnn.isa.assembler import Register, mem
from asmdnn.isa.vector import Lanes, Vector

Accumulators = Sequence[Sequence[Register]]
Load = Callable[[], None]


def start_tile(v: Vector, acc: Accumulators, old: Load | None, bias: Load | None) -> None:
    """acc[r][j] = what `old` loads from dst, else what `bias` loads, else zero."""
    v.asm.role("start")
    if old:
        old()
    elif bias:
        bias()
    else:
        v.zeros(acc)


def load_starts(v: Vector, acc: Accumulators, starts: Sequence[int], at: Register) -> None:
    """acc[r] = the vectors that lie starts[r] bytes after the pointer; copied where rows share them."""
    first = {start: r for r, start in reversed(list(enumerate(starts)))}
    for r, (row, start) in enumerate(zip(acc, starts, strict=True)):
        for j, x in enumerate(row):
            if r > first[start]:
                v.move(x, acc[first[start]][j])
            else:
                v.load(x, mem(at, start + j * v.bytes, size=v.bytes))


def load_bias(v: Vector, acc: Accumulators, bias: Bias, at: Register, columns: int, element_bytes: int) -> None:
    """acc[r][j] = bias vector j of row r, of which nothing past the columns is read; copied where rows share one, or
    all columns do.  at: the pointer; element_bytes: of a sum."""
    vectors = len(acc[0])
    with v.parts(vectors, columns if bias.columns else vectors * v.lanes, halves=True) as parts:
        load_bias_by(v, acc, bias, at, parts, element_bytes)


def load_bias_by(
    v: Vector, acc: Accumulators, bias: Bias, at: Register, parts: Sequence[Lanes], element_bytes: int
) -> None:
    """The same, by parts that say how to read each vector."""
    for r, row in enumerate(acc):
        for j, part in enumerate(parts):
            if r and not bias.row_bytes:
                v.move(row[j], acc[0][j])
            elif j and not bias.columns:
                v.move(row[j], row[0])
            else:
                size, name = (v.bytes, f"bias[{r}, {j}]") if bias.columns else (element_bytes, f"bias[{r}]")
                place = mem(at, r * bias.row_bytes + j * v.bytes, size=size)
                v.asm.call_it(place, name if bias.row_bytes else f"bias[{j}]")
                if bias.columns:
                    part.load(row[j], place)
                else:
                    v.broadcast(row[0], place)
