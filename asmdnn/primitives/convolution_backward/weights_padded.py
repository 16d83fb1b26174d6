"""Gradients of weights of groups whose output channels fill no whole vectors: tiles of each, with zeros after them.

Groups that are computed several at once, until they fill vectors, have blocks in between that are no gradient: of 10
channels and 16 lanes 8 groups at once are 5 vectors for each input, of which 4.4 are for nothing.
"""

from collections.abc import Callable
from math import gcd

from asmdnn.isa.vectors import lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.memory.tags import LETTERS
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import View
from asmdnn.planning.plan import Plan
from asmdnn.primitives.convolution_backward.data import AdjointConvolution
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.reorder.copies import Reordering, add_reorder
from asmdnn.types import f32

NEAR_BYTES = 8 << 10
APART, PACKED, ROWS = "diff_dst of groups in whole vectors", "gradients in panels", "gradients in rows"  # scratch


def fills_vectors(p: AdjointConvolution, lanes: int) -> bool:
    """Whether a group with zeros up to whole vectors of output channels is fewer vectors than several groups at once.

    With AVX-512, 3x3 of 16 groups of 10 channels at 28x28 takes a Zen 5 268 us, not 888, 24 of 12 groups at 1x1 90, not
    209.  Of a single input channel there is too little for tiles: 48 groups of 1 to 3 would be 0.8 times as fast.
    """
    groups, out, into = p.groups, p.dst.dims[1] // max(1, p.groups), p.src.dims[1] // max(1, p.groups)
    return groups > 1 < into and p.dst.nelems() > 0 and out // gcd(out, lanes) > -(-out // lanes)


def are_far(p: AdjointConvolution) -> bool:
    """Whether pixels of src that a tile reads lie pages apart with channels last, so that it waits for all of them.

    29 groups of 40 channels, 3x3 of stride 3 and four images of 30x30, took a Zen 5 12.4 ms so; a copy in planes and
    its tiles take 4.1, planes alone 2.9.  5 KiB apart, 16 groups of 40 would lose 5%.
    """
    pixel = p.src.dims[1] if p.src.is_any else p.src.strides[-1]
    return p.strides[-1] * pixel * f32.size_bytes > NEAR_BYTES


def padded(p: AdjointConvolution, tiles: Callable[[AdjointConvolution, Engine], Plan], engine: Engine) -> Plan:
    """The plan for groups with zeros up to whole vectors of output channels, in a copy of diff_dst.
    tiles: plans for such."""
    lanes, (groups, out, into, *kernel), (images, _, *pixels) = lanes_of(engine.isa), p.weights.dims, p.dst.dims
    whole = -(-out // lanes) * lanes
    apart = MemoryDesc((images, groups, out, *pixels), f32, f"abC{LETTERS[3 : 3 + len(pixels)]}{lanes}c")
    tensors = {
        "weights": MemoryDesc((groups, whole, into, *kernel), f32, "any"),
        "dst": MemoryDesc((images, groups * whole, *pixels), f32, f"aBx{lanes}b"),
    }
    inner = tiles(p.with_formats(tensors), engine)
    packed = inner.tensors["weights"]
    rows = MemoryDesc(packed.dims, f32, LETTERS[: packed.ndims])
    own = MemoryDesc(p.weights.dims, f32, LETTERS[: p.weights.ndims])
    assembly = Assembly(engine.tuning, engine.isa)
    add_reorder(assembly, Reordering("dst", p.dst.reshape(apart.dims), APART, apart))
    assembly.add_plan(inner, {"dst": View(APART), "weights": View(PACKED)})
    add_reorder(assembly, Reordering(PACKED, packed, ROWS, rows))
    add_reorder(assembly, Reordering(ROWS, rows.submemory(own.dims, (0,) * own.ndims), "weights", own))
    assembly.scratch |= {APART: apart.size_bytes, PACKED: packed.size_bytes, ROWS: rows.size_bytes}
    return assembly.plan(f"padded:{engine.isa}", {"src": p.src, "weights": own, "dst": p.dst}, ("weights",))
