"""What integers of a network may be, which a call looks at; imported without planners, as what runs needs it."""

from typing import NamedTuple

NO_AXIS = -1  # in the place of one


class Limit(NamedTuple):
    """Integers from `least` to below `end`; axis: of what they choose from, NO_AXIS if they choose nothing."""

    end: int
    axis: int
    least: int

    def held(self, other: "Limit") -> "Limit":
        """What keeps both."""
        first = self if self.end <= other.end else other
        return first._replace(least=max(self.least, other.least))


def around(end: int, axis: int = NO_AXIS) -> Limit:
    """Of indices along an axis of so many elements, which may count from its end, or of numbers around 0."""
    return Limit(end, axis, -end)
