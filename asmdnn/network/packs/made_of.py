"""What a file of an open network is made of, as a sum: further shapes have to be of the same."""

import numpy as np

from asmdnn.errors import InvalidArguments
from asmdnn.network.graph import Model
from asmdnn.network.network import Network
from asmdnn.network.packs.kept_graph import Unnamed, sum_of_model, value_text


def made_of(net: Network) -> str:
    """A sum of the model, of what were constants, and of the precision: what decides the results of every shape; "" of
    what has none."""
    try:
        _, (model, _, constants, *_, precision) = net.origin
        others = [(name, value_text(np.asarray(value))) for name, value in sorted((constants or {}).items())]
    except (InvalidArguments, ValueError, Unnamed):
        return ""
    return sum_of_model(model, repr((others, precision))) or "" if isinstance(model, Model) else ""
