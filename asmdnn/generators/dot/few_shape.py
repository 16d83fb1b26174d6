"""Arguments and blocks of tiles of few output channels, for planners and generators; see few.py."""

from asmdnn.isa.vectors import VECTORS

SRC, WEIGHTS, BIAS, DST, TAPS = range(5)
ARGUMENTS = ("src", "weights", "bias", "dst", "taps")
MOST_OUTPUTS = 8


def most_at_once(isa: str, outputs: int) -> int:
    """Pixels at a time, a power of two, as lanes are added in pairs: sums take three quarters of the registers at most,
    which are enough under way."""
    return 1 << (VECTORS[isa].count * 3 // 4 // outputs).bit_length() - 1
