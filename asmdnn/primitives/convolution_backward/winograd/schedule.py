"""The records of a Winograd gradient of weights: a chunk of tiles after the other, in two phases each.

The first one transforms the tiles of src and of diff_dst.  The second one multiplies them: for each frequency a product
of transformed source (channels, tiles) and transformed diff_dst (tiles, output channels), whose sums are transformed
into gradients.  A *unit* is some input channels by some panels of output channels: one thread computes its products at
all frequencies, in scratch of its own that stays in L2, and adds what they make to what earlier chunks have left.  So
sums go through the chunks in one order, whatever the number of threads.
"""

from collections.abc import Sequence
from itertools import product

import numpy as np
import numpy.typing as npt

from asmdnn.generators.contract import KernelSpec
from asmdnn.generators.dot.matmul import MatmulTileSpec
from asmdnn.generators.dot.matmul_shape import Items, MatmulTile
from asmdnn.generators.winograd.arguments import ARGUMENTS
from asmdnn.generators.winograd.diff_dst import DiffDstTransformSpec
from asmdnn.generators.winograd.diff_weights import DiffWeightsTransformSpec
from asmdnn.generators.winograd.source import SourceTransformSpec
from asmdnn.planning.cost import step_cycles
from asmdnn.planning.cuts import runs_of
from asmdnn.planning.phase import Int64, Phase, View, records_of
from asmdnn.planning.tuning import Tuning
from asmdnn.primitives.convolution.geometry import ConvGeometry, ImageLayout
from asmdnn.primitives.convolution.winograd.cut import rows_of
from asmdnn.primitives.convolution.winograd.tiles import make_tiles
from asmdnn.primitives.convolution_backward.weights_units import GradientPanels
from asmdnn.primitives.convolution_backward.winograd.cut import ChunkSizes, GradientCut, TileChunk, chunks_of
from asmdnn.records import dataclass, field
from asmdnn.types import f32

SOURCE, RESULT, SUMS = "transformed source", "transformed diff_dst", "sums of products"  # scratch
Shape = tuple[tuple[int, int], tuple[int, int]]
Records = tuple[Int64, npt.NDArray[np.int32]]  # and what each is expected to cost


@dataclass(frozen=True, eq=False)
class GradientJob:
    """What records are made for.  readable: channels of src and of diff_dst that transforms read, with those that are
    zero padding.  specs: the kernels, numbered as they come up."""

    isa: str
    tuning: Tuning
    g: ConvGeometry
    cut: GradientCut
    panels: GradientPanels
    sizes: ChunkSizes
    readable: tuple[int, int]
    specs: dict[KernelSpec, int] = field(default_factory=dict)

    def number(self, spec: KernelSpec) -> int:
        return self.specs.setdefault(spec, len(self.specs))

    @property
    def call_cycles(self) -> int:
        return self.tuning.phases.call_cycles


def phases_of(job: GradientJob) -> list[Phase]:
    """All phases, for buffers with the names of a convolution's tensors."""
    g, made = job.g, list[Phase]()
    known: dict[tuple[tuple[int, int, int], bool], list[tuple[Records, Int64 | None]]] = {}
    for number, chunk in enumerate(chunks_of(g, job.cut)):
        key = chunk.shape, number > 0
        if key not in known:
            moved = transforms(job, chunk)
            known[key] = [(moved, None), units(job, chunk.tiles, number > 0)]
        buffers = {"source": View(SOURCE), "weights": View(RESULT), "products": View(SUMS)}
        ends = [
            {"src": View("src", chunk.image * g.src.image_bytes), "dst": View("dst", chunk.image * g.dst.image_bytes)},
            {"dst": View("weights")},
        ]
        for ((records, cycles), groups), end in zip(known[key], ends, strict=True):
            views = {"bias": View(""), "prefetched": View(RESULT), "src": View("src"), **buffers, **end}
            made.append(Phase((), tuple(views[name] for name in ARGUMENTS), records, cycles, groups=groups))
    return made


def transforms(job: GradientJob, chunk: TileChunk) -> Records:
    """Of the tiles of src, then of those of diff_dst: all channels of one at a time."""
    g, sizes, own, lanes = job.g, job.sizes, job.tuning.winograd, job.panels.lanes
    tiles = make_tiles(g, job.cut.m, 0, chunk.images)
    some, number = slice(chunk.begin, chunk.end), np.arange(chunk.tiles)
    sources = of_tiles(
        job,
        SourceTransformSpec,
        (tiles.reads_of, tiles.reads[some]),
        (g.src, job.readable[0], sizes.source_frequency_bytes),
        {"source": number * sizes.source_row_bytes, "src": tiles.src_bytes[some]},
        own.source_cycles(job.cut.m, lanes) * sizes.source_vectors,
    )
    each = job.tuning.winograd_gradient.diff_dst_cycles * own.turns(lanes)
    results = of_tiles(
        job,
        DiffDstTransformSpec,
        ([((0, down), (0, across)) for down, across in tiles.makes_of], tiles.makes[some]),
        (g.dst, job.readable[1], sizes.result_frequency_bytes),
        {"weights": number * sizes.result_row_bytes, "dst": tiles.dst_bytes[some]},
        each * sizes.result_vectors,
    )
    return np.concatenate((sources[0], results[0])), np.concatenate((sources[1], results[1]))


def of_tiles(
    job: GradientJob,
    form: type[SourceTransformSpec],
    shapes: tuple[Sequence[Shape], Int64],
    read: tuple[ImageLayout, int, int],
    columns: dict[str, Int64],
    cycles: int,
) -> Records:
    """Of one tensor.  shapes: the (begin, end) of rows and of columns that tiles may have, and which each tile has.
    read: where pixels lie, channels that are read, and from a frequency to the next one what is written."""
    (layout, channels, frequency_bytes), (every, own) = read, shapes
    row_bytes, pixel_bytes = layout.axis_bytes
    numbers = [
        job.number(
            form(
                isa=job.isa, m=job.cut.m, rows=rows, cols=cols, row_bytes=row_bytes, pixel_bytes=pixel_bytes,
                channels=channels, vector_bytes=layout.channel(job.panels.lanes), frequency_bytes=frequency_bytes,
            )
        )
        for rows, cols in every
    ]  # fmt: skip
    kernel = np.array(numbers)[own]
    return records_of(ARGUMENTS, columns, kernel), np.full(len(own), job.call_cycles + cycles, np.int32)


def units(job: GradientJob, tiles: int, accumulate: bool) -> tuple[Records, Int64]:
    """Of a chunk with so many tiles: the records of all units, and where each begins."""
    g, sizes, cut = job.g, job.sizes, job.cut
    panels = range(0, sizes.panel_count, cut.panels)
    offsets, cycles, begins = [], [], [0]
    for group, first, panel in product(range(g.groups), range(0, g.ic, cut.rows), panels):
        rows, together = min(cut.rows, g.ic - first), min(cut.panels, sizes.panel_count - panel)
        pieces = [multiplied(job, tiles, rows, together), transformed(job, rows, together, accumulate)]
        at = (group * sizes.panel_count + panel) * job.panels.panel_bytes(g)
        start = {
            "source": f32.size_bytes * (group * g.ic + first),
            "weights": f32.size_bytes * group * g.oc + panel * job.panels.row_bytes,
            "dst": at + job.panels.row_bytes * job.panels.place(g, first, 0),
        }
        row = records_of(ARGUMENTS, start)[0]
        for records, cost in pieces:
            offsets.append(records + row)
            cycles.append(cost)
        begins.append(begins[-1] + sum(len(cost) for _, cost in pieces))
    return (np.concatenate(offsets), np.concatenate(cycles)), np.array(begins, np.int64)


def multiplied(job: GradientJob, tiles: int, rows: int, panels: int) -> Records:
    """The products of a unit: for every frequency, and for each of its panels."""
    sizes, width = job.sizes, job.panels.row_bytes
    f, p = (x.ravel() for x in np.meshgrid(np.arange(sizes.frequencies), np.arange(panels), indexing="ij"))
    found, done = [], 0
    for size, times in runs_of(rows, rows_of(job.isa)[job.panels.vectors]):
        columns = {
            "source": f * sizes.source_frequency_bytes + f32.size_bytes * done,
            "weights": f * sizes.result_frequency_bytes + p * width,
            "products": p * sizes.sums_panel_bytes + f * sizes.sums_frequency_bytes + done * width,
        }
        step = step_cycles(size, job.panels.vectors, job.panels.lanes, job.tuning.phases)
        gradient = job.tuning.winograd_gradient
        cost = int(job.call_cycles + times * (gradient.block_cycles + tiles * step / gradient.busy))
        kernel = job.number(block_of(job, tiles, size, times))
        found.append((records_of(ARGUMENTS, columns, kernel), np.full(len(f), cost, np.int32)))
        done += size * times
    records = np.stack([records for records, _ in found], axis=1)
    return records.reshape(-1, records.shape[2]), np.stack([cost for _, cost in found], axis=1).ravel()


def block_of(job: GradientJob, tiles: int, rows: int, times: int) -> MatmulTileSpec:
    """`times` register blocks of `rows` input channels, one after another, by a panel; its depth is the tiles."""
    sizes, panels = job.sizes, job.panels
    tile = MatmulTile(
        isa=job.isa,
        rows=rows,
        columns=panels.vectors * panels.lanes,
        depth=tiles,
        src_row_bytes=f32.size_bytes,
        src_depth_bytes=sizes.source_row_bytes,
        weights_row_bytes=sizes.result_row_bytes,
        panel_vectors=panels.vectors,
        panel_bytes=0,
        padded=True,
        dst_row_bytes=panels.row_bytes,
        items=Items(times, f32.size_bytes * rows, 0, 0, rows * panels.row_bytes),
    )
    return MatmulTileSpec(tile=tile)


def transformed(job: GradientJob, rows: int, panels: int, accumulate: bool) -> Records:
    """The transforms of a unit's sums, block by block of its panels."""
    g, sizes, own = job.g, job.sizes, job.panels
    columns: dict[str, list[int]] = {"products": [], "dst": []}
    kernels, cycles = [], []
    for panel, row in product(range(panels), range(0, rows, own.rows)):
        count = min(own.rows, rows - row)
        spec = DiffWeightsTransformSpec(
            isa=job.isa,
            m=job.cut.m,
            vectors=count * own.vectors,
            tap_bytes=own.rows * own.row_bytes,
            frequency_bytes=sizes.sums_frequency_bytes,
            accumulate=accumulate,
            zeros=(own.rows - count) * own.vectors,
        )
        kernels.append(job.number(spec))
        columns["products"].append(panel * sizes.sums_panel_bytes + row * own.row_bytes)
        columns["dst"].append(panel * own.panel_bytes(g) + row * g.positions * own.row_bytes)
        turn = job.tuning.winograd_gradient.taps_cycles * job.tuning.winograd.turns(own.lanes)
        cycles.append(job.call_cycles + turn * spec.vectors)
    found = {name: np.array(column, np.int64) for name, column in columns.items()}
    return records_of(ARGUMENTS, found, np.array(kernels)), np.array(cycles, np.int32)
