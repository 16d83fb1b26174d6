"""An open network whose shapes are kept on disk: its model is read when a shape is planned, or when it is looked at."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

from asmdnn.network.dims import OpenDims, Shapes
from asmdnn.network.graph import Model
from asmdnn.network.narrow.storage import Precision
from asmdnn.network.network import Network
from asmdnn.network.open import OpenNetwork
from asmdnn.network.packs.kept_stages import CutModel
from asmdnn.network.states import StateArrays
from asmdnn.primitives.core.engine import Engine


class KeptOpenNetwork(OpenNetwork):
    """As the OpenNetwork that `read` returns.  key: what its shapes are kept under; fallback: that of `load_onnx`."""

    def __init__(
        self,
        title: str,
        dims: OpenDims,
        states: StateArrays | None,
        engine: Engine,
        *,
        key: str,
        fallback: str | None,
        read: Callable[[], Network],
    ) -> None:
        super().__init__(object(), dims, engine, title=title, make=self._planned_at, origin=None, states=states)
        self._read, self._stages = read, self._read_stages
        self._keep_shapes_under(key, fallback)

    @cached_property
    def _whole(self) -> OpenNetwork:
        found = self._read()
        assert isinstance(found, OpenNetwork), "it was one when it was written down"
        return found

    @property
    def model(self) -> Model:
        return self._whole.model

    @property
    def origin(self) -> Any:
        return self._whole.origin

    def _read_stages(self, precision: Precision) -> CutModel:
        make = self._whole._stages
        assert make is not None, "models have some"
        return make(precision)

    def _planned_at(self, asked: Shapes) -> Network:
        found = self._whole._make(asked)
        found._states = self._states
        return found
