"""The k best of every lane, down the rows."""

from collections.abc import Callable, Sequence

from asmdnn.generators.functions.pointers import RowPointers
from asmdnn.generators.functions.row_code import DST, OTHER_REGISTERS, SRC
from asmdnn.generators.functions.rows import Vectors, Walk
from asmdnn.generators.functions.topk_lists import Lists, Search
from asmdnn.generators.functions.topk_shape import AT_ONCE, VALUES, TopKShape
from asmdnn.isa.assembler import Register, mem
from asmdnn.isa.vector import Vector


class TopKLanes:
    """Some vectors at a time, down all rows; lists on the stack have room for one."""

    def __init__(self, spec: TopKShape, v: Vector) -> None:
        self.v, self.spec, self.search = v, spec, Search(v, spec.k, spec.order)
        self.walk, self.left = Walk(v, spec.elements), v.asm.gp.take("rows left")
        self.now = v.registers.take("row")
        self.at_once = AT_ONCE if spec.k == 1 else 1
        self.lists = self.search.new_lists(1) if spec.k > 1 else []

    def emit(self) -> None:
        self.walk.each(self.at_once, "lanes", self.some)

    def some(self, vectors: Vectors) -> None:
        asm, spec = self.v.asm, self.spec
        asm.role("rows")
        lists = self.lists or self.search.new_lists(vectors.count)
        if spec.k == 1:
            with self.v.held_condition() as unordered:
                self.numbers_of_rows(vectors, lists, unordered)
                self.search.keys_unless(unordered, lists, lambda: self.keys_of_rows(vectors, lists))
        else:
            self.search.clear(lists)
            self.keys_of_rows(vectors, lists)
        asm.role("results")
        for j, one in enumerate(lists):
            self.finish(vectors, j, one)
        if not self.lists:
            self.search.release(lists)

    def numbers_of_rows(self, vectors: Vectors, lists: Sequence[Lists], unordered: Register) -> None:
        """From the first row on."""
        v = self.v
        v.nowhere(unordered)
        start = v.asm.gp.take("src")
        v.asm.MOV(start, mem(v.asm.frame, 8 * SRC))
        for j, (one, part) in enumerate(zip(lists, vectors.parts, strict=True)):
            (best,), (place,) = one.keys, one.indices
            part.load(best, vectors.at(start, j))
            v.zero(place)
        v.asm.gp.free(start)

        def row(src: Register) -> None:
            for j, (one, part) in enumerate(zip(lists, vectors.parts, strict=True)):
                x = v.registers.take("number")
                part.load(x, vectors.at(src, j))
                self.search.note_nan(unordered, x, x)
                self.search.take_number(one, x, self.now)
                v.registers.free(x)

        self.down(row)

    def keys_of_rows(self, vectors: Vectors, lists: Sequence[Lists]) -> None:
        def row(src: Register) -> None:
            for one, key in zip(lists, self.search.keys(vectors, src), strict=True):
                self.search.take_in(one, key, self.now)
                self.v.registers.free(key)

        self.down(row)

    def down(self, row: Callable[[Register], None]) -> None:
        """`row` of every row, from the first one on."""
        v, asm, spec = self.v, self.v.asm, self.spec
        v.zero(self.now)
        pointers = RowPointers(asm, {SRC: spec.src_row_bytes}, spec.rows, OTHER_REGISTERS)
        asm.MOV(self.left, spec.rows)
        with asm.loop(self.left, "rows"):
            row(pointers.register(SRC))
            asm.VPADDD(self.now, self.now, v.splat(1))
            pointers.next_row()
        pointers.release()

    def finish(self, vectors: Vectors, j: int, one: Lists) -> None:
        """All levels of a vector's lists."""
        v, spec = self.v, self.spec
        pointers = RowPointers(v.asm, dict.fromkeys(range(DST, len(spec.frame)), 0), 1, OTHER_REGISTERS)
        for t in range(spec.k):
            results = {DST: one.indices[t], **({VALUES: one.keys[t]} if spec.has_values else {})}
            for argument, source in results.items():
                result = self.search.fetch(source)
                if argument == VALUES:
                    result = self.search.number(result)
                at = vectors.at(pointers.register(argument), j, t * spec.dst_row_bytes)
                vectors.parts[j].store(at, result)
                v.registers.free(result)
        pointers.release()
