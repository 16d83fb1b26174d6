"""The network of a model: planned at once, or open until shapes come; parts of it that data decide, kept on disk."""

from functools import partial
from typing import Any

from asmdnn.network.declaring import check_asked, check_names, mapping, shape_of
from asmdnn.network.dims import Shapes, open_dims
from asmdnn.network.graph import Model
from asmdnn.network.known import check_known
from asmdnn.network.narrow.storage import IN_F32, Precision
from asmdnn.network.network import Network
from asmdnn.network.open import OpenNetwork
from asmdnn.network.packs.kept import find, keep
from asmdnn.network.packs.kept_graph import key_of_model
from asmdnn.network.staged import Stages
from asmdnn.network.states import StateArrays, checked_state
from asmdnn.primitives.core.engine import Engine


def network_of(
    model: Model, shapes: Any, constants: Any, engine: Engine, fallback: str | None, precision: Precision = IN_F32
) -> Network:
    """The network of a model, planned if no dim is open.  The arguments are those of `load_onnx`."""
    states = states_of(model, shapes)
    hidden = [name for state in model.states for name in state.hidden]
    dims = open_dims(model.body.inputs, shapes, [*mapping("constants", constants), *hidden])
    origin = (network_of, (model, shapes, constants, engine, fallback, precision))
    stages, fixed = stages_of(model, constants, engine, fallback, precision), dims.fixed
    if not dims.open_inputs:
        return Network(lambda: engine, stages.plan(shapes), origin=origin, states=states)

    check_asked(model, engine, fallback, precision)  # which the first shape would say, in its call
    check_names(model.body.inputs, {}, mapping("constants", constants))
    check_known(model.body)

    def at(asked: Shapes) -> Network:
        one = (network_of, (model, fixed | asked, constants, engine, fallback, precision))
        return Network(lambda: engine, stages.plan(fixed | asked), origin=one, states=states)

    net = OpenNetwork(model, dims, engine, title=model.body.name, make=at, origin=origin, states=states)
    net._stages = lambda _: stages
    return net


def stages_of(
    model: Model, constants: Any, engine: Engine, fallback: str | None, precision: Precision = IN_F32
) -> Stages:
    """What plans a model.  The arguments are those of `load_onnx`."""
    return Stages(model, constants, engine, fallback, precision, make=partial(network_of_part, engine, fallback))


def network_of_part(engine: Engine, fallback: str | None, model: Model, precision: Precision) -> Network:
    """The network of what follows data, or of a body: one with the same weights that any process has run is taken from
    the cache on disk, and this one is kept there."""
    make = partial(network_of, model, None, None, engine, fallback, precision)
    key = key_of_model(model, engine, precision)
    if key is None:
        return make()
    if open_dims(model.body.inputs, None, ()).open_inputs:
        net = make()
        assert isinstance(net, OpenNetwork)
        net._keep_shapes_under(key, fallback)
        return net

    def stages(found: Precision) -> Stages:
        return stages_of(model, None, engine, fallback, found)

    if found := find(key, engine.threads, fallback, stages=stages):
        return Network(lambda: engine, found, make)
    net = make()
    keep(key, net.planned())
    return net


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
