"""Lists of the k best numbers that every lane of vectors has seen: the code that topk.py is made of.

Numbers are compared as integers in the same order, their keys, among which NaN has a place.  The lists are in registers
for k = 1 and else on the stack; a vector with nothing better than the last of every list is passed over.  For k = 1
numbers are compared as they are first: half the instructions, and all is done again with keys if one was NaN.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final

from asmdnn.generators.functions.expression import Builder, Term
from asmdnn.generators.functions.program import Predicate, Program
from asmdnn.generators.functions.row_code import Computation
from asmdnn.generators.functions.rows import Vectors
from asmdnn.isa.assembler import Register
from asmdnn.isa.vector import Vector
from asmdnn.records import dataclass

LEAST, MOST = 0x80000000, 0x7FFFFFFF  # s32
BETTER: Final = {
    (True, False): Predicate.greater, (True, True): Predicate.greater_equal,
    (False, False): Predicate.less, (False, True): Predicate.less_equal,
}  # fmt: skip
LAST_KEY: Final = LEAST + 1  # of NaN that comes last; LEAST itself is of what no row has


@dataclass(frozen=True, slots=True)
class Order:
    """largest: else the smallest come first; last: of equal numbers, else the first; nan_last: else NaN comes first."""

    largest: bool = True
    last: bool = False
    nan_last: bool = False


@lru_cache
def key_program(order: Order) -> Program:
    """Integers in the order of the numbers, the best ones largest; 0 + x makes 0 of -0."""
    build = Builder()
    (x,) = build.inputs
    bits = folded(build, x + 0.0 if order.largest else 0.0 - x)
    return build.finish(build.where(x != x, build.bits(LAST_KEY if order.nan_last else MOST), bits))


@lru_cache
def number_program(order: Order) -> Program:
    """The number with such a key; NaN stays NaN."""
    build = Builder()
    number = folded(build, build.inputs[0])
    return build.finish(number if order.largest else 0.0 - number)


def folded(build: Builder, x: Term) -> Term:
    """All but the sign inverted where the sign is set: its own inverse, between floats and integers of their order."""
    sign = build.op("sar", x, immediate=31)
    return build.op("xor", x, build.op("shr", sign, immediate=1))


@dataclass(frozen=True, slots=True)
class Lists:
    """The best of every lane of a vector: keys and indices of k levels, in a register each or on the stack."""

    keys: Sequence[Any]
    indices: Sequence[Any]


class Search(Computation):
    """Lists of the k best, and how vectors go into them."""

    def __init__(self, v: Vector, k: int, order: Order) -> None:
        super().__init__(v)
        self.k, self.order = k, order

    def new_lists(self, vectors: int) -> list[Lists]:
        """One for each of some vectors for k = 1, else one."""
        v, k = self.v, self.k
        if k == 1:
            places = zip(v.registers.take("best", vectors), v.registers.take("where", vectors), strict=True)
            return [Lists([key], [index]) for key, index in places]
        keys, indices = ([v.asm.stack(v.bytes) for _ in range(k)] for _ in range(2))
        return [Lists(keys, indices)]

    def clear(self, lists: Sequence[Lists]) -> None:
        """Nothing found, at no index."""
        v = self.v
        least, most = v.registers.take("nothing", 2)
        self.bits(least, LEAST)
        self.bits(most, MOST)
        for one in lists:
            for keys, bits in ((one.keys, least), (one.indices, most)):
                for place in keys:
                    (v.move if isinstance(place, Register) else v.store)(place, bits)
        v.registers.free(least, most)

    def fetch(self, place: Any) -> Register:
        """A copy of what a level holds."""
        copy: Register = self.v.registers.take("level")
        (self.v.move if isinstance(place, Register) else self.v.load)(copy, place)
        return copy

    def release(self, lists: Sequence[Lists]) -> None:
        held = [x for one in lists for x in (*one.keys, *one.indices) if isinstance(x, Register)]
        self.v.registers.free(*held)

    def bits(self, dst: Register, bits: int) -> None:
        self.v.broadcast(dst, self.v.asm.const(bits.to_bytes(4, "little"), 4, size=4))

    def take_in(self, one: Lists, key: Register, index: Register) -> None:
        """The numbers of a vector into its lists; `index` is kept."""
        if self.k > 1:
            self.insert(one, key, index)
            return
        v, (best,), (place,) = self.v, one.keys, one.indices
        with self.v.held_condition() as better:
            if self.order.last:
                v.asm.VPCMPGTD(better, best, key)
                v.select(place, better, place, index)
            else:
                v.asm.VPCMPGTD(better, key, best)
                v.select(place, better, index, place)
        v.asm.VPMAXSD(best, best, key)

    def take_number(self, one: Lists, x: Register, index: Register) -> None:
        """Of a vector as it is, for k = 1, into lists of numbers; NaN is passed over."""
        v, (best,), (place,) = self.v, one.keys, one.indices
        with self.v.held_condition() as better:
            v.compare(better, x, best, BETTER[self.order.largest, self.order.last])
            v.select(place, better, index, place)
        (v.asm.VMAXPS if self.order.largest else v.asm.VMINPS)(best, x, best)

    def note_nan(self, unordered: Register, a: Register, b: Register) -> None:
        """`unordered` holds where it did, and where one of two vectors is NaN."""
        with self.v.held_condition() as found:
            self.v.compare(found, a, b, Predicate.unordered)
            self.v.unite(unordered, found)

    def keys_unless(self, unordered: Register, lists: Sequence[Lists], search: Callable[[], None]) -> None:
        """Keys in the place of numbers; where one was NaN, those that `search` finds in another way."""
        v, asm = self.v, self.v.asm
        ordered, done = asm.new_label("all are numbers"), asm.new_label("keys")
        v.jump_unless_any(unordered, ordered)
        asm.role("once more with NaN")
        self.clear(lists)
        search()
        asm.JMP(done)
        asm.bind(ordered)
        asm.role("keys")
        for one in lists:
            (best,) = one.keys
            (key,) = self.apply(key_program(self.order), [[self.fetch(best)]])
            v.move(best, key)
            v.registers.free(key)
        asm.bind(done)

    def insert(self, one: Lists, key: Register, index: Register) -> None:
        """Down the levels: what is less than the key moves on by one, and what is equal, and older, stays."""
        v, asm = self.v, self.v.asm
        passed = asm.new_label("nothing better")
        moving, moving_index, held, kept = v.registers.take("level", 4)
        with self.v.held_condition() as better:
            asm.VPCMPGTD(better, key, one.keys[-1])
            v.jump_unless_any(better, passed)
            v.move(moving, key)
            v.move(moving_index, index)
            for at_key, at_index in zip(one.keys, one.indices, strict=True):
                v.load(held, at_key)
                asm.VPCMPGTD(better, key, held)
                for x, place in ((moving, at_key), (moving_index, at_index)):
                    if place is at_index:
                        v.load(held, at_index)
                    v.select(kept, better, x, held)
                    v.store(place, kept)
                    v.select(x, better, held, x)
            asm.bind(passed)
        v.registers.free(moving, moving_index, held, kept)

    def pop(self, one: Lists, found: Register, first: tuple[Register, Register], levels: int) -> None:
        """In the lane that was found so many levels move up; `first` is a copy of the first one."""
        v = self.v
        for held, places in zip(first, (one.keys, one.indices), strict=True):
            following = v.registers.take("following")
            for level in range(levels):
                v.load(following, places[level + 1])
                v.select(held, found, following, held)
                v.store(places[level], held)
                v.move(held, following)
            v.registers.free(following)

    def keys(self, vectors: Vectors, src: Register) -> list[Register]:
        """Of some vectors."""
        return self.apply(key_program(self.order), [vectors.sources(lambda: src)])

    def number(self, key: Register) -> Register:
        """In a register that is taken; the key's is given up."""
        (number,) = self.apply(number_program(self.order), [[key]])
        return number
