"""A reduction as a tree: chunks of src, which stay in L1, then chunks of their results, some at a time.

The tree depends on the shape and the layout alone, so results do not depend on the number of threads; and errors grow
with the logarithm of the number of elements.

Results of the levels between lie in scratch as [chunks][elements of dst], in dst's order, so that every level but the
first is the same: vectors of neighbours in dst, down the chunks.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate
from math import prod
from operator import mul

from asmdnn.generators.contract import KernelSpec
from asmdnn.planning.assembly import Assembly
from asmdnn.planning.loops import Box, Loop, cut_loop
from asmdnn.planning.phase import views
from asmdnn.primitives.reduction.source import DST, SRC, Chunk, ReductionSource, TreeKernels
from asmdnn.primitives.shapes.nests import Nest
from asmdnn.primitives.shapes.row_calls import Calls, phases_of
from asmdnn.types import F32_BYTES


class Tree:
    """The phases of the reduction of `buffer` to `elements` elements, added to an assembly."""

    def __init__(self, assembly: Assembly, kernels: TreeKernels, elements: int) -> None:
        self.assembly, self.kernels, self.elements = assembly, kernels, elements
        self.tuning, self.levels = assembly.tuning.reduction, 0

    def grow(self, source: ReductionSource, buffer: str = "src") -> None:
        """All of them."""
        nest = source.nest
        single = Loop(1, (0,) * len(nest.starts))
        row = source.row or (nest.reduced[-1] if nest.reduced else single)
        outer = [loop for loop in nest.reduced if loop is not row]
        within = source.lanes or max(nest.kept, key=lambda loop: loop.extent, default=single)
        tuning, size_bytes = self.tuning, self.kernels.src_bytes
        most = min(within.extent, tuning.lanes)
        part = part_of(row.extent, tuning.row_elements if source.row else max(1, tuning.chunk_elements // most))
        if source.row:
            most = max(1, min(self.assembly.tuning.elementwise.most_rows, tuning.chunk_elements // part))
            most = most if part == row.extent else 1  # pieces of a row after one another, as they lie in memory
        chunks = [*(loop.extent for loop in outer), -(-row.extent // part)]
        written, is_last = self.next_results(prod(chunks))
        calls: Calls[KernelSpec] = []
        for box, size in self.boxes(nest, row, outer, part):
            loop = next((x for x in box.loops if x == self.kept(within)), None)
            loop = loop or Loop(1, (0,) * len(box.starts))
            for piece, some in cut_loop(box, loop, most):
                here, down = self.read(some), row.strides[2:]
                if source.row:
                    strides = (size_bytes * here[SRC], F32_BYTES * some.strides[len(here)])
                    chunk = Chunk("rows", some.extent, size, *strides, tuple(zip(here[1:], down, strict=True)))
                else:
                    steps = tuple(zip(down, here[1:], strict=True))
                    chunk = Chunk("lanes", size, some.extent, size_bytes * row.strides[SRC], 0, steps)
                calls.append((self.kernels.first(chunk, is_last), piece, others(piece, some)))
        sizes = (size_bytes, *self.kernels.operand_bytes, *self.written_bytes(is_last))
        self.add(calls, (buffer, *self.kernels.operands, *written, *self.kernels.beside), sizes)
        last = row.extent - (chunks[-1] - 1) * part
        self.merge_all(chunks, (part, last), written)

    def boxes(self, nest: Nest, row: Loop, outer: Sequence[Loop], part: int) -> Iterator[tuple[Box, int]]:
        """The loops outside of chunks, over src, the results and what is beside them: of the full chunks, and of the
        last ones, with their size."""
        full, rest = divmod(row.extent, part)
        strides = [*accumulate([full + bool(rest), *(loop.extent for loop in reversed(outer))], mul)][-2::-1]
        for first, count, size in ((0, full, part), (full, 1, rest)):
            if size and count:
                loops = [self.kept(loop) for loop in nest.kept]
                loops += [self.chunked(x.extent, read(x.strides), n) for x, n in zip(outer, strides, strict=True)]
                steps = [part * step for step in read(row.strides)]
                loops.append(self.chunked(count, steps, 1))
                start = [at + first * step for at, step in zip(read(nest.starts), steps, strict=True)]
                starts = self.chunked(1, start, first).strides
                yield Box(starts, tuple(loop for loop in loops if loop.extent > 1), padding=False), size

    def kept(self, loop: Loop) -> Loop:
        """A loop over src, operands, the results, and what is beside them."""
        arguments = len(self.kernels.results) + len(self.kernels.beside)
        return Loop(loop.extent, (*read(loop.strides), *[loop.strides[DST]] * arguments))

    def chunked(self, extent: int, steps: Sequence[int], chunks: int) -> Loop:
        """A loop that goes so many chunks further in the results, by these steps in src and operands."""
        results, beside = len(self.kernels.results), len(self.kernels.beside)
        return Loop(extent, (*steps, *[chunks * self.elements] * results, *[0] * beside))

    def read(self, loop: Loop) -> tuple[int, ...]:
        """The steps in src and operands of a loop of a box."""
        return loop.strides[: 1 + len(self.kernels.operands)]

    def merge_all(self, chunks: list[int], counts: tuple[int, int], read: tuple[str, ...]) -> None:
        """Chunks of results, dim by dim, the innermost first, whose chunks have counts[0] elements, the last one
        counts[1]."""
        outer = chunks
        while outer:
            *outer, found = outer
            while found > 1:
                together = min(found, self.tuning.merged)
                groups = -(-found // together)
                written, is_last = self.next_results(prod(outer) * groups)
                self.merge(prod(outer), found, together, counts, read=read, written=written, is_last=is_last)
                rest = found - (groups - 1) * together
                counts = (together * counts[0], (rest - 1) * counts[0] + counts[1])
                found, read = groups, written
            counts = (counts[1], counts[1])

    def merge(
        self,
        outer: int,
        found: int,
        together: int,
        counts: tuple[int, int],
        read: tuple[str, ...],
        written: tuple[str, ...],
        is_last: bool,
    ) -> None:
        """One level."""
        groups, size = -(-found // together), self.elements
        many, beside = len(read), len(self.kernels.beside)

        def loop(extent: int, chunks: int, merged: int) -> Loop:
            return Loop(extent, (*[chunks * size] * many, *[merged * size] * many, *[0] * beside))

        calls: Calls[KernelSpec] = []
        lanes = Loop(size, (1,) * (2 * many + beside))
        rest = found - (groups - 1) * together
        for first, count, rows, last in ((0, groups - 1, together, counts[0]), (groups - 1, 1, rest, counts[1])):
            starts = loop(1, first * together, first).strides
            box = Box(starts, (loop(outer, found, groups), loop(count, together, 1), lanes), padding=False)
            for piece, some in cut_loop(box, lanes, self.tuning.lanes) if count else ():
                chunk = Chunk("lanes", rows, some.extent, F32_BYTES * size, 0)
                spec = self.kernels.merge(chunk, (counts[0], last), is_last)
                calls.append((spec, piece, others(piece, some)))
        self.add(calls, (*read, *written, *self.kernels.beside), (*[F32_BYTES] * many, *self.written_bytes(is_last)))

    def written_bytes(self, is_last: bool) -> tuple[int, ...]:
        """Of an element of each result of a level."""
        return (self.kernels.result_bytes if is_last else F32_BYTES,) * len(self.kernels.results)

    def next_results(self, chunks: int) -> tuple[tuple[str, ...], bool]:
        """The buffers of a level's results, and whether they are those of the tree."""
        if chunks == 1:
            return self.kernels.results, True
        self.levels += 1
        names = tuple(f"{name}, level {self.levels}" for name in self.kernels.results)
        self.assembly.scratch |= dict.fromkeys(names, F32_BYTES * chunks * self.elements)
        return names, False

    def add(self, calls: Calls[KernelSpec], buffers: tuple[str, ...], first: tuple[int, ...] = ()) -> None:
        """A phase; first: bytes of an element of the first buffers, which others have of f32."""
        sizes = (*first, *[F32_BYTES] * (len(buffers) - len(first)))
        costs = {spec: self.kernels.cost(spec, self.tuning) for spec in dict.fromkeys(spec for spec, *_ in calls)}
        self.assembly.add(phases_of(calls, costs, views(buffers), self.assembly.tuning.phases, sizes))


def read(strides: Sequence[int]) -> tuple[int, ...]:
    """Those of src and operands: of all tensors of a nest but dst."""
    return (strides[SRC], *strides[DST + 1 :])


def others(box: Box, loop: Loop) -> tuple[Loop, ...]:
    return tuple(x for x in box.loops if x is not loop)


def part_of(extent: int, most: int) -> int:
    """The size of nearly equal parts of at most so many; but the last may be smaller."""
    return -(-extent // -(-extent // most))
