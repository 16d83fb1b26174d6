"""The records of products of few steps of depth: blocks of rows and columns of dst, for `generators/dot/outer.py`.

What such a product takes is the time to write dst.  So it is written along its rows, a call takes many of them, and a
dst that no cache holds is written past the caches.
"""

from collections.abc import Iterator
from math import gcd

import numpy as np

from asmdnn.generators.dot.matmul_shape import ARGUMENTS, Bias
from asmdnn.generators.dot.outer import CHUNK, OuterSpec
from asmdnn.isa.dot import dot_class
from asmdnn.isa.lines import L1_SETS_BYTES, lines_that_stay
from asmdnn.isa.vectors import vector_bytes
from asmdnn.planning.cuts import balanced
from asmdnn.planning.phase import Phase, views
from asmdnn.planning.refusal import Refused
from asmdnn.primitives.products.matrices import Panels
from asmdnn.primitives.products.product import Product, check_whole_sums
from asmdnn.primitives.products.rounds import in_rounds, pieces_of
from asmdnn.primitives.products.target import Target

L1_WAYS = 8
STORE_STEPS = 4  # of k, that are done while a vector of dst is stored


def check_outer(p: Product, target: Target) -> None:
    """Raise Refused unless the kernel takes it, and pays: columns for a step of it, and enough work for a call."""
    x, chunk, tuning = p.weights, CHUNK * target.lanes, target.products
    most = tuning.streamed_depth if is_streaming(p, target) else tuning.outer_depth
    if not 0 < p.k <= most:
        raise Refused(f"there are {p.k} steps of k, outer products are for 1 to {most}")
    check_whole_sums(p)
    if not dot_class(p.types, target.isa).reads_memory:
        raise Refused(f"weights of {p.types} would be widened for every row of dst")
    if not (p.sums_fit and (p.bias is None or p.bias.dtype == p.types.sums)):
        raise Refused(f"outer products leave sums of {p.types} as they are, dst is {p.dst.dtype}")
    if p.post_op_operands or not target.epilogue.is_plain:
        raise Refused("outer products have neither post-ops nor scales")
    panels_join = isinstance(x, Panels) and chunk % x.columns == 0 and x.panel_bytes == p.k * x.row_bytes
    if not (panels_join if isinstance(x, Panels) else x.is_dense and p.types.group == 1):
        raise Refused("columns of weights are not contiguous")
    if p.n < chunk:
        raise Refused(f"dst has {p.n} columns, a step of outer products {chunk}")
    if p.batch and p.m * row_cycles(p, p.n, target.lanes) < tuning.small_tile_cycles:
        raise Refused("matrices of the batch are so small that they share calls of tiles")


def weights_alias(p: Product, target: Target) -> bool:
    """Whether more rows of weights share a set of L1 than it holds."""
    tuning = target.products
    if isinstance(p.weights, Panels) or p.m <= tuning.few_rows:
        return False
    widest = p.weights.element_bytes * column_blocks(p, target)[0]
    return p.k * max(gcd(p.weights.row_bytes, L1_SETS_BYTES), widest) > tuning.set_lines * L1_SETS_BYTES


def src_aliases(p: Product, target: Target) -> bool:
    """Whether more elements of a row of src do."""
    tuning = target.products
    is_strided = p.src.column_bytes > L1_SETS_BYTES // L1_WAYS and p.m > tuning.few_rows
    return is_strided and p.k > lines_that_stay(p.src.column_bytes, tuning.set_lines)


def column_blocks(p: Product, target: Target) -> list[int]:
    """The columns of each block, such that its weights stay in L1."""
    chunk = CHUNK * target.lanes
    most = max(1, target.products.outer_bytes // (p.weights.element_bytes * p.k * chunk))
    sizes = [chunk * x for x in balanced(-(-p.n // chunk), most)]
    return [*sizes[:-1], p.n - sum(sizes[:-1])]


def outer_phases(p: Product, target: Target) -> list[Phase]:
    """Kernels and records; rows of blocks, from left to right."""
    tuning = target.products
    widths, streaming = column_blocks(p, target), is_streaming(p, target)
    height = max(1, tuning.outer_cycles // row_cycles(p, widths[0], target.lanes))
    phases: list[Phase] = []
    for piece in pieces_of(p, (height, p.n), tuning.many_blocks // len(widths), tuning.round_records):
        made = outer_phase(piece.product, widths, height, target, streaming)
        phases += in_rounds([made], piece, ARGUMENTS, is_first=not phases)
    return phases


def outer_phase(p: Product, widths: list[int], most: int, target: Target, streaming: bool) -> Phase:
    """All blocks of at most `most` rows."""
    rows = balanced(p.m, most)
    starts = np.array(list(batch_starts(p)), np.int64)
    specs: dict[OuterSpec, int] = {}
    records, cycles, top = [], [], 0
    for height in rows:
        left = 0
        for width in widths:
            number = specs.setdefault(spec_of(p, height, width, target, streaming), len(specs))
            records.append(starts + np.array((number, *offsets(p, top, left)), np.int64))
            cycles.append(height * row_cycles(p, width, target.lanes) + target.call_cycles)
            left += width
        top += height
    together = np.stack(records, 1).reshape(-1, 1 + len(ARGUMENTS))
    names = {name: x.buffer for name, x in p.operands().items()} | {"prefetched": p.weights.buffer}
    arguments = views([names.get(name, "") for name in ARGUMENTS])
    return Phase(tuple(specs), arguments, together, np.tile(np.array(cycles, np.int32), len(starts)))


def row_cycles(p: Product, width: int, lanes: int) -> int:
    """Expected cycles of a row of a block: two multiplies a cycle, or a store every other."""
    return -(-width // lanes) * max(STORE_STEPS, p.k) // 2 + 2 * p.k


def batch_starts(p: Product) -> Iterator[list[int]]:
    """What each matrix of the batch adds to a record."""
    operands = p.operands() | {"prefetched": p.weights}
    for index in np.ndindex(*p.batch):
        steps = {name: sum(map(int.__mul__, x.batch_bytes, index)) for name, x in operands.items()}
        yield [0, *(steps.get(name, 0) for name in ARGUMENTS)]


def offsets(p: Product, top: int, left: int) -> tuple[int, ...]:
    """Where a block finds its arguments."""
    x = p.weights
    weights = x.start_bytes + (left // x.columns * x.panel_bytes if isinstance(x, Panels) else left * x.element_bytes)
    src = p.src.start_bytes + top * p.src.row_bytes
    bias = 0 if p.bias is None else p.bias.start_bytes + top * p.bias.row_bytes + left * p.bias.column_bytes
    dst = p.dst.start_bytes + top * p.dst.row_bytes + left * p.dst.element_bytes
    places = {"src": src, "weights": weights, "bias": bias, "dst": dst, "prefetched": weights}
    return tuple(places.get(name, 0) for name in ARGUMENTS)


def spec_of(p: Product, rows: int, columns: int, target: Target, streaming: bool) -> OuterSpec:
    lanes, x = target.lanes, p.weights
    panel_vectors = x.columns // lanes if isinstance(x, Panels) else CHUNK
    return OuterSpec(
        isa=target.isa,
        rows=rows,
        columns=columns,
        depth=p.depth,
        src_row_bytes=p.src.row_bytes if rows > 1 else 0,
        src_depth_bytes=p.src.column_bytes,
        weights_row_bytes=x.row_bytes,
        panel_vectors=panel_vectors,
        panel_bytes=x.panel_bytes if isinstance(x, Panels) else x.element_bytes * CHUNK * lanes,
        padded=isinstance(x, Panels),
        dst_row_bytes=p.dst.row_bytes if rows > 1 else 0,
        bias=None if p.bias is None else Bias(p.bias.row_bytes if rows > 1 else 0, p.bias.is_dense),
        prefetches=columns < p.n and rows > 1,
        streaming=streaming,
        types=p.types,
    )


def is_streaming(p: Product, target: Target) -> bool:
    """Whether dst is so large that no cache holds it, every row is aligned when the first is, and written once."""
    size = p.dst.element_bytes * p.m * p.n * int(np.prod(p.batch, dtype=np.int64))
    aligned = all(step % vector_bytes(target.isa) == 0 for step in (p.dst.row_bytes, *p.dst.batch_bytes))
    return size > target.products.streaming_bytes and aligned
