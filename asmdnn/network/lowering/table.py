"""Which operators have kernels, and the pass over a graph that lowers them all."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module

import numpy as np

from asmdnn.errors import AsmdnnError, PlanError
from asmdnn.network.decompositions.scatters import DECOMPOSITIONS as SCATTERS
from asmdnn.network.format_choice import BY_ITSELF
from asmdnn.network.fusion.exact import ARITHMETIC
from asmdnn.network.fusion.maps import Group
from asmdnn.network.fusion.numbering import WIDE
from asmdnn.network.graph import Node
from asmdnn.network.lowering.elementwise import lower_maps
from asmdnn.network.lowering.lowering import Lowering
from asmdnn.network.lowering.pairs import lower_pair
from asmdnn.network.steps import Steps, no_numbers
from asmdnn.planning.refusal import Refused
from asmdnn.records import replace

MODULES = (
    "convolutions", "products", "views", "concat", "gathers", "scatters", "pooling", "rows", "recurrent", "padding",
    "resizing", "attention", "channels", "along", "orders", "casts", "dequantizing", "dynamic", "few_bits", "trees",
    "states", "gradients", "training", "trained_recurrent", "random_numbers",
)  # fmt: skip


BYTES = (np.uint8, np.int8, np.bool_)  # in which kernels store values


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
        raise Refused(why_nothing(steps, group.main))
    made = next(steps.value(name).dtype for name in group.main.outputs if name)
    if lowering.of_floats and made in BYTES:
        raise Refused(f"it computes {made}, where kernels would saturate and integers wrap around")
    before = steps.branch() if group.maps else steps
    try:
        lower_pair(steps, group) if group.second else lowering.lower(steps, group)
    except PlanError:  # a defect, which another way would hide
        raise
    except (AsmdnnError, Refused) as error:  # Unimplemented, with the reasons of all implementations
        if group.second is not None or not group.maps or not is_lowered_apart(before, group, lowering):
            raise Refused(str(error)) from None
        steps.become(before)


def why_nothing(steps: Steps, node: Node) -> str:
    """Why no primitive computes an operator."""
    reduction, types = node.get("reduction", "none"), {steps.value(name).dtype.name for name in node.outputs if name}
    if node.op in SCATTERS and reduction != "none":
        return f"reduction {reduction!r} of {', '.join(types)} has no kernel"
    for name in (*node.inputs, *node.outputs):
        dtype = steps.value(name).dtype if name and name in steps.graph.values else np.dtype(np.float32)
        if dtype == np.float64:
            return no_numbers(name, dtype)
        if dtype in WIDE and node.op in ARITHMETIC:
            return no_numbers(name, dtype)
    return "no primitive computes it"


def is_lowered_apart(steps: Steps, group: Group, lowering: Lowering) -> bool:
    """Whether its kernel alone has been added, and after it the maps, which it does not take: a tensor that they read
    is broadcast in a way that it does not know, say."""
    read, choice = {name for node in group.maps for name in node.inputs}, steps.choice
    floats = tuple(node for node in group.floats if node.outputs[0] in read)
    try:
        steps.choice = BY_ITSELF
        lowering.lower(steps, replace(group, maps=(), result=group.x, further=()))
        steps.choice = choice
        lower_maps(steps, Group(None, group.maps, group.x, group.result, floats=floats, further=group.further))
    except PlanError:
        raise
    except (AsmdnnError, Refused):
        return False
    return True
