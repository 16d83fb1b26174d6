"""A model in a file and all that `load_onnx` is asked to make of it; what is kept on disk of that, or it anew."""

from os import PathLike
from typing import Any

from asmdnn.errors import InvalidArguments, shown
from asmdnn.forking import importing
from asmdnn.network.narrow.storage import ErrorLimit, Precision
from asmdnn.network.network import Network
from asmdnn.network.open import OpenNetwork
from asmdnn.network.packs.kept import find, keep, key_of, key_with
from asmdnn.network.packs.kept_open import KeptOpenNetwork
from asmdnn.network.packs.kept_shapes import described
from asmdnn.network.packs.kept_stages import CutModel
from asmdnn.primitives.core.engine import Engine
from asmdnn.records import dataclass


@dataclass(frozen=True, eq=False)
class ModelRequest:
    """The arguments of `load_onnx`.  source: a path, or the file's bytes; precision, limit: what its words say."""

    source: str | PathLike[str] | bytes
    shapes: Any
    constants: Any
    engine: Engine
    fallback: str | None
    precision: Precision
    limit: ErrorLimit | None
    state: Any
    seed: Any
    bounds: Any

    def key(self) -> str | None:
        """What the network is kept under, of the file as it is now; None if it is not to be kept."""
        key = key_of(
            self.source, self.shapes, self.constants, self.engine,
            fallback=self.fallback, precision=self.precision, limit=self.limit,
        )  # fmt: skip
        return key_with(key, self.seed, self.state, self.bounds)

    def model(self) -> Any:
        """Read, with states, a seed and bounds as asked for."""
        with importing():
            from asmdnn.network.counted.bounds import within_bounds
            from asmdnn.network.onnx.reader import read_model
            from asmdnn.network.seeded import seeded
            from asmdnn.network.stateful import tied

        return within_bounds(tied(seeded(read_model(self.source), self.seed), self.state, self.shapes), self.bounds)

    def network(self) -> Network:
        """Read, and planned unless it has open dims."""
        return self.network_with(self.precision, self.limit)

    def network_with(self, precision: Precision, limit: ErrorLimit | None = None) -> Network:
        """The same with another precision, such as the one by which it was within the limit."""
        with importing():
            from asmdnn.network.calibration import network_within

        return network_within(
            self.model(), self.shapes, self.constants, engine=self.engine, fallback=self.fallback,
            precision=precision, limit=limit,
        )  # fmt: skip

    def stages(self, precision: Precision) -> CutModel:
        """What finds its parts again that wait for data."""
        with importing():
            from asmdnn.network.of_model import stages_of

        return stages_of(self.model(), self.constants, self.engine, self.fallback, precision)

    def kept_network(self, key: str) -> Network | None:
        """The network that is kept under a key, or the one of open dims whose shapes are; None if there is none.  It
        reads the model when it is looked at in a way that needs that."""
        engine, fallback = self.engine, self.fallback
        found = find(key, engine.threads, fallback, stages=lambda used: self.unchanged_since(key).stages(used))
        if found:
            return Network(
                lambda: engine,
                found,
                lambda: self.unchanged_since(key).network_with(found.precision),
                states=found.states.arrays(),
            )
        if words := described(key):
            return KeptOpenNetwork(
                *words, engine, key=key, fallback=fallback, read=lambda: self.unchanged_since(key).network()
            )
        return None

    def network_to_keep(self, key: str) -> Network:
        """The network, which is kept under a key once it has run; shapes are when they come again."""
        net = self.network()
        if isinstance(net, OpenNetwork):
            net._keep_shapes_under(key, self.fallback)
        else:
            keep(key, net.planned())
        return net

    def unchanged_since(self, key: str) -> "ModelRequest":
        """Itself.  Raises InvalidArguments for a model that has become another one since it had this key."""
        if self.key() != key:
            raise InvalidArguments(f"the model {shown(self.source)} has changed since it was loaded: load it again")
        return self
