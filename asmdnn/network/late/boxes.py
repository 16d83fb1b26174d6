"""NonMaxSuppression of boxes whose number data have decided, by the primitive.

A primitive is planned for a number of boxes.  So numbers are rounded up to powers of two; boxes that fill up have the
score minus infinity, and are no candidates.
"""

from collections.abc import Sequence
from math import isfinite

import numpy as np

from asmdnn.errors import AsmdnnError
from asmdnn.forking import importing
from asmdnn.network.graph import Array, Node
from asmdnn.network.operators.selection import BoxRequest, box_request, kept_boxes
from asmdnn.primitives.core.engine import Engine

FEW_BOXES = 8  # which the definition has done before a primitive is called
LEAST_BOXES = 64  # that one is planned for


class NativeBoxes:
    """Calls of primitives, which are kept by their numbers."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __call__(self, node: Node, *inputs: Array | None) -> Sequence[Array]:
        """As the definition.  Raises ValueError as that."""
        request = box_request(node, *inputs)  # type: ignore[arg-type]
        if request.scores.shape[2] > FEW_BOXES and request.limit > 0 and is_taken(request):
            try:
                return (self._native(request),)
            except AsmdnnError:  # a level that this CPU lacks, or more boxes than a primitive takes
                pass
        return (kept_boxes(request),)

    def _native(self, request: BoxRequest) -> Array:
        with importing():
            from asmdnn.memory import Memory, MemoryDesc
            from asmdnn.primitives.core.descriptor import primitive_desc
            from asmdnn.primitives.core.primitive import Primitive
            from asmdnn.primitives.suppression.description import NonMaxSuppression
            from asmdnn.types import s32

        images, classes, boxes = request.scores.shape
        room = max(LEAST_BOXES, 1 << (boxes - 1).bit_length())
        corners, scores = np.zeros((images, 4, room), np.float32), np.full((images, classes, room), -np.inf, np.float32)
        corners[:, :, :boxes], scores[:, :, :boxes] = request.corners.transpose(0, 2, 1), request.scores
        first, second = Memory.from_array(corners), Memory.from_array(scores)
        dst = Memory(MemoryDesc((images, classes, room if request.limit >= boxes else request.limit), s32, "abc"))
        numbers = {"overlap": float(request.overlap), "least": float(request.least)}
        desc = NonMaxSuppression(first.desc, second.desc, dst.desc, **numbers)
        Primitive(primitive_desc(desc, engine=self._engine)).execute(corners=first, scores=second, dst=dst)
        found = np.asarray(dst.numpy())
        image, kind, place = np.nonzero(found >= 0)
        return np.stack((image, kind, found[image, kind, place]), 1).astype(np.int64)


def is_taken(request: BoxRequest) -> bool:
    """Whether a primitive takes its types and numbers."""
    is_lowest = request.least == -np.inf
    types = {request.corners.dtype, request.scores.dtype}
    return types == {np.dtype(np.float32)} and 0 not in request.scores.shape and (is_lowest or isfinite(request.least))
