"""What zero points of weights add to sums of integers, where these less them are no signed bytes.

    (x - zx) (w - zw) = (x - zx) (w - s) - (x - zx) 1 (zw - s)

with the s that makes w signed.  The sums of x that the second term has are a product of one column, or of one channel;
those of groups have a channel for each result.  What follows the sums adds them by a factor.
"""

import numpy as np

from asmdnn.network.descriptors import any_format, row_major
from asmdnn.network.fusion.maps import Group
from asmdnn.network.graph import Array
from asmdnn.network.joining.place import Place
from asmdnn.network.lowering.integer_tail import Start
from asmdnn.network.lowering.integers import IntegerSource, SignedWeights
from asmdnn.network.lowering.sources import cheapest
from asmdnn.network.steps import Steps
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.convolution.description import ConvolutionForward
from asmdnn.primitives.core.description import Description
from asmdnn.primitives.products.matmul import MatMul
from asmdnn.types import s8


def with_sums(start: Start, weights: SignedWeights, sums: Place | None, dims: tuple[int, ...] = (-1,)) -> Start:
    """The start of what follows a product, whose factors have these dims."""
    if weights.rest is None or sums is None:
        return start
    return Start(start.scale, start.shift, sums, factor=-start.scale * weights.rest.reshape(dims))


def sums_of_rows(steps: Steps, group: Group, source: IntegerSource, src: Place) -> Place:
    """Of a matrix, or of those of batches."""
    *batch, rows, k = src.desc.dims
    dims = (*[1] * len(batch), k, 1)
    desc = MatMul(src.desc, any_format(dims, s8), row_major((*batch, rows, 1)))
    return added(steps, group, source, desc, src, np.ones(dims, np.int8))


def sums_of_windows(steps: Steps, group: Group, source: IntegerSource, desc: ConvolutionForward) -> Place:
    """Of those that a convolution multiplies."""
    batch, channels, *sizes = desc.dst.dims
    in_groups = len(desc.weights.dims) > len(desc.src.dims)
    count = channels if in_groups else 1
    dims = desc.weights.dims if in_groups else (1, *desc.weights.dims[1:])
    formats = {
        "src": any_format(desc.src.dims, source.dtype),
        "weights": any_format(dims, s8),
        "dst": any_format((batch, count, *sizes)),
        "bias": None,
    }
    one = desc.with_formats(formats)  # type: ignore[arg-type]
    attr = Attr(zero_points=source.zero_points)
    src = cheapest(steps, source.name, steps.bytes_of(source.name), one, attr)
    return added(steps, group, source, one.with_formats({"src": src.desc}), src, np.ones(dims, np.int8))


def added(steps: Steps, group: Group, source: IntegerSource, desc: Description, src: Place, ones: Array) -> Place:
    """Where a product by ones is."""
    constants = {"weights": (f"ones for {group.result}", ones), **source.constants}
    attr = Attr(zero_points=source.zero_points)
    steps.add((), f"{group.label}: sums of src", desc, {"src": src}, {"dst": ""}, constants=constants, attr=attr)
    made = steps.steps[-1]
    return Place(made.buffers["dst"], made.pd.plan.tensors["dst"])
