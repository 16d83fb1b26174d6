"""What planning spends at most: a file of 300 bytes may ask for constants that no machine holds or ends computing."""

from collections.abc import Sequence

import numpy as np

from asmdnn.errors import OutOfMemory, Unimplemented
from asmdnn.memory.traced import is_integer
from asmdnn.network.graph import Body, Node
from asmdnn.network.operators.definition import Type, Value
from asmdnn.network.operators.work import nanoseconds

LARGEST_RESULT_BYTES = 1 << 36
FOLDED_BYTES, FOLDED_NANOSECONDS = 1 << 30, 20e9  # of a model without constants
BYTES_PER_BYTE, NANOSECONDS_PER_BYTE = 16, 100  # for each byte of its constants: a weight may go through some operators
VIEWS = {"Constant", "Expand", "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze"}  # their results share memory


class FoldingBounds:
    """How much computing with the constants of one model, which has so many bytes of them, may still take."""

    def __init__(self, given: int) -> None:
        self.bytes_left = FOLDED_BYTES + BYTES_PER_BYTE * given
        self.nanoseconds_left = FOLDED_NANOSECONDS + NANOSECONDS_PER_BYTE * given

    def spend(self, node: Node, inputs: Sequence[Value | None], results: Sequence[Type]) -> None:
        """Raises Unimplemented if a node's results would take too much."""
        size = sum(map(size_bytes, results))
        self.nanoseconds_left -= nanoseconds(node, inputs, results)
        if size > self.bytes_left or self.nanoseconds_left < 0:
            what = "memory" if size > self.bytes_left else "time"
            raise Unimplemented(
                f"{node} computes with constants, which takes more {what} than a model of this size is given: "
                "store its result in the model"
            )
        self.bytes_left -= size if node.op not in VIEWS else 0


def constant_bytes(body: Body) -> int:
    """Of a body and those inside it."""
    own = sum(array.nbytes for array in body.constants.values())
    for node in body.nodes:
        for value in node.attributes.values():
            if isinstance(value, Body):
                own += constant_bytes(value)
            elif isinstance(value, np.ndarray):
                own += value.nbytes
    return own


def size_bytes(result: Type) -> int:
    """Of a result of these dims, which may be more than any machine has."""
    shape, dtype = result
    size = np.dtype(dtype).itemsize
    for n in shape:
        size *= n if is_integer(n) else int(n)
    return size


def check_room(node: Node, results: Sequence[Type]) -> None:
    """Raise OutOfMemory for results that no machine holds."""
    for result in results:
        size = size_bytes(result)
        if size > LARGEST_RESULT_BYTES:
            raise OutOfMemory(
                f"{node} makes a tensor of dims {tuple(result[0])}, {size} bytes: make its operands smaller"
            )
