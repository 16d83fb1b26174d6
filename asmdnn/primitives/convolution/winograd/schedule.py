"""The records of a Winograd convolution: transforms of tiles, products of every frequency, transforms of products.

Fused, a block of tiles after the other goes through all three on one thread, in scratch of its own that stays in L2:
one phase, a group of records for each block.  In phases, all tiles go through each before the next one begins.

Frequencies are the outermost loop of products, panels of output channels the next, so that the weights of one of both
serve all tiles from L1 while those of the next are prefetched.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from asmdnn.generators.dot.matmul import MatmulTileSpec
from asmdnn.generators.dot.matmul_shape import Items, MatmulTile
from asmdnn.generators.winograd.products import ProductsTransformSpec
from asmdnn.generators.winograd.source import SourceTransformSpec
from asmdnn.isa.dot import GROUP_BYTES
from asmdnn.planning.cost import step_cycles
from asmdnn.planning.cuts import balanced, runs_of
from asmdnn.planning.phase import Int64
from asmdnn.primitives.convolution.tiling import prefetch_lines
from asmdnn.primitives.convolution.winograd.cost import source_cycles
from asmdnn.primitives.convolution.winograd.cut import rows_of, steps_of
from asmdnn.primitives.convolution.winograd.job import WinogradJob
from asmdnn.primitives.convolution.winograd.tiles import WinogradTiles
from asmdnn.records import dataclass
from asmdnn.types import f32

Records = tuple[Int64, npt.NDArray[np.int32]]  # and what each is expected to cost
VECTORS_OF_OPERANDS = 2  # of a transform whose post-ops read tensors: its code is that of each vector


@dataclass(frozen=True, slots=True)
class TileBlocks:
    """Some tiles, in blocks of `size` of them."""

    tiles: slice
    size: int

    def places(self, rows: int, block_bytes: int, row_bytes: int) -> Int64:
        """int64[tiles]: where each lies, in runs of at most so many."""
        each = np.array(balanced(self.size, rows))
        block = np.repeat(np.arange(len(each)), each)
        row = np.arange(self.size) - (np.cumsum(each) - each)[block]
        tile = np.arange(self.tiles.stop - self.tiles.start) % self.size
        found: Int64 = (block * block_bytes + row * row_bytes)[tile]
        return found


@dataclass(frozen=True, slots=True)
class PanelChunks:
    """`times` chunks of so many panels, which are numbered from `first` on; ends: whether the last panel is of them."""

    first: int
    panels: int
    times: int = 1
    ends: bool = True


def chunks_of(panels: int, chunk: int) -> list[PanelChunks]:
    """All but the last chunk, and that one, which may be smaller and whose last vectors may be fewer."""
    before = (panels - 1) // chunk
    last = PanelChunks(before * chunk, panels - before * chunk)
    return [PanelChunks(0, chunk, before, ends=False), last] if before else [last]


def fused(job: WinogradJob, tiles: WinogradTiles) -> tuple[Records, Int64]:
    """The records of all blocks, and where each begins; blocks of one size are made at once, and alike chunks, too."""
    first, runs, starts = 0, list[Records](), [np.zeros(1, np.int64)]
    all_chunks = chunks_of(job.sizes.panels, job.cut.panels)
    for size, times in runs_of(len(tiles.first), job.cut.block):
        some = TileBlocks(slice(first, first + size * times), size)
        pieces = [by_chunk(sources(job, tiles, some), 1, times)]
        for chunks in all_chunks:
            multiplied = by_chunk(products(job, size, chunks), chunks.times, 1)
            pieces.append(in_turn([multiplied, by_chunk(results(job, tiles, some, chunks), chunks.times, times)]))
        records, cycles = in_turn(pieces)
        runs.append((records.reshape(-1, records.shape[-1]), cycles.ravel()))
        first += size * times
        starts.append(starts[-1][-1] + len(runs[-1][1]) // times * np.arange(1, times + 1))
    records, cycles = (np.concatenate(each) for each in zip(*runs, strict=True))
    return (records, cycles), np.concatenate(starts)


def by_chunk(piece: Records, chunks: int, blocks: int) -> Records:
    """(blocks, chunks, records, ...) of records that come chunk by chunk."""
    records, cycles = piece
    return (
        records.reshape(chunks, blocks, -1, records.shape[1]).swapaxes(0, 1),
        cycles.reshape(chunks, blocks, -1).swapaxes(0, 1),
    )


def in_turn(pieces: list[Records]) -> Records:
    """(blocks, 1, records, ...): for every block, chunk by chunk, its share of each piece; what has one block serves
    all."""
    blocks = max(len(records) for records, _ in pieces)
    records, cycles = (
        np.concatenate([np.broadcast_to(each, (blocks, *each.shape[1:])) for each in parts], 2)
        for parts in zip(*pieces, strict=True)
    )
    return records.reshape(blocks, 1, -1, records.shape[-1]), cycles.reshape(blocks, 1, -1)


def sources(job: WinogradJob, tiles: WinogradTiles, blocks: TileBlocks) -> Records:
    """The transforms of the tiles, those of a block side by side."""
    g, sizes, m = job.g, job.sizes, job.cut.m
    rows, pixels = g.src.axis_bytes
    number = job.numbers(
        SourceTransformSpec(
            isa=job.isa,
            m=m,
            rows=down,
            cols=across,
            row_bytes=rows,
            pixel_bytes=pixels,
            channels=job.readable,
            vector_bytes=g.src.channel(job.lanes),
            frequency_bytes=sizes.source_frequency_bytes,
            src_type=g.types.src,
            source_type=job.cut.types.src,
        )
        for down, across in tiles.reads_of
    )
    src = tiles.src_bytes[blocks.tiles]
    columns = {"source": blocks.places(sizes.rows, sizes.source_block_bytes, sizes.source_row_bytes), "src": src}
    cycles = job.call_cycles + source_cycles(g, job.cut, job.lanes, job.tuning) * sizes.source_vectors
    return job.records(columns, number[tiles.reads[blocks.tiles]]), np.full(len(src), cycles, np.int32)


def products(job: WinogradJob, tiles: int, chunks: PanelChunks) -> Records:
    """Chunk by chunk, for every frequency and group and every panel of the chunk, all tiles; each prefetches a share of
    the next weights."""
    sizes, types, found = job.sizes, job.cut.types, []
    runs = runs_of(tiles, rows_of(job.isa, types)[job.cut.vectors])
    into_bytes = types.src.size_bytes * job.g.ic
    out_bytes, width_bytes = (types.sums.size_bytes * x for x in (job.g.oc, job.width))
    lines = prefetch_lines(types.weights_bytes * job.width, sum(times for _, times in runs), job.tuning.phases)
    grid = np.indices((chunks.times, sizes.frequencies, job.cut.groups, chunks.panels))
    chunk, f, group, held = grid.reshape(len(grid), -1)
    p = chunks.first + chunk * chunks.panels + held
    weights = group * sizes.group_bytes + (p * sizes.frequencies + f) * sizes.panel_bytes
    following = np.roll(weights.reshape(chunks.times, -1), -1, axis=1).ravel()
    source, into, done = 0, 0, 0
    for rows, times in runs:
        columns = {
            "source": f * sizes.source_frequency_bytes + source + group * into_bytes,
            "weights": weights,
            "prefetched": following + sizes.panel_bytes * done // tiles,
            "products": f * sizes.products_frequency_bytes + into + group * out_bytes + held * width_bytes,
        }
        vectors = [job.cut.vectors, (-(-job.g.oc // job.lanes) - 1) % job.cut.vectors + 1]
        number = job.numbers([product(job, rows, times, count, lines) for count in vectors])
        steps = [steps_of(job.g, job.cut) * step_cycles(rows, n, job.lanes, job.tuning.phases) for n in vectors]
        cost = [times * (job.call_cycles + each) for each in steps]
        last = (p == sizes.panels - 1).astype(np.int64)
        found.append((job.records(columns, number[last]), np.array(cost, np.int32)[last]))
        source_step, products_step = sizes.steps(rows)
        source, into, done = source + times * source_step, into + times * products_step, done + rows * times
    return interleaved(found)


def interleaved(parts: list[Records]) -> Records:
    """The first of each, then the second of each."""
    records = np.stack([records for records, _ in parts], axis=1)
    return records.reshape(-1, records.shape[2]), np.stack([cycles for _, cycles in parts], axis=1).ravel()


def product(job: WinogradJob, rows: int, times: int, vectors: int, lines: int) -> MatmulTileSpec:
    """`times` register blocks of `rows` tiles, one after another, by a panel."""
    sizes = job.sizes
    source_step, products_step = sizes.steps(rows)
    tile = MatmulTile(
        isa=job.isa,
        rows=rows,
        columns=vectors * job.lanes,
        depth=job.g.ic,
        src_row_bytes=sizes.source_row_bytes,
        src_depth_bytes=GROUP_BYTES,
        weights_row_bytes=job.cut.types.weights_bytes * job.width,
        panel_vectors=job.cut.vectors,
        panel_bytes=0,
        padded=True,
        dst_row_bytes=sizes.products_row_bytes,
        prefetch_lines=lines,
        items=Items(times, source_step, 0, 0, products_step),
        types=job.cut.types,
    )
    return MatmulTileSpec(tile=tile)


def results(job: WinogradJob, tiles: WinogradTiles, blocks: TileBlocks, chunks: PanelChunks) -> Records:
    """The transforms of products into the channels of panels, chunk by chunk, tile by tile, some vectors at a time."""
    sizes, lanes, of_chunk = job.sizes, job.lanes, chunks.panels * job.cut.vectors
    begin, channels = chunks.first * job.cut.vectors, job.cut.groups * job.g.oc
    end = sizes.result_vectors if chunks.ends else begin + of_chunk
    of_phase = job.tuning.winograd.phase_vectors
    limit = VECTORS_OF_OPERANDS if job.places else end - begin if job.cut.is_fused else of_phase
    step = min(limit, end - begin)
    held = np.arange(0, end - begin, step)  # vectors, from the first one of a chunk on
    each, last = (
        min((min(begin + v + step, end) - begin - v) * lanes, channels - (begin + v) * lanes)
        for v in (0, int(held[-1]))
    )
    number = job.numbers(
        spec for shape in tiles.makes_of for spec in (result(job, shape, each), result(job, shape, last))
    )
    block = blocks.tiles
    vectors = begin + of_chunk * np.arange(chunks.times)[:, None, None] + held
    kernel = np.broadcast_to(
        2 * tiles.makes[block][:, None] + (held == held[-1]), (chunks.times, block.stop - block.start, len(held))
    )
    row = blocks.places(sizes.rows, sizes.products_block_bytes, sizes.products_row_bytes)[:, None]
    columns = {
        "bias": f32.size_bytes * lanes * vectors,
        "products": row + f32.size_bytes * lanes * held,
        "dst": tiles.dst_bytes[block][:, None] + job.g.dst.channels(vectors * lanes),
    }
    for name, place in job.places.items():
        pixel = place.layout.start_bytes + tiles.image[block] * place.layout.image_bytes
        pixel = pixel + tiles.first[block] * place.layout.pixel_bytes
        columns[name] = pixel[:, None] + (0 if place.operand.element else place.layout.channels(vectors * lanes))
    flat = {name: np.broadcast_to(column, kernel.shape).ravel() for name, column in columns.items()}
    done = np.minimum(held + step, end - begin) - held
    cycles = job.call_cycles + job.tuning.winograd.products_cycles(job.cut.m, lanes) * done
    cost = np.broadcast_to(cycles, kernel.shape).ravel().astype(np.int32)
    return job.records(flat, number[kernel.ravel()]), cost


def result(job: WinogradJob, shape: tuple[Any, Any], channels: int) -> ProductsTransformSpec:
    """The transform into `channels` channels of results of that shape."""
    g, (rows, cols) = job.g, shape
    down, pixels = g.dst.axis_bytes
    return ProductsTransformSpec(
        isa=job.isa, m=job.cut.m, rows=rows, cols=cols, row_bytes=down, pixel_bytes=pixels, row_pixels=g.axes[1].o,
        channels=channels, whole_vectors=job.whole_vectors, vector_bytes=g.dst.channel(job.lanes),
        frequency_bytes=job.sizes.products_frequency_bytes, bias=job.bias, post_ops=job.post_ops, dst_type=job.dst_type,
        operand_types=job.operand_types,
    )  # fmt: skip
