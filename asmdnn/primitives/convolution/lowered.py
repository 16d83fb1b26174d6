"""Convolutions of few channels by tiles of AMX: windows are rows of a matrix (im2col), some rows of output at a time.

A tile takes 64 bytes of k.  A row of a kernel of few channels fills a part of that, and each row would be products of
its own.  Here a kernel copies the runs of a window, which are the rows of the kernel, one after the other into a row of
whole lines, an odd number of them.  They stay in L2 until tiles have multiplied them, on the same thread.

src has its channels last, and nothing between pixels: with the padding around it, if there is any (raster.py).  Weights
have the runs of the kernel in a row, too (memory/kernel_rows.py).
"""

from collections.abc import Iterator
from itertools import product
from math import prod

import numpy as np

from asmdnn.generators.move.im2col import MOST_LINES, Im2colSpec, lines_of
from asmdnn.isa.dot import GROUP_BYTES, dot_level
from asmdnn.isa.lines import LINE_BYTES
from asmdnn.isa.tiles import MOST_ROWS
from asmdnn.isa.vectors import f32_level, lanes_of
from asmdnn.memory import MemoryDesc
from asmdnn.memory.kernel_rows import KernelRowsDesc
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.phase import Phase, View, records_of
from asmdnn.planning.refusal import Refused
from asmdnn.planning.steps import add_each, steps_of
from asmdnn.primitives.convolution.description import ConvolutionDesc, ConvolutionForward, Desc
from asmdnn.primitives.convolution.multiplied import types_of
from asmdnn.primitives.convolution.raster import Raster
from asmdnn.primitives.convolution.raster_job import RasterJob, some_rows
from asmdnn.primitives.convolution.raster_products import Axes, pixels
from asmdnn.primitives.core.engine import Engine
from asmdnn.primitives.products.amx import check_amx
from asmdnn.primitives.products.matrices import Matrix, Panels, panel_columns
from asmdnn.primitives.products.prepare import prepare
from asmdnn.primitives.products.product import Product
from asmdnn.primitives.products.strategies import add_amx
from asmdnn.primitives.products.target import Target
from asmdnn.records import dataclass, replace

WINDOWS = "windows"  # scratch of a thread
L2_SHARE = 0.25  # that they take


def check_lowered(desc: ConvolutionDesc) -> None:
    """Raise Refused for what has no runs, or very many."""
    if not isinstance(desc, ConvolutionForward) or desc.has_groups or desc.dilations[-1] or len(desc.kernel) < 2:
        raise Refused(
            "windows are rows of convolutions forward in two or three dims, of one group, undilated along rows"
        )
    if lines_of(prod(desc.kernel[:-1]), piece_bytes(desc)) > MOST_LINES:
        raise Refused(f"a window has more than {MOST_LINES} lines")


def rows_desc(desc: Desc, engine: Engine) -> KernelRowsDesc:
    """Weights with the rows of the kernel as runs, in panels."""
    lanes = lanes_of(dot_level(types_of(desc), engine.isa))
    return KernelRowsDesc(desc.weights.dims, desc.weights.dtype, panel_columns(desc.dst.dims[1], lanes))


def run_bytes(desc: ConvolutionDesc) -> int:
    return desc.kernel[-1] * desc.src.dims[1] * desc.src.dtype.size_bytes


def piece_bytes(desc: ConvolutionDesc) -> int:
    """Of a run: whole groups."""
    return GROUP_BYTES * -(-run_bytes(desc) // GROUP_BYTES)


@dataclass(frozen=True, slots=True)
class WindowStrips:
    """Rows of output along the last axis but one, `rows` at a time; row_bytes: of a window, an odd number of lines."""

    rows: int
    row_bytes: int

    @classmethod
    def of(cls, job: RasterJob, engine: Engine) -> "WindowStrips":
        """So many rows as a call of tiles takes, and L2 holds; fewer if threads would have none.  Raises Refused."""
        desc, *_, (*outer, down, along) = job.desc, job.parts[0]
        lines = lines_of(prod(desc.kernel[:-1]), piece_bytes(desc))
        row_bytes = LINE_BYTES * (lines + 1 - lines % 2)
        most = min(MOST_ROWS, int(L2_SHARE * engine.l2_bytes) // row_bytes) // along.o
        alike = desc.src.dims[0] * prod(axis.o for axis in outer)
        shared = -(-alike * down.o // engine.threads)
        if along.o * row_bytes > engine.l2_bytes // 2:
            raise Refused(f"the windows of a row have {along.o * row_bytes} bytes, too many for L2")
        rows = max(1, min(most, shared, down.o))
        return cls(-(-down.o // -(-down.o // rows)), row_bytes)

    def cuts(self, rows: int) -> Iterator[tuple[int, int, int]]:
        """(the first row, rows of a strip, how many strips) of those that are alike."""
        times, rest = divmod(rows, self.rows)
        yield 0, self.rows, times
        if rest:
            yield times * self.rows, rest, 1


def add_lowered(assembly: Assembly, job: RasterJob, raster: Raster, engine: Engine) -> Product:
    """All images, strip after strip, whose windows each thread has in memory of its own; returns the product of one.
    Raises Refused where vectors are expected to be faster."""
    strips, (*outer, down, _) = WindowStrips.of(job, engine), job.parts[0]
    assembly.add((), "im2col")
    for first, rows, times in strips.cuts(down.o):
        one = Assembly(engine.tuning, engine.isa)
        p = add_strip(one, job, raster, strips, (first, rows))
        moves = {name: moves_of(x, rows) for name, x in job.results.items()}
        steps = zip((*outer, down), raster.axis_bytes[:-1], strict=True)
        *between, to_next = (axis.s * step for axis, step in steps)
        moves[raster.buffer] = (raster.image_bytes, *between, rows * to_next)
        loops = (job.desc.src.dims[0], *(axis.o for axis in outer), times)
        add_each(assembly, steps_of(one.plan(one.name, {}, ()), {}), moves, loops, one.scratch)
        assembly.add((), *one.words)
        assembly.constants |= one.constants
    return p


def moves_of(tensor: MemoryDesc, rows: int) -> tuple[int, ...]:
    """From an image to the next, along each outer axis, and over so many rows; 0 where it broadcasts."""
    image, _, *steps = (0 if size == 1 else step for size, step in zip(tensor.dims, tensor.strides_bytes, strict=True))
    return (image, *steps[:-2], rows * steps[-2])


def add_strip(
    assembly: Assembly, job: RasterJob, raster: Raster, strips: WindowStrips, part: tuple[int, int]
) -> Product:
    """The first strip of the first image: some rows from `first` on.  Raises Refused."""
    (first, rows), axes = part, job.parts[0]
    dst, *read = (pixels(name, some_rows(tensor, first, rows), job.desc, axes) for name, tensor in job.results.items())
    assembly.scratch[WINDOWS] = strips.row_bytes * rows * axes[-1].o
    add_windows(assembly, job.desc, raster, axes, strips, part)
    bias = job.start if job.bias is None else pixels("bias", job.bias, job.desc, axes)
    p = replace(product_of(job.desc, dst, strips, rows), bias=bias, post_op_operands=tuple(read))
    add_ready(assembly, p, job.target)
    return p


def add_ready(assembly: Assembly, p: Product, target: Target) -> None:
    """The tiles of a product that needs no phases around them.  Raises Refused where vectors are to take it."""
    done, prepared = len(assembly.phases), prepare(assembly, p, target)
    is_ready = prepared.product is not None and not prepared.after and done == len(assembly.phases)
    assert prepared.product is not None and is_ready, "all tensors have elements, and their channels are dense"
    check_amx(prepared.product, target)
    add_amx(assembly, prepared.product, target)


def add_windows(
    assembly: Assembly, desc: ConvolutionDesc, raster: Raster, axes: Axes, strips: WindowStrips, part: tuple[int, int]
) -> None:
    """A call for each row of output."""
    (first, rows), (*_, down, along) = part, axes
    spec = Im2colSpec(
        isa=f32_level(assembly.isa),
        pixels=along.o,
        offsets=tuple(
            sum(at * axis.d * step for at, axis, step in zip(position, axes, raster.axis_bytes, strict=False))
            for position in product(*(range(axis.k) for axis in axes[:-1]))
        ),
        run_bytes=run_bytes(desc),
        piece_bytes=piece_bytes(desc),
        src_step=along.s * raster.axis_bytes[-1],
        dst_step=strips.row_bytes,
    )
    down_bytes, numbers = down.s * raster.axis_bytes[-2], np.arange(rows)
    start = raster.window(axes) + first * down_bytes
    columns = {"src": start + numbers * down_bytes, "dst": numbers * along.o * strips.row_bytes}
    tuning = assembly.tuning.products
    loads = sum(len(spec.segments(line)) for line in range(spec.lines))
    of_pixel = loads * tuning.im2col_load_cycles + spec.lines * tuning.im2col_store_cycles
    cycles = int(assembly.tuning.moves.call_cycles + along.o * of_pixel)
    views = (View(raster.buffer), View(WINDOWS))
    assembly.add([Phase((spec,), views, records_of(spec.frame, columns), np.full(rows, cycles, np.int32))])


def product_of(desc: ConvolutionDesc, dst: Matrix, strips: WindowStrips, rows: int) -> Product:
    """Of a strip, without a bias."""
    types, weights, (*outer, _, along) = types_of(desc), desc.weights, desc.dst.dims[2:]
    assert isinstance(weights, KernelRowsDesc)
    (_, columns), *_ = weights.storage.inner_blocks
    nothing = (0,) * (1 + len(outer))
    src = Matrix(
        buffer=WINDOWS,
        start_bytes=0,
        batch_bytes=(*nothing, along * strips.row_bytes),
        row_bytes=strips.row_bytes,
        column_bytes=GROUP_BYTES,
        dtype=types.src,
        group=types.group,
    )
    panels = Panels(
        buffer="weights",
        start_bytes=0,
        batch_bytes=(*nothing, 0),
        row_bytes=columns * GROUP_BYTES,
        panel_bytes=types.weights.size_bytes * weights.storage.strides[0],
        columns=columns,
        dtype=types.weights,
        group=types.group,
    )
    return Product(
        batch=(*[1] * len(nothing), rows),
        m=along,
        n=desc.dst.dims[1],
        k=prod(desc.kernel[:-1]) * piece_bytes(desc) // GROUP_BYTES,
        src=src,
        weights=panels,
        dst=dst,
        types=types,
    )
