"""What is known of a network's integers of 32 bits and more: where kernels made some, and what calls have to check."""

from collections.abc import Collection

from asmdnn.network.joining.place import Place
from asmdnn.network.limits import Limit


class IntegerValues:
    """made: values that are integers, as f32, for callers, numpy and look-ups; bounds: what these are from, and up to.
    origins: inputs whose elements some of these are.
    limits: of integer inputs; checked: of those that kernels make, which a call has to look at after it.
    given: inputs, and what numpy computes before; whole: those of whose integers kernels read all words."""

    def __init__(self, given: Collection[str]) -> None:
        self.given = set(given)
        self.made: dict[str, Place] = {}
        self.bounds: dict[str, tuple[float, float]] = {}
        self.origins: dict[str, str] = {}
        self.limits: dict[str, Limit] = {}
        self.checked: dict[str, Limit] = {}
        self.whole: set[str] = set()

    def branch(self) -> "IntegerValues":
        """One that is continued independently."""
        other = IntegerValues(self.given)
        other.made, other.bounds, other.origins = self.made.copy(), self.bounds.copy(), self.origins.copy()
        other.limits, other.checked, other.whole = self.limits.copy(), self.checked.copy(), self.whole.copy()
        return other

    def limit(self, name: str, limit: Limit) -> None:
        """Have a call look at an input of integers; all limits hold."""
        self.limits[name] = limit.held(self.limits.get(name, limit))

    def look_at(self, name: str, limit: Limit) -> None:
        """Have a call look at integers that kernels make, or at the input that these are; all limits hold."""
        origin = self.origins.get(name, name)
        if origin in self.given:
            self.limit(origin, limit)
            return
        self.checked[name] = limit.held(self.checked.get(name, limit))
