"""Environment variables at the price of a dictionary: os.environ takes 1 us a look, and some are consulted in calls."""

import os


class Variable:
    """One variable, read when it is asked for; os.environ and what changes it are seen at once."""

    __slots__ = ("_get", "_key", "name")

    def __init__(self, name: str) -> None:
        # os.environ keeps encoded names and values in `_data`, since Python 3.2; without it, the slow way.
        self.name, self._key = name, os.fsencode(name)
        self._get = getattr(os.environ, "_data", os.environb).get

    def raw(self) -> bytes | None:
        """The bytes of the value, to compare; None if it is not set."""
        value: bytes | None = self._get(self._key)
        return value

    def text(self) -> str:
        """The value; "" if it is not set."""
        return os.fsdecode(self.raw() or b"")
