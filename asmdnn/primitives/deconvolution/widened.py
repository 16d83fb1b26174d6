"""Depthwise deconvolution by large kernels of floats of 16 bits: as f32, in scratch, as convolutions are.

Gradients of data of depthwise convolutions are such.  Rows widen what they load, or multiply pairs, which join two rows
of src each time.  Of a large kernel a copy of both takes less: on a Zen 5, us, 64 channels at 56x56, bf16 13x13 takes
260 instead of 300, 31x31 1,180 instead of 1,420; f16 13x13 258 instead of 282.
"""

from collections.abc import Iterator
from math import prod

from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refusal
from asmdnn.primitives.attributes.attr import Attr
from asmdnn.primitives.convolution import widened_rows
from asmdnn.primitives.convolution.description import DeconvolutionForward
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.deconvolution import grouped
from asmdnn.types import HALF_FLOATS, f32

LEAST_POSITIONS = 100  # of the kernel, for a pixel of dst


def plans(desc: DeconvolutionForward, attr: Attr, engine: Engine) -> Iterator[Plan | Refusal]:
    """Of a large depthwise kernel of such floats; nothing for others."""
    types = {desc.src.dtype, desc.weights.dtype}
    is_large = prod(desc.kernel) >= LEAST_POSITIONS * prod(desc.strides)
    if is_large and types <= {*HALF_FLOATS, f32} and types != {f32}:
        yield from widened_rows.as_f32(desc, attr, engine, grouped.planned)
