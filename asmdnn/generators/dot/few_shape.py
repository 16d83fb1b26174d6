"""Arguments and blocks of tiles of few output channels, for planners and generators; see few.py."""

SRC, WEIGHTS, BIAS, DST, TAPS = range(5)
ARGUMENTS = ("src", "weights", "bias", "dst", "taps")
MOST_OUTPUTS = 8
# Pixels at a time for each number of outputs, powers of two: enough sums under way, and a few registers are left.
PIXELS = {
    "avx2": {1: 8, 2: 4, 3: 4, 4: 2, 5: 2, 6: 2, 7: 1, 8: 1},
    "avx512_core": {1: 16, 2: 8, 3: 8, 4: 4, 5: 4, 6: 4, 7: 2, 8: 2},
}
