"""The frame that all kernels of a Winograd convolution share, since records of one phase call them in turn.

Products are matrix tiles (dot/matmul_shape.py), whose frame this is but for the last two words, which they have other
names for and do not use.
"""

from typing import Final

from asmdnn.generators.dot import matmul_shape
from asmdnn.types import DataType

SOURCE, WEIGHTS, BIAS, PRODUCTS, PREFETCHED, SRC, DST = range(7)
ARGUMENTS: Final = ("source", "weights", "bias", "products", "prefetched", "src", "dst")
assert len(ARGUMENTS) == len(matmul_shape.ARGUMENTS)  # operands of post-ops come next, for all kernels alike


def types_word(*types: DataType) -> str:
    """What a transform reads and writes, for its name: one word if that is the same."""
    return "".join(dict.fromkeys(dtype.name for dtype in types))
