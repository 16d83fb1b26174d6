"""Pooling of short rows by channels: a thread makes some channels dense, reduces them, and brings them back.

Copies of these channels stay in scratch of the thread, in its caches, and are f32 whatever the tensors are.  If all
channels became dense before the first one is reduced, larger tensors would leave L2, and threads would read what others
have written.
"""

from collections.abc import Callable, Mapping
from math import prod

from asmdnn.isa.lines import LINE_BYTES
from asmdnn.isa.vectors import f32_level
from asmdnn.memory import MemoryDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import View
from asmdnn.planning.steps import add_each, steps_of
from asmdnn.primitives.pooling.kernels import PoolKernels
from asmdnn.primitives.pooling.schedule import planes_for
from asmdnn.primitives.reorder.copies import Reordering, add_reorder, beside_others
from asmdnn.records import replace
from asmdnn.types import f32

Tensors = Mapping[str, MemoryDesc]
Add = Callable[[Assembly, PoolKernels, Tensors], None]
COPIES = {"src": "some of src", "dst": "some of dst"}


def with_channels_near(add: Add) -> Add:
    """What adds the phases of a pooling with dense channels, of src and dst whose channels are apart."""

    def add_some(assembly: Assembly, maker: PoolKernels, tensors: Tensors) -> None:
        channels = tensors["src"].dims[1]
        some = channels_at_once(tensors, maker)
        times, rest = divmod(channels, some)
        add_channels(assembly, maker, tensors, add, (0, some, times))
        if rest:
            add_channels(assembly, maker, tensors, add, (channels - rest, rest, 1))

    return add_some


def channels_at_once(tensors: Tensors, maker: PoolKernels) -> int:
    """So many that their copies stay near, in whole lines of a pixel."""
    src, dst = (prod(tensors[name].dims[2:]) for name in COPIES)
    line, tuning = LINE_BYTES // f32.size_bytes, maker.tuning.pooling
    most = tuning.near_bytes // (f32.size_bytes * (src + dst)) // line * line
    return min(tensors["src"].dims[1], max(line, min(most, tuning.near_channels)))


def add_channels(
    assembly: Assembly, maker: PoolKernels, tensors: Tensors, add: Add, channels: tuple[int, int, int]
) -> None:
    """Of all images some channels, so many times: (the first, how many, times)."""
    first, count, times = channels
    one, own, dense = Assembly(assembly.tuning, assembly.isa), dict[str, MemoryDesc](), dict[str, MemoryDesc]()
    for name in COPIES:
        whole = tensors[name]
        dims = (1, count, *whole.dims[2:])
        start = whole.offset0 + first * whole.strides[1]
        own[name] = MemoryDesc(dims, whole.dtype, strides=whole.strides, offset0=start)
        dense[name] = MemoryDesc(dims, f32, "axb")
        one.scratch[COPIES[name]] = dense[name].size_bytes
    add_reorder(one, Reordering("src", own["src"], COPIES["src"], dense["src"]))
    reduced = Assembly(assembly.tuning, assembly.isa)
    planes = planes_for(dense["src"], dense["dst"])
    add(reduced, replace(maker, isa=f32_level(maker.isa), planes=planes, streams=False, dtype=f32), dense)
    one.add_plan(reduced.plan("", {}, ()), {name: View(copy) for name, copy in COPIES.items()})
    add_reorder(one, Reordering(COPIES["dst"], dense["dst"], "dst", own["dst"]))
    kept = {name: assembly.constant(name, data) for name, data in one.constants.items()}
    steps_in = {
        name: (x.dtype.size_bytes * x.strides[0], x.dtype.size_bytes * x.strides[1]) for name, x in tensors.items()
    }
    moves = {name: [of_image, count * of_channel] for name, (of_image, of_channel) in steps_in.items()}
    steps = steps_of(one.plan("", {}, ()), kept)
    with beside_others(assembly, bool(assembly.phases)):
        add_each(assembly, steps, moves, (tensors["src"].dims[0], times), one.scratch)
