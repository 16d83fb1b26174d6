"""Arguments and blocks of tiles of few output channels, for planners and generators; see few_outputs.py."""

from asmdnn.isa.dot import F32, Types, dot_class
from asmdnn.isa.vectors import vector_class

SRC, WEIGHTS, BIAS, DST, TAPS = range(5)
ARGUMENTS = ("src", "weights", "bias", "dst", "taps")
MOST_OUTPUTS = 8
SUMS_SHARE = 0.75  # of the registers, at most


def most_at_once(isa: str, outputs: int, types: Types = F32) -> int:
    """Pixels at a time, a power of two, as lanes are added in pairs: enough sums are under way."""
    dot, count = dot_class(types, isa), vector_class(isa).count
    others = dot.copy_registers + dot.row_registers + dot.product_registers + 1  # and a mask, or a part of a rest
    return 1 << (min(int(SUMS_SHARE * count), count - others) // outputs).bit_length() - 1
