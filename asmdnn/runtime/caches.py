"""Caches that are bounded in bytes, and what they hold."""

from typing import Generic, Protocol, TypeVar

from asmdnn.runtime.limits import Limited

KEPT_SHARE = 0.75  # of the limit, what stays when a cache is over it: making room costs a look at every entry


class Kept(Protocol):
    """What a cache can hold: it says how large it is, and is told that it was used."""

    used: bool

    @property
    def kept_bytes(self) -> int: ...


Key = TypeVar("Key")
Value = TypeVar("Value", bound=Kept)


class Cache(Limited, Generic[Key, Value]):
    """Values by key, the ones used lately, of at most `limit_bytes` together.

    A hit is one look-up and one store.  What has not been used since the cache was over its limit goes first ("second
    chance").  There is no lock: every step is one operation of a dict or list, so any thread may call anything at any
    time, and a fork finds the cache whole.
    """

    def __init__(self, default_bytes: int, name: str = "") -> None:
        super().__init__(default_bytes, name)
        self.entries: dict[Key, Value] = {}
        self._added = 0  # bytes, about: threads may lose an addition, `shrink` counts anew

    def get(self, key: Key) -> Value | None:
        value = self.entries.get(key)
        if value is not None:
            value.used = True
        return value

    def put(self, key: Key, value: Value) -> Value:
        """`value`, or what another thread put there meanwhile."""
        kept = self.entries.setdefault(key, value)
        if kept is value:
            self._added += value.kept_bytes
            limit = self.limit_bytes
            if self._added > limit:
                self.shrink(int(limit * KEPT_SHARE))
        return kept

    def count(self, more_bytes: int) -> None:
        """Note that what is held has grown since it came: the next `put` makes room."""
        self._added += more_bytes

    @property
    def held_bytes(self) -> int:
        return sum(value.kept_bytes for value in list(self.entries.values()))

    def shrink(self, to_bytes: int) -> None:
        """Forget what was not used lately until so many bytes are left."""
        left = self.held_bytes
        for spares in (True, False):
            for key, value in list(self.entries.items()):
                if left <= to_bytes:
                    break
                if spares and value.used:
                    value.used = False
                elif self.entries.pop(key, None) is value:
                    left -= value.kept_bytes
        self._added = left

    def limit(self, limit_bytes: int) -> None:
        """Another limit, from now on."""
        self._given = limit_bytes
        self.shrink(limit_bytes)

    def clear(self) -> None:
        self.entries.clear()
        self._added = 0
