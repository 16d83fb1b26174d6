"""Which products multiply bf16: those for which all products and the conversions between them are expected to take
least.

Whether one gains depends on its neighbours: a value costs a conversion where a product of bf16 reads it and its maker
stores f32, or where one of f32 reads it, too.  So each is asked again until none changes, once from all and once from
none, and the better end is taken.  From all, a chain of bf16 stays together; from none, one of f32.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from math import inf

from asmdnn.records import dataclass

MOST_PASSES = 4  # over the products; two are usual


@dataclass(frozen=True)
class NarrowProduct:
    """A product that may multiply bf16.

    before, now: cycles with f32 and with bf16; operands: the values that it multiplies; is_willing: whether it would,
    by what stands around it."""

    result: str
    operands: tuple[str, ...]
    before: float
    now: float
    is_willing: Callable[[], bool] = lambda: True


class TypeChoice:
    """chosen: results of the products of bf16, which is read while it changes; wide: the values that products of f32
    read; conversion: cycles to convert a value; is_narrow: whether a value may be stored as bf16 by its maker."""

    def __init__(
        self,
        candidates: Sequence[NarrowProduct],
        wide: Sequence[str],
        conversion: Callable[[str], float],
        is_narrow: Callable[[str], bool],
    ) -> None:
        self.candidates, self.conversion, self.is_narrow = candidates, conversion, is_narrow
        self.always_wide = tuple(wide)
        self.chosen: set[str] = set()
        self.readers, self.wide_readers = Counter[str](), Counter[str]()

    def make(self) -> None:
        """The better of two ends."""
        self.descend(self.candidates)
        from_all, most = frozenset(self.chosen), self.cycles()
        self.descend(())
        if self.cycles() >= most:
            self.begin([each for each in self.candidates if each.result in from_all])

    def descend(self, first: Sequence[NarrowProduct]) -> None:
        """Ask each product until none changes."""
        self.begin(first)
        for _ in range(MOST_PASSES):
            before = frozenset(self.chosen)
            for candidate in self.candidates:
                wide, narrow = self.cost(candidate, narrow=False), self.cost(candidate, narrow=True)
                self.set(candidate, narrow=narrow < wide)
            if self.chosen == before:
                break

    def begin(self, narrow: Sequence[NarrowProduct]) -> None:
        self.chosen.clear()
        self.chosen.update(each.result for each in narrow)
        self.readers = Counter(name for each in narrow for name in each.operands)
        self.wide_readers = Counter(self.always_wide)
        self.wide_readers.update(
            name for each in self.candidates if each.result not in self.chosen for name in each.operands
        )

    def set(self, candidate: NarrowProduct, narrow: bool) -> None:
        if narrow == (candidate.result in self.chosen):
            return
        (self.chosen.add if narrow else self.chosen.discard)(candidate.result)
        for name in candidate.operands:
            self.readers[name] += 1 if narrow else -1
            self.wide_readers[name] -= 1 if narrow else -1

    def cost(self, candidate: NarrowProduct, narrow: bool) -> float:
        """Of the product in a type, and of what that makes others convert."""
        self.set(candidate, narrow)
        if narrow and not candidate.is_willing():
            return inf
        conversions = sum(map(self.conversions, {candidate.result, *candidate.operands}))
        return (candidate.now if narrow else candidate.before) + conversions

    def conversions(self, name: str) -> float:
        """Of a value that is read as bf16, and is made or read as f32, too."""
        is_both = not self.is_narrow(name) or self.wide_readers[name]
        return self.conversion(name) if self.readers[name] and is_both else 0.0

    def cycles(self) -> float:
        """Of all."""
        products = sum(each.now if each.result in self.chosen else each.before for each in self.candidates)
        return products + sum(map(self.conversions, self.readers))
