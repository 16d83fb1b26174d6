"""The networks of the shapes of an open one, as they are held in memory and kept on disk."""

from collections.abc import Callable

from asmdnn.network.network import Network

Key = tuple[tuple[int, ...], ...]


class HeldNetwork:
    """A network for one shape.  Weights that most shapes read belong to the model, and are no part of `kept_bytes`.
    store: has it kept on disk, and says whether that is done; what comes once only is not worth the time."""

    def __init__(self, key: Key, network: Network, store: Callable[[Network], bool] | None = None) -> None:
        self.key, self.network, self.used, self.store = key, network, False, store
        self._counted = network.kept_bytes

    @property
    def kept_bytes(self) -> int:
        return self.network.kept_bytes

    def grown_bytes(self) -> int:
        """Since it was asked for the last time: weights are packed by the first run."""
        before, self._counted = self._counted, self.kept_bytes
        return self._counted - before

    def keep(self) -> None:
        """Once it has run."""
        if self.store is not None and self.store(self.network):
            self.store = None
