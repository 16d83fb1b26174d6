"""The network of a model: planned at once, or open until shapes come."""

from typing import Any

from asmdnn.network.declaring import shape_of
from asmdnn.network.dims import Shapes, open_dims
from asmdnn.network.graph import Model
from asmdnn.network.network import Network
from asmdnn.network.open import OpenNetwork
from asmdnn.network.planned import mapping
from asmdnn.network.staged import Stages
from asmdnn.network.states import StateArrays, checked_state
from asmdnn.network.storage import IN_F32, Precision
from asmdnn.primitives.core.engine import Engine


def network_of(
    model: Model, shapes: Any, constants: Any, engine: Engine, fallback: str | None, precision: Precision = IN_F32
) -> Network:
    """The network of a model, planned if no dim is open.  The arguments are those of `load_onnx`."""
    states = states_of(model, shapes)
    hidden = [name for state in model.states for name in state.hidden]
    dims = open_dims(model.body.inputs, shapes, [*mapping("constants", constants), *hidden])
    origin = (network_of, (model, shapes, constants, engine, fallback, precision))

    def rest(part: Model, allowed: Precision) -> Network:
        return network_of(part, None, None, engine, fallback, allowed)

    stages, fixed = Stages(model, constants, engine, fallback, precision, make=rest), dims.fixed
    if not dims.open_inputs:
        return Network(lambda: engine, stages.plan(shapes), origin=origin, states=states)

    def at(asked: Shapes) -> Network:
        one = (network_of, (model, fixed | asked, constants, engine, fallback, precision))
        return Network(lambda: engine, stages.plan(fixed | asked), origin=one, states=states)

    return OpenNetwork(model, dims, engine, title=model.body.name, make=at, origin=origin, states=states)


def states_of(model: Model, shapes: Any) -> StateArrays | None:
    """The arrays of a model's states, one for all shapes.  Raises InvalidArguments for one whose dims are open."""
    if not model.states:
        return None
    dims, given = dict[str, tuple[int, ...]](), mapping("shapes", shapes)
    for state in model.states:
        known = shape_of(state.name, model.body.inputs[state.name], given.get(state.name))
        checked_state(state.name, known, model.body.inputs[state.name].dtype, state.initial)
        dims[state.name] = known
    return StateArrays(model.states, dims)
