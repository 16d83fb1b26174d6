"""Groups as passes see them that choose in which types values are kept: names, and what only carries values on."""

from collections.abc import Sequence

from asmdnn.network.fusion.maps import Group
from asmdnn.network.graph import NOTHING, Node
from asmdnn.network.narrow.storage import Precision
from asmdnn.network.operators.own import OWN
from asmdnn.network.quantized.weights import MOVES

__all__ = ["MOVES", "NORMS", "PRODUCTS", "is_carrier", "is_kept", "key_of", "results_of"]

PRODUCTS = {"Conv", "ConvTranspose", "MatMul", "Gemm"}
CARRIERS = MOVES | {"Concat", "AveragePool", "GlobalAveragePool", f"{OWN}.ChannelShuffle"}
RESIZES = {"Resize", "Upsample"}  # to the nearest elements; what is between them is computed in f32
# What stores its operand's type or a narrower one, and computes in f32.
NORMS = {"LayerNormalization", "RMSNormalization", "Softmax"}


def is_kept(nodes: Sequence[Node], precision: Precision) -> bool:
    """Whether a caller keeps one of them, or its result, in f32."""
    return any({node.name, *node.outputs} & {*precision.keep_f32} for node in nodes)


def is_carrier(group: Group) -> bool:
    """Whether it moves elements, takes the largest, or makes means or functions of them."""
    node = group.main
    if node is None or key_of(group) in CARRIERS:
        return True
    return key_of(group) in RESIZES and node.get("mode", "nearest") == "nearest" and not group.maps


def results_of(group: Group) -> tuple[str, ...]:
    """What others may read: the result, and what the main node makes beside it."""
    further = group.main.outputs[1:] if group.main is not None and not group.maps else group.further
    return (group.result, *(name for name in further if name != NOTHING))


def key_of(group: Group) -> str:
    """The main operator's name, after its domain; "" for maps."""
    node = group.main
    return "" if node is None else node.key
