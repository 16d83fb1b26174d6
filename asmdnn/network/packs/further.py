"""Shapes that the file of an open network does not have, from the model that the file was made of."""

from collections.abc import Callable

from asmdnn.errors import AsmdnnError, InvalidArguments, shown
from asmdnn.network.dims import Shapes
from asmdnn.network.network import Network
from asmdnn.network.open import OpenNetwork
from asmdnn.network.packs.made_of import made_of

Load = Callable[[], Network]


class FurtherShapes:
    """load: makes the network of the model; name: of the file; made_of: `made_of` the network that was saved."""

    def __init__(self, load: Load, name: str, made_of: str, isa: str) -> None:
        self._load, self._name, self._made_of, self._isa = load, name, made_of, isa
        self._network: OpenNetwork | None = None

    def at(self, asked: Shapes) -> Network:
        """Raises InvalidArguments for a network of another model or level, and as OpenNetwork.at."""
        if self._network is None:
            self._network = self._loaded()
        return self._network.at(asked)

    def _loaded(self) -> OpenNetwork:
        try:
            found = self._load()
        except AsmdnnError:
            raise
        except Exception as error:  # whatever the caller's function does
            raise InvalidArguments(f"further() raised {shown(error)}") from error
        if not isinstance(found, OpenNetwork):
            raise InvalidArguments(f"further() must give a network with open dims, not {shown(found)}")
        if found.engine.isa != self._isa:
            levels = f"{found.engine.isa}, and {self._name!r} is for {self._isa}"
            raise InvalidArguments(f"further() gives a network for {levels}: load it with an engine of that level")
        if not self._made_of or made_of(found) != self._made_of:
            other = f"another model than {self._name!r} has, or other constants, or another precision"
            raise InvalidArguments(f"further() gives a network of {other}: load it as the one that was saved")
        return found
