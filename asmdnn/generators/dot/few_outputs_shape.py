"""Arguments and blocks of tiles of few output channels, for planners and generators; see few_outputs.py."""

from asmdnn.isa.vectors import VECTORS

SRC, WEIGHTS, BIAS, DST, TAPS = range(5)
ARGUMENTS = ("src", "weights", "bias", "dst", "taps")
MOST_OUTPUTS = 8
SUMS_SHARE = 0.75  # of the registers, at most


def most_at_once(isa: str, outputs: int) -> int:
    """Pixels at a time, a power of two, as lanes are added in pairs: enough sums are under way."""
    return 1 << (int(SUMS_SHARE * VECTORS[isa].count) // outputs).bit_length() - 1
