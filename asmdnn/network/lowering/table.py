"""Which operators have kernels, and the pass over a graph that lowers them all."""

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module

from asmdnn.errors import AsmdnnError
from asmdnn.network.fusion.maps import Group
from asmdnn.network.lowering.elementwise import lower_maps
from asmdnn.network.lowering.pairs import lower_pair
from asmdnn.network.steps import Steps
from asmdnn.planning.refusal import Refused

MODULES = (
    "convolutions",
    "products",
    "views",
    "pooling",
    "rows",
    "recurrent",
    "padding",
    "resizing",
    "attention",
    "channels",
    "along",
    "orders",
    "casts",
    "dequantising",
    "dynamic",
    "few_bits",
    "states",
    "gradients",
    "training",
    "trained_recurrent",
)
Lowering = Callable[[Steps, Group], None]


@cache
def lowerings() -> Mapping[str, Lowering]:
    """By operator; maps have one in common."""
    found: dict[str, Lowering] = {}
    for name in MODULES:
        found |= import_module(f"asmdnn.network.lowering.{name}").LOWERINGS
    return found


def lower(steps: Steps, group: Group) -> None:
    """Add what computes a group.  Raises Refused with the reason why nothing does."""
    for node in group.floats:
        steps.integers_behind[node.outputs[0]] = node
    if group.main is None:
        lower_maps(steps, group)
        return
    lowering = lowerings().get(group.main.key)
    if lowering is None:
        raise Refused("no primitive computes it")
    try:
        lower_pair(steps, group) if group.behind else lowering(steps, group)
    except AsmdnnError as error:  # Unimplemented, with the reasons of all implementations
        raise Refused(str(error)) from None
