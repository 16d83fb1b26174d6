"""The k best of every row: the lanes of vectors along it have lists, which become one."""

from struct import pack
from typing import Final

from asmdnn.generators.functions.row_code import Rows
from asmdnn.generators.functions.rows import Vectors, Walk
from asmdnn.generators.functions.topk_lists import LEAST, MOST, Search
from asmdnn.generators.functions.topk_shape import AT_ONCE, VALUES, TopKShape
from asmdnn.isa.assembler import Register, mem
from asmdnn.isa.vector import Lanes, Vector

NAN: Final = 0x7FC00000


class TopKRows(Rows):
    """A row at a time: lists of all lanes, which become one."""

    def __init__(self, spec: TopKShape, v: Vector) -> None:
        steps = {VALUES: spec.dst_row_bytes} if spec.has_values else {}
        super().__init__(v, spec.rows, 1, (spec.src_row_bytes, spec.dst_row_bytes), steps)
        self.spec, self.walk, self.search = spec, Walk(v, spec.elements), Search(v, spec.k, spec.order)
        self.lists = self.search.new_lists(max(1, min(AT_ONCE, self.walk.full)))
        self.now = v.registers.take("columns")

    def some(self, rows: int) -> None:
        asm = self.v.asm
        asm.role("row")
        if self.spec.k == 1 and self.walk.full:
            self.numbers_of_row()
        else:
            self.search.clear(self.lists)
            self.keys_of_row()
        asm.role("the best of all lanes")
        self.join()
        for t in range(self.spec.k):
            self.best(t)

    def numbers_of_row(self) -> None:
        """From its first vectors on."""
        v = self.v
        self.start_counting()
        for j, one in enumerate(self.lists):
            (best,), (place,) = one.keys, one.indices
            v.load(best, mem(self.src, j * v.bytes, size=v.bytes))
            v.asm.VPADDD(place, self.now, v.splat(j * v.lanes))
        with self.v.held_condition() as unordered:
            v.nowhere(unordered)
            self.walk.each(AT_ONCE, "numbers", lambda vectors: self.numbers(vectors, unordered))
            self.search.keys_unless(unordered, self.lists, self.keys_of_row)

    def numbers(self, vectors: Vectors, unordered: Register) -> None:
        """Two vectors after the other."""
        v = self.v
        for first in range(0, vectors.count, 2):
            parts = vectors.parts[first : first + 2]
            loaded = v.registers.take("number", len(parts))
            for j, (part, x) in enumerate(zip(parts, loaded, strict=True), first):
                part.load(x, vectors.at(self.src, j))
            self.search.note_nan(unordered, loaded[0], loaded[-1])
            for j, (part, x) in enumerate(zip(parts, loaded, strict=True), first):
                self.fill_rest(part, x, NAN)
                self.search.take_number(self.lists[j % len(self.lists)], x, self.now)
                v.asm.VPADDD(self.now, self.now, v.splat(v.lanes))
            v.registers.free(*loaded)

    def fill_rest(self, part: Lanes, x: Register, bits: int) -> None:
        """Lanes after the row become something that is never the best."""
        if part is not self.v:
            nothing = self.v.registers.take("nothing")
            self.search.bits(nothing, bits)
            part.fill_rest(x, nothing)
            self.v.registers.free(nothing)

    def start_counting(self) -> None:
        v = self.v
        v.load(self.now, v.asm.const(pack(f"<{v.lanes}i", *range(v.lanes)), v.bytes, size=v.bytes))

    def keys_of_row(self) -> None:
        self.start_counting()
        self.walk.each(AT_ONCE, "vectors", self.vectors)

    def vectors(self, vectors: Vectors) -> None:
        v = self.v
        for j, (part, key) in enumerate(zip(vectors.parts, self.search.keys(vectors, self.src), strict=True)):
            self.fill_rest(part, key, LEAST)
            self.search.take_in(self.lists[j % len(self.lists)], key, self.now)
            v.asm.VPADDD(self.now, self.now, v.splat(v.lanes))
            v.registers.free(key)

    def join(self) -> None:
        """The lists of several vectors as one, of k = 1."""
        v, (first, *others) = self.v, self.lists
        for other in others:
            (best,), (place,), (key,), (index,) = first.keys, first.indices, other.keys, other.indices
            limit = v.registers.take("limit")
            with self.v.held_condition() as equal:
                v.asm.VPCMPEQD(equal, best, key)
                (v.asm.VPMAXSD if self.spec.order.last else v.asm.VPMINSD)(limit, place, index)
                v.select(limit, equal, limit, place)
            with self.v.held_condition() as better:
                v.asm.VPCMPGTD(better, key, best)
                v.select(place, better, index, limit)
            v.asm.VPMAXSD(best, best, key)
            v.registers.free(limit)

    def best(self, t: int) -> None:
        """Of the lanes' best the best, with the lowest index, is the t-th result, and leaves its list."""
        v, asm, spec, one = self.v, self.v.asm, self.spec, self.lists[0]
        key, index = (self.search.fetch(places[0]) for places in (one.keys, one.indices))
        most, place, spare = v.registers.take("best of all", 3)
        v.move(most, key)
        v.across(most, spare, asm.VPMAXSD)
        with self.v.held_condition() as equal:
            asm.VPCMPEQD(equal, key, most)
            self.search.bits(spare, LEAST if spec.order.last else MOST)
            v.select(place, equal, index, spare)
        v.across(place, spare, asm.VPMAXSD if spec.order.last else asm.VPMINSD)
        asm.VMOVD(mem(self.dst, t * spec.dst_step_bytes, size=4), place.xmm)
        if t < spec.k - 1:
            with self.v.held_condition() as found:
                asm.VPCMPEQD(found, index, place)
                self.search.pop(one, found, (key, index), spec.k - 1 - t)
        v.registers.free(place, spare, key, index)
        if spec.has_values:
            most = self.search.number(most)
            asm.VMOVSS(mem(self.operands.register(VALUES), t * spec.dst_step_bytes, size=4), most.xmm)
        v.registers.free(most)
