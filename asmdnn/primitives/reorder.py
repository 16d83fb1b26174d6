"""Reorder: the same tensor in another format, f32."""

from dataclasses import dataclass

import numpy as np

from asmdnn.errors import InvalidArguments
from asmdnn.generators.reorder import ARGUMENTS, BLOCK, CopySpec, ReorderSpec, TransposeSpec
from asmdnn.memory import MemoryDesc
from asmdnn.primitives.attr import Attr
from asmdnn.primitives.engine import Engine
from asmdnn.primitives.implementation import Refusal
from asmdnn.primitives.reorder_loops import Box, Loop, boxes
from asmdnn.runtime.plan import Phase, Plan
from asmdnn.types import f32

KERNEL_ISA = "avx2"  # its kernels serve every level
COPY_COLUMNS = 128  # 16 vectors unrolled
TRANSPOSE_COLUMNS = 256
COPY_ROWS = 64
MAX_OFFSET = 2**31 - 1  # displacements in code are 32 bits
MAX_STEP = MAX_OFFSET // (4 * BLOCK)
CALL_CYCLES = 20


@dataclass(frozen=True, slots=True)
class Reorder:
    """dst = src, element by element, in dst's format; the zero padding of dst is written too.

    Raises InvalidArguments unless both have the same dims and a format.
    """

    src: MemoryDesc
    dst: MemoryDesc

    def __post_init__(self) -> None:
        for name, desc in (("src", self.src), ("dst", self.dst)):
            if not isinstance(desc, MemoryDesc):
                raise InvalidArguments(f"{name} must be a MemoryDesc, not {desc!r}")
            if desc.is_any:
                raise InvalidArguments(f"{name} has the format any, a reorder needs a real one")
        if self.src.dims != self.dst.dims:
            raise InvalidArguments(f"dst has dims {self.dst.dims}, src has {self.src.dims}: they must be equal")

    def __str__(self) -> str:
        return f"reorder of {self.src} to {self.dst}"


def plan(desc: Reorder, attr: Attr, engine: Engine) -> Plan | Refusal:
    """Plan a reorder, or say why not."""
    name = f"reorder:{KERNEL_ISA}"
    if attr.post_ops:
        return Refusal(name, "post-ops of a reorder are not implemented")
    specs, phase, reason = reorder_phase(desc.src, desc.dst, ARGUMENTS)
    if phase is None:
        return Refusal(name, reason)
    return Plan(name, specs, (phase,), {"src": desc.src, "dst": desc.dst}, {}, {}, ("dst",))


def reorder_phase(
    src: MemoryDesc, dst: MemoryDesc, buffers: tuple[str, str]
) -> tuple[tuple[ReorderSpec, ...], Phase | None, str]:
    """Kernels and records that bring buffers[0] into the format of buffers[1]; no phase, but a reason, if refused."""
    if src.dtype != f32 or dst.dtype != f32:
        return (), None, f"{src.dtype} to {dst.dtype}: only f32 to f32 is implemented"
    if dst.may_overlap:
        return (), None, "elements of dst overlap"
    nests = boxes(src, dst)
    if nests is None:
        return (), None, "blocks of src and dst that do not nest, such as 16 and 24, are not implemented"
    index: dict[ReorderSpec, int] = {}
    records, cycles = [np.empty((0, 3), np.int64)], [np.empty(0, np.int32)]
    for box in (b for nest in nests for b in cut(nest)):
        spec, outer = kernel_of(box)
        if BLOCK * max(spec.src_row_bytes, spec.dst_row_bytes) > MAX_OFFSET:
            return (), None, "rows of a block are more than 2 GiB apart"
        grid = np.array([[box.src, box.dst]], np.int64)
        for loop in outer:
            steps = np.arange(loop.extent)[:, None] * (loop.src, loop.dst)
            grid = (grid[:, None] + steps).reshape(-1, 2)
        number = index.setdefault(spec, len(index))
        records.append(np.concatenate((np.full((len(grid), 1), number), 4 * grid), 1).astype(np.int64))
        cycles.append(np.full(len(grid), CALL_CYCLES + spec.rows * spec.columns // 4, np.int32))
    return tuple(index), Phase(buffers, np.ascontiguousarray(np.concatenate(records)), np.concatenate(cycles)), ""


def cut(box: Box) -> list[Box]:
    """The same box with its inner loops no longer than a kernel takes, remainders in boxes of their own."""
    rows, columns, _ = roles(box)
    limits = {}
    if columns is not None:
        limits[columns] = COPY_COLUMNS if rows is columns else TRANSPOSE_COLUMNS
    if rows is not None and rows is not columns:
        limits[rows] = BLOCK
    for loop, limit in limits.items():
        if loop.extent > limit:
            return [piece for half in split(box, loop, limit) for piece in cut(half)]
    return [box]


def split(box: Box, loop: Loop, size: int) -> list[Box]:
    """`box` with `loop` as a loop over pieces of `size`, and the rest."""
    others = tuple(x for x in box.loops if x is not loop)
    count, rest = divmod(loop.extent, size)
    pieces = [
        Box(
            box.src,
            box.dst,
            (*others, Loop(count, size * loop.src, size * loop.dst), Loop(size, loop.src, loop.dst)),
            box.padding,
        )
    ]
    if rest:
        done = count * size
        pieces.append(
            Box(
                box.src + done * loop.src,
                box.dst + done * loop.dst,
                (*others, Loop(rest, loop.src, loop.dst)),
                box.padding,
            )
        )
    return pieces


def roles(box: Box) -> tuple[Loop | None, Loop | None, tuple[Loop, ...]]:
    """The loop that is dense in dst, the one that is dense in src (a copy: the same one), and the others."""
    rows = next((x for x in box.loops if x.dst == 1), None)
    columns = rows if box.padding else next((x for x in box.loops if x.src == 1), None)
    if rows is not None and rows.src == 1:
        columns = rows
    return rows, columns, tuple(x for x in box.loops if x is not rows and x is not columns)


def kernel_of(box: Box) -> tuple[ReorderSpec, tuple[Loop, ...]]:
    """The kernel for a box that `cut` made, and the loops that become records."""
    rows, columns, others = roles(box)
    if rows is not columns:
        across, along = rows or Loop(1, 0, 0), columns or Loop(1, 0, 0)
        return TransposeSpec(KERNEL_ISA, across.extent, along.extent, 4 * across.src, 4 * along.dst), others
    # A copy: the longest other loop that fits runs inside the kernel.
    fitting = [x for x in others if x.extent <= COPY_ROWS and max(x.src, x.dst) <= MAX_STEP]
    step = max(fitting, key=lambda x: x.extent, default=Loop(1, 0, 0))
    spec = CopySpec(KERNEL_ISA, step.extent, columns.extent if columns else 1, 4 * step.src, 4 * step.dst, box.padding)
    return spec, tuple(x for x in others if x is not step)
