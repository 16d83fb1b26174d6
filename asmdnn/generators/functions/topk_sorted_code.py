"""The emission of the calls of topk_sorted.py, and what they keep of a row."""

from collections.abc import Callable, Sequence

from asmdnn.generators.functions.rows import Vectors, Walk
from asmdnn.generators.functions.sort_network import SortNetwork
from asmdnn.generators.functions.topk_pairs import ABOVE, NOT_UP_TO, TopKPairs
from asmdnn.generators.functions.topk_sorted_shape import (
    ARGUMENTS,
    BEST,
    COPIED,
    DST,
    NEXT,
    SRC,
    STATE,
    VALUES,
    WAITING,
    SortedTopKShape,
    place_of,
    state_bytes,
)
from asmdnn.isa.assembler import Assembler, Pointer, Register, low32, mem
from asmdnn.isa.pairs import PAIR_BYTES, pair_lanes_of
from asmdnn.isa.vectors import vector_of


class SortedTopK:
    """The emission of a kernel."""

    def __init__(self, spec: SortedTopKShape, asm: Assembler) -> None:
        self.spec, self.asm, self.v = spec, asm, vector_of(spec.isa, asm)
        self.pairs = pair_lanes_of(self.v)
        self.numbers = TopKPairs(self.v, self.pairs, spec.order)
        self.state = self.pointer(STATE)
        self.best, self.waiting = (mem(self.state, at) for at in (BEST, spec.waits))

    def pointer(self, argument: int) -> Register:
        register: Register = self.asm.gp.take(ARGUMENTS[argument])
        self.asm.MOV(register, mem(self.asm.frame, 8 * argument))
        return register

    def whole(self) -> None:
        self.take()
        self.network().sort(self.best)
        self.write()

    def first(self) -> None:
        asm, spec = self.asm, self.spec
        self.take()
        self.network().sort(self.best)
        asm.role("nothing waits")
        self.fill(self.waiting, state_bytes(spec.isa, spec.size, waits=True) - spec.waits)
        self.count(WAITING, 0)
        self.count(NEXT, spec.elements)

    def merge(self) -> None:
        asm, spec = self.asm, self.spec
        enough = asm.new_label("there is room")
        with asm.gp.taken("waiting") as waiting:
            asm.MOV(waiting, mem(self.state, WAITING))
            asm.CMP(waiting, spec.size - spec.room)
            asm.JBE(enough)
        self.join()
        self.count(WAITING, 0)
        asm.bind(enough)

    def last(self) -> None:
        self.join()
        self.write()

    def network(self) -> SortNetwork:
        return SortNetwork(self.v, self.pairs, self.spec.size)

    def join(self) -> None:
        network = self.network()
        network.sort(self.waiting)
        network.take_better(self.best, self.waiting, self.numbers.nothing)

    def count(self, at: int, number: int) -> None:
        with self.asm.gp.taken("count") as count:
            self.asm.MOV(count, number)
            self.asm.MOV(mem(self.state, at), count)

    def fill(self, start: Pointer, size: int) -> None:
        """With pairs of nothing."""
        asm, v = self.asm, self.v
        turns = size // v.bytes
        with asm.gp.taken("place") as place, asm.gp.taken("vectors left") as left:
            asm.LEA(place, start)
            asm.MOV(left, turns)
            with asm.loop(left, "nothing"):
                v.store(mem(place, size=v.bytes), self.numbers.nothing)
                asm.ADD(place, v.bytes)

    def take(self) -> None:
        """The elements as pairs, and nothing after them."""
        asm, v, spec = self.asm, self.v, self.spec
        asm.role("pairs")
        src, place = self.pointer(SRC), asm.gp.take("place")
        asm.LEA(place, self.best)
        self.numbers.start_at_zero()

        def some(vectors: Vectors) -> None:
            with v.registers.taken("x") as x:
                vectors.load(x, src, 0)
                self.numbers.number(x)
                first, second = self.numbers.of(x, vectors.parts[0])
                v.store(mem(place, size=v.bytes), first)
                v.store(mem(place, v.bytes, size=v.bytes), second)
                v.registers.free(second)
                asm.ADD(place, 2 * v.bytes)
                self.numbers.next_vector()

        walk = self.walk(some)
        asm.gp.free(src, place, walk.place)
        done = -(-spec.elements // v.lanes) * v.lanes
        if done < spec.size:
            self.fill(self.best.shifted(PAIR_BYTES * done), PAIR_BYTES * (spec.size - done))

    def walk(self, some: Callable[[Vectors], None]) -> Walk:
        walk = Walk(self.v, self.spec.elements)
        walk.each(1, "vectors", some)
        if walk.tail:
            walk.tail.release()
        return walk

    def choose(self) -> None:
        asm, v, spec = self.asm, self.v, self.spec
        src, waiting = self.pointer(SRC), asm.gp.take("waiting")
        limit, least = v.registers.take("limit", 2)
        worst = self.best.shifted(place_of(spec.isa, spec.size, spec.k - 1))
        self.pairs.broadcast(least, worst.sized(PAIR_BYTES))
        self.numbers.limit(limit, worst)
        asm.MOV(waiting, mem(self.state, WAITING))
        self.numbers.start_at(mem(self.state, NEXT, size=4))

        def some(vectors: Vectors) -> None:
            nothing = asm.new_label("nothing better")
            with v.registers.taken("x") as x:
                vectors.load(x, src, 0)
                self.numbers.number(x)
                with self.v.held_condition() as better:
                    v.compare(better, x, limit, NOT_UP_TO)
                    v.jump_unless_any(better, nothing)
                first, second = self.numbers.of(x, vectors.parts[0])
                for pairs in (first, second):
                    self.append(pairs, least, waiting)
                v.registers.free(second)
            asm.bind(nothing)
            self.numbers.next_vector()

        self.walk(some)
        asm.role("nothing after them")
        asm.MOV(mem(self.state, WAITING), waiting)
        asm.ADD(mem(self.state, NEXT, size=8), spec.elements)
        with asm.gp.taken("0") as zero:
            asm.XOR(zero, zero)
            asm.CMP(waiting, spec.size + 1)
            asm.CMOVAE(waiting, zero)
        self.store_waiting(waiting, self.numbers.nothing)

    def append(self, pairs: Register, least: Register, waiting: Register) -> None:
        """Those above the least one wait, too; `waiting` counts them."""
        asm = self.asm
        with asm.gp.taken("place") as place, asm.gp.taken("better ones") as count:
            with self.v.held_condition() as better:
                asm.VCMPPD(better, pairs, least, ABOVE)
                self.pairs.together(pairs, better, count)
            asm.MOV(place, waiting)
            asm.AND(place, self.spec.size - 1)
            self.store_waiting(place, pairs)
            asm.ADD(waiting, count)

    def store_waiting(self, place: Register, pairs: Register) -> None:
        """A vector from that pair on."""
        at = mem(self.state, self.spec.waits, index=place, scale=PAIR_BYTES, size=self.v.bytes)
        self.v.store(at, pairs)

    def write(self) -> None:
        """The first k of the best, column by column."""
        asm, v, spec = self.asm, self.v, self.spec
        asm.role("results")
        rows = spec.size // self.pairs.lanes
        with asm.gp.taken("place") as place, asm.gp.taken("rows left") as left:
            asm.LEA(place, self.best)
            asm.MOV(left, rows)
            with asm.loop(left, "pairs"), v.registers.taken("pairs", 3) as (x, *spare):
                v.load(x, mem(place, size=v.bytes))
                self.numbers.results(x, spare)
                v.store(mem(place, size=v.bytes), x)
                asm.ADD(place, v.bytes)
        results = [self.pointer(argument) for argument in (DST, VALUES)[: 1 + spec.has_values]]
        columns, rest = divmod(spec.k, rows)
        if columns:
            with asm.gp.taken("columns left") as left:
                asm.MOV(left, columns)
                with asm.loop(left, "columns"):
                    self.column(rows, results)
                    asm.ADD(self.state, PAIR_BYTES)
        if rest:
            self.column(rest, results)

    def column(self, rows: int, results: Sequence[Register]) -> None:
        """So many results of a column; the pointers move on."""
        asm = self.asm
        with asm.gp.taken("place") as place, asm.gp.taken("turns left") as left:
            asm.LEA(place, self.best)
            turns, rest = divmod(rows, COPIED)
            if turns:
                asm.MOV(left, turns)
                with asm.loop(left, "results"):
                    self.copy(place, COPIED, results)
            self.copy(place, rest, results)

    def copy(self, place: Register, rows: int, results: Sequence[Register]) -> None:
        asm, spec, size = self.asm, self.spec, self.v.bytes
        for i in range(rows):
            with asm.gp.taken("result") as result:
                asm.MOV(result, mem(place, i * size, size=8))
                asm.MOV(mem(results[0], i * spec.dst_step_bytes, size=4), low32(result))
                if spec.has_values:
                    asm.SHR(result, 32)
                    asm.MOV(mem(results[1], i * spec.dst_step_bytes, size=4), low32(result))
        if rows:
            asm.ADD(place, rows * size)
            for register in results:
                asm.ADD(register, rows * spec.dst_step_bytes)
