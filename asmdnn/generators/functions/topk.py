"""The k largest or smallest numbers, and where they are: of every row, or of every lane down the rows.

    rows:  dst[r, t] = the column of the t-th best of src[r, :];  values[r, t] = that number
    lanes: dst[t, c] = the row of the t-th best of src[:, c];     values[t, c] = that number

| argument | dtype[shape] | what it is |
|---|---|---|
| src     | f32[rows, elements] | rows src_row_bytes apart, elements dense; only read |
| dst     | s32[rows, k] or [k, elements] | rows dst_row_bytes apart, elements dst_step_bytes (lanes: 4); only written |
| values  | f32, laid out as dst | only written; not there unless the spec says so |

Of equal numbers the one with the lower index comes first, or of k = 1 the last one if `order` says so; -0 and 0 are
equal, and a value is 0 then.  NaN comes first, or last.

Every lane has a list of its k best; those of a row become one in k reductions across lanes.
"""

from collections.abc import Callable, Sequence
from struct import pack
from typing import Final

from asmdnn.generators.checksum import checksum
from asmdnn.generators.contract import Footprint, Range
from asmdnn.generators.functions.pointers import RowPointers
from asmdnn.generators.functions.row_code import DST, OTHER_REGISTERS, SRC, Rows
from asmdnn.generators.functions.rows import Vectors, Walk, rows_touched
from asmdnn.generators.functions.topk_lists import LEAST, MOST, Lists, Order, Search
from asmdnn.isa.assembler import Assembler, Register, mem
from asmdnn.isa.vector import Lanes, Vector
from asmdnn.isa.vectors import vector_of
from asmdnn.records import dataclass
from asmdnn.types import F32_BYTES

ARGUMENTS: Final = ("src", "dst", "values")
VALUES: Final = 2
AT_ONCE: Final = 4
NAN: Final = 0x7FC00000


@dataclass(frozen=True, slots=True, kw_only=True)
class TopKSpec:
    """Everything that the bytes of such a kernel depend on.  along: "rows" or "lanes", see above."""

    isa: str
    along: str
    k: int
    rows: int
    elements: int
    src_row_bytes: int
    dst_row_bytes: int
    dst_step_bytes: int = F32_BYTES
    order: Order = Order()
    has_values: bool = False

    @property
    def name(self) -> str:
        what = "largest" if self.order.largest else "smallest"
        size = f"{self.along}{self.rows}x{self.elements}"
        return f"top{self.k}_{what}_f32_{size}_{checksum(self)}__{self.isa}"

    @property
    def frame(self) -> tuple[str, ...]:
        return ARGUMENTS if self.has_values else ARGUMENTS[:VALUES]

    def footprint(self) -> Footprint:
        src = rows_touched(SRC, self.rows, self.src_row_bytes, self.elements)
        writes = [found for argument in range(DST, len(self.frame)) for found in self.written(argument)]
        return Footprint(src, tuple(writes))

    def written(self, argument: int) -> tuple[Range, ...]:
        """Of a result."""
        if self.along == "lanes":
            return rows_touched(argument, self.k, self.dst_row_bytes, self.elements)
        if self.dst_step_bytes == F32_BYTES:
            return rows_touched(argument, self.rows, self.dst_row_bytes, self.k)
        places = (r * self.dst_row_bytes + t * self.dst_step_bytes for r in range(self.rows) for t in range(self.k))
        return tuple(Range(argument, at, at + F32_BYTES) for at in places)

    def generate(self, asm: Assembler) -> None:
        v = vector_of(self.isa, asm)
        if self.along == "rows":
            TopKAlong(self, v).all_rows()
        else:
            TopKDown(self, v).emit()
        asm.ret()


class TopKAlong(Rows):
    """A row at a time: lists of all lanes, which become one."""

    def __init__(self, spec: TopKSpec, v: Vector) -> None:
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


class TopKDown:
    """Some vectors at a time, down all rows; lists on the stack have room for one."""

    def __init__(self, spec: TopKSpec, v: Vector) -> None:
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
