"""What integers of a network may be, which a call looks at; imported without planners, as what runs needs it."""

from typing import NamedTuple

from asmdnn.errors import InvalidArguments
from asmdnn.network.arrays import Array

NO_AXIS = -1  # in the place of one
COUNTED = -2  # in the place of an axis, of a count within a bound


class Limit(NamedTuple):
    """Integers from `least` to below `end`; axis: of what they choose from, NO_AXIS if they choose nothing; ignored:
    one that they may be besides."""

    end: int
    axis: int
    least: int
    ignored: int | None = None

    def allows(self, number: int | None) -> bool:
        return number is not None and (self.least <= number < self.end or number == self.ignored)

    def held(self, other: "Limit") -> "Limit":
        """What keeps both."""
        first = self if self.end <= other.end else other
        besides = (one for one, last in ((self.ignored, other), (other.ignored, self)) if last.allows(one))
        return first._replace(least=max(self.least, other.least), ignored=next(besides, None))


def around(end: int, axis: int = NO_AXIS) -> Limit:
    """Of indices along an axis of so many elements, which may count from its end, or of numbers around 0."""
    return Limit(end, axis, -end)


def check_count(name: str, count: Array, limit: Limit) -> None:
    """Raise InvalidArguments for more places than a bound allows.  name: whose they are."""
    found = int(count.reshape(-1)[0])
    if found >= limit.end:
        raise InvalidArguments(too_many(name, found, limit.end - 1))


def too_many(name: str, found: int, most: int) -> str:
    return f"{name} are {found}, and bounds has {most}: give it more"
