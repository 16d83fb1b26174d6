"""How many sums of a gradient of weights registers hold, beside what is multiplied; see grouped_weights.py."""

from asmdnn.generators.dot.row_factors import factor_registers
from asmdnn.isa.vectors import vector_class
from asmdnn.types import DataType, f32

SPARE = 1  # registers beside the sums and diff_dst: a source vector


def most_positions(isa: str, dtype: DataType = f32, group: int = 1) -> int:
    """Of a kernel: as many as registers hold sums of."""
    return (vectors_left(isa, dtype, group) - 1) // group


def vectors_left(isa: str, dtype: DataType, group: int = 1) -> int:
    """For sums and diff_dst."""
    of_group = group > 1 and not spreads_memory(dtype)
    return vector_class(isa).count - SPARE - of_group - factor_registers(dtype, isa)


def spreads_memory(dtype: DataType) -> bool:
    """Whether an input of every group comes from memory by one shuffle; else from a register beside it."""
    return dtype == f32


def columns_shared(positions: tuple[int, ...], src_step: int) -> int:
    """How many columns may have a source vector in common."""
    return (positions[-1] - positions[0]) // src_step + 1


def joins_lines(
    lines: int, positions: tuple[int, ...], src_step: int, isa: str, dtype: DataType, group: int = 1
) -> bool:
    """Whether registers hold the sums of so many lines, and diff_dst of the columns that share sources."""
    sums = group * lines * len(positions)
    return sums + columns_shared(positions, src_step) <= vectors_left(isa, dtype, group)
