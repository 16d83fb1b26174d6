"""Which operators have kernels, and the pass over a graph that lowers them all."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module

from asmdnn.errors import AsmdnnError
from asmdnn.network.fusion.maps import Group
from asmdnn.network.lowering.elementwise import lower_maps
from asmdnn.network.lowering.lowering import Lowering
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


@cache
def lowerings() -> Mapping[str, Lowering]:
    """By operator; maps have one in common.  Those that are functions alone take images in any format."""
    modules = (import_module(f"asmdnn.network.lowering.{name}") for name in MODULES)
    every = (pair for module in modules for pair in module.LOWERINGS.items())
    return {op: found if isinstance(found, Lowering) else Lowering(found) for op, found in every}


def lowering_of(group: Group) -> Lowering | None:
    """Of the operator that a group is there for; None of maps, and of what no primitive computes."""
    return lowerings().get(group.main.key) if group.main is not None else None


def lower(steps: Steps, group: Group) -> None:
    """Add what computes a group.  Raises Refused with the reason why nothing does."""
    for node in group.floats:
        steps.dequantizers[node.outputs[0]] = node
    if group.main is None:
        lower_maps(steps, group)
        return
    lowering = lowering_of(group)
    if lowering is None:
        raise Refused("no primitive computes it")
    try:
        lower_pair(steps, group) if group.second else lowering.lower(steps, group)
    except AsmdnnError as error:  # Unimplemented, with the reasons of all implementations
        raise Refused(str(error)) from None
