"""Gradients of maxima: every pixel of diff_src sums diff_dst over its windows, where the maximum's place is its own.

As in a deconvolution, pixels at one place in a cell of strides are reached by the same positions of windows, but for
the edges.  So a *patch* of cells is a kernel of diff_dst and places, and every element of diff_src is written once.  A
kernel takes a row of cells with all pixels of each; of the axes outside each place in a cell is a patch of its own.  Of
a pixel with many positions, several passes add to one another.  Channels lie side by side, plain or blocked; other
formats are copied.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod

import numpy as np

from asmdnn.generators.pooling.maxima_gradient import DST, CellPixel, MaximaGradientSpec, WindowPlace
from asmdnn.isa.elements import narrowing_level
from asmdnn.isa.lines import LINE_BYTES, MAX_OFFSET
from asmdnn.isa.vectors import f32_level, lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.memory.tags import LETTERS
from asmdnn.planning.assembly import Assembly, constant_words
from asmdnn.planning.calls import Call, phases_of
from asmdnn.planning.loops import Loop
from asmdnn.planning.phase import MOST_CYCLES, Phase, View
from asmdnn.planning.phases import merged, sorted_by
from asmdnn.planning.plan import Plan
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.pooling_backward.description import PoolingBackward
from asmdnn.primitives.pooling_backward.patches import Patch, Reached, apart, patches_of, pixels_of
from asmdnn.primitives.reorder.copies import between_reorders
from asmdnn.primitives.shapes.formats import of_type
from asmdnn.records import dataclass, replace
from asmdnn.types import F32_BYTES, DataType, f32, s32

NAME = "maxima"
NUMBERS = "numbers of pixels"  # a constant
SUMS = "sums of positions"  # scratch
AT_ONCE = 64  # positions of a pass, which are code
MOST_CHANNELS = 128  # of a kernel, which are unrolled
FEW_LINES = 2  # of f32
CALL_CYCLES, VECTOR_CYCLES, POSITION_CYCLES = 40, 2, 2


def plan(request: tuple[PoolingBackward, Engine]) -> Plan:
    """Raises Refused."""
    desc, engine = request
    if desc.indices is None:
        raise Refused(f"it is of maxima, whose places are known, alg is {desc.alg}")
    pixels = desc.diff_src.dims[2:]
    given = {"diff_src": desc.diff_src, "diff_dst": desc.diff_dst, "indices": desc.indices}
    tag = tag_of(given, lanes_of(f32_level(engine.isa)))
    own = {name: MemoryDesc(tensor.dims, tensor.dtype, tag) for name, tensor in given.items()}
    assembly = Assembly(engine.tuning, engine.isa)
    if desc.indices.dtype == s32:
        assembly.constants[NUMBERS] = constant_words(np.arange(prod(pixels), dtype=np.int32))
    *outer, row = (patches_of(desc, axis) for axis in range(len(pixels)))
    each = ([patch for cell in along for patch in apart(cell)] for along in outer)
    patches = list(product(*each, row)) if desc.diff_src.nelems() else []
    job = MaximaJob(own, desc.kernel, desc.strides, narrowing_level(desc.diff_src.dtype.name, engine.isa), engine)
    add_passes(assembly, patches, job)
    made = assembly.plan(f"{NAME}:{f32_level(engine.isa)}", own, ("diff_src",))
    passed = {name: tensor for name, tensor in given.items() if not tensor.is_any}
    return between_reorders(made, passed, engine.tuning, isa=engine.isa)


@dataclass(frozen=True, slots=True, eq=False)
class MaximaJob:
    """tensors: as kernels take them.  kernel: sizes of the window, strides: of windows.  isa: of the kernels."""

    tensors: Mapping[str, MemoryDesc]
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    isa: str
    engine: Engine

    @property
    def counts_pixels(self) -> bool:
        return self.tensors["indices"].dtype == s32

    @property
    def channels(self) -> int:
        """That lie side by side."""
        dst = self.tensors["diff_src"]
        return dst.blocks[1] if dst.inner_blocks else dst.dims[1]

    @property
    def at_once(self) -> int:
        """Channels of a kernel.  Of many it has fewer where windows share rows: a block of channels has all its rows
        one after the other, and caches hold what they share.  3x3 of 480 channels at 28x28 take a Zen 5 143 us, not
        230; but halves of 128 channels 1.1 to 1.2 times as long."""
        shared = any(size > stride for size, stride in zip(self.kernel[:-1], self.strides, strict=False))
        return MOST_CHANNELS // 2 if shared and self.channels > MOST_CHANNELS else MOST_CHANNELS

    @property
    def streams(self) -> bool:
        """Whether results go past the caches: whole lines of f32, of tensors that caches do not hold."""
        dst = self.tensors["diff_src"]
        lines = self.channels * F32_BYTES % LINE_BYTES == 0 and dst.dtype == f32
        return lines and self.touched_bytes >= self.engine.tuning.elementwise.streaming_bytes

    @property
    def touched_bytes(self) -> int:
        return sum(tensor.size_bytes for tensor in self.tensors.values())

    def ahead(self, patch: tuple[Patch, ...]) -> int:
        """Elements of diff_dst to the row below, if windows share rows and pixels have some lines each, which come from
        beyond L2; else 0."""
        tuning, engine = self.engine.tuning.pooling, self.engine
        is_far = self.touched_bytes >= tuning.rows_ahead_l2 * engine.l2_bytes * engine.threads
        has_lines = self.channels * F32_BYTES >= FEW_LINES * LINE_BYTES and len(patch) > 1
        shares = all(along.step == 1 for along in patch)
        return self.tensors["diff_dst"].strides[-2] if is_far and has_lines and shares else 0


def add_passes(assembly: Assembly, patches: Sequence[tuple[Patch, ...]], job: MaximaJob) -> None:
    """As many passes as the patch with the most positions needs; all but the last one leave sums, from two buffers in
    turns, to the one after."""
    most = max((len(windows) for patch in patches for _, windows in pixels_of(patch)), default=0)
    passes = max(1, -(-most // AT_ONCE))
    dst, tuning = job.tensors["diff_src"], assembly.tuning.phases
    for number in range(passes):
        before, result = (f"{SUMS} 2" if n % 2 else SUMS for n in (number - 1, number))
        if number == passes - 1:
            result = "diff_src"
        else:
            assembly.scratch[result] = of_type(dst, f32).size_bytes
        arguments = [View(result), View("diff_dst"), View("indices")]
        arguments += [View(NUMBERS)] * job.counts_pixels + [View(before)] * (number > 0)
        dtype, found = f32 if number < passes - 1 else dst.dtype, list[list[Phase]]()
        for channel in range(0, job.channels, job.at_once):
            calls = [[call_of(patch, number, job, dtype, channel)] for patch in patches]
            found.append([phase for call in calls for phase in phases_of(call, tuple(arguments), tuning)])
        assembly.add(by_row(found, tuning.written_out))


def by_row(blocks: Sequence[Sequence[Phase]], most: int) -> list[Phase]:
    """One phase of all patches, for each block of channels row by row of what is written: patches of neighbouring rows
    read the same outputs, which a cache still has.  Of more records than `most`, one after the other, without barriers
    between them."""
    phases = [phase for block in blocks for phase in block]
    if sum(phase.count for phase in phases) > most or not phases:
        return [replace(phase, independent=phase.independent or i > 0) for i, phase in enumerate(phases)]
    return [merged([sorted_by(merged([phase.written_out() for phase in block]), 1 + DST) for block in blocks])]


def tag_of(tensors: Mapping[str, MemoryDesc], lanes: int) -> str:
    """Of a format with channels side by side: that of the tensors, if they all have it; else blocked by the vector."""
    tags = {tensor.tag for tensor in tensors.values() if not tensor.is_any}
    inner = LETTERS[2 : tensors["diff_src"].ndims]
    usable = {f"aB{inner}{size}b" for size in (lanes, 8, 16)} | {f"a{inner}b"}
    return str(tags.pop()) if len(tags) == 1 and tags <= usable else f"aBx{lanes}b"


def call_of(patch: tuple[Patch, ...], number: int, job: MaximaJob, dtype: DataType, channel: int) -> Call:
    """Of some channels of the pixels of a patch, with the positions of one pass; dtype: of the result.  Raises
    Refused."""
    src, made = job.tensors["diff_src"], job.tensors["diff_dst"]
    some = slice(number * AT_ONCE, (number + 1) * AT_ONCE)
    found = [
        (place, [place_of(each, made.strides[2:], job.kernel) for each in windows[some]])
        for place, windows in pixels_of(patch)
    ]
    start = min((each.at for _, places in found for each in places), default=0)
    if max((each.at - start for _, places in found for each in places), default=0) * F32_BYTES > MAX_OFFSET:
        raise Refused("windows that share a pixel are more than 2 GiB apart")
    pixels = tuple(
        CellPixel(place, place * src.strides[-1], tuple(each._replace(at=each.at - start) for each in places))
        for place, places in found
    )
    steps, row = ArgumentSteps(job, dtype, number > 0), patch[-1]
    spec = MaximaGradientSpec(
        isa=job.isa,
        cells=row.count,
        elements=min(job.at_once, job.channels - channel),
        cell_bytes=dtype.size_bytes * row.step * src.strides[-1],
        step=made.strides[-1],
        pixels=pixels,
        kinds=(dtype.name, made.dtype.name, job.tensors["indices"].dtype.name),
        numbered=row.step if job.counts_pixels else 0,
        accumulates=number > 0,
        streaming=job.streams and dtype == f32,
        ahead=job.ahead(patch),
    )
    return Call(spec, steps.start(patch, start, channel), steps.loops(patch[:-1]), cycles_of(spec))


@dataclass(frozen=True, slots=True)
class ArgumentSteps:
    """Where the arguments of a call are, in bytes.  dtype: of the result; accumulates: there are sums before."""

    job: MaximaJob
    dtype: DataType
    accumulates: bool

    def of(self, src: int, dst: int, number: int = 0) -> tuple[int, ...]:
        """So many elements of diff_src, of diff_dst and the places, and of numbers."""
        made, places = self.job.tensors["diff_dst"].dtype, self.job.tensors["indices"].dtype
        found = [src * self.dtype.size_bytes, dst * made.size_bytes, dst * places.size_bytes]
        return (*found, *[number * F32_BYTES] * self.job.counts_pixels, *[src * F32_BYTES] * self.accumulates)

    def start(self, patch: tuple[Patch, ...], first: int, channel: int) -> tuple[int, ...]:
        """Of the patch's first pixel, whose windows begin at element `first` of diff_dst."""
        src = self.job.tensors["diff_src"]
        numbers = sum(along.first * self.counted(axis) for axis, along in enumerate(patch))
        at = sum(along.first * stride for along, stride in zip(patch, src.strides[2:], strict=True))
        return self.of(at + channel, first + channel, numbers)

    def loops(self, outer: tuple[Patch, ...]) -> tuple[Loop, ...]:
        """Over images, blocks of channels, and all axes but the last."""
        src, made = self.job.tensors["diff_src"], self.job.tensors["diff_dst"]
        blocks = src.padded_dims[1] // self.job.channels if src.inner_blocks else 1
        loops = [Loop(n, self.of(src.strides[a], made.strides[a])) for a, n in ((0, src.dims[0]), (1, blocks))]
        for axis, along in enumerate(outer):
            step = self.of(along.step * src.strides[2 + axis], made.strides[2 + axis], along.step * self.counted(axis))
            loops.append(Loop(along.count, step))
        return tuple(loop for loop in loops if loop.extent > 1)

    def counted(self, axis: int) -> int:
        """How far numbers of pixels are apart along an axis."""
        return prod(self.job.tensors["diff_src"].dims[3 + axis :])


def place_of(windows: tuple[Reached, ...], strides: tuple[int, ...], kernel: tuple[int, ...]) -> WindowPlace:
    """Of one window along each axis."""
    at, number = 0, 0
    for window, stride, size in zip(windows, strides, kernel, strict=True):
        at, number = at + window.output * stride, number * size + window.position
    return WindowPlace(at, number)


def cycles_of(spec: MaximaGradientSpec) -> int:
    vectors, positions = -(-spec.elements // lanes_of(spec.isa)), sum(len(pixel.positions) for pixel in spec.pixels)
    each = VECTOR_CYCLES * len(spec.pixels) + POSITION_CYCLES * positions
    return min(MOST_CYCLES, CALL_CYCLES + spec.cells * vectors * each)
