"""Operators of onnxruntime's optimised files: their operands and attributes, and what they become.

Their meaning is that of docs/ContribOperators.md in https://github.com/microsoft/onnxruntime; the checks of ONNX's own
operators, by its schemas, are not theirs.
"""

from collections.abc import Callable
from itertools import zip_longest

from asmdnn.errors import InvalidArguments, Unimplemented, did_you_mean, shown
from asmdnn.network.decompositions.words import Decomposer, Sentences, is_f32
from asmdnn.network.graph import NOTHING, Node
from asmdnn.network.operators.attributes import Attributes, check_kind
from asmdnn.network.operators.signatures import Places, check_count
from asmdnn.records import dataclass, field

DOMAIN = "com.microsoft"
Decompose = Callable[..., tuple[str, ...]]  # (decomposer, node, *inputs), NOTHING for those that are left out


@dataclass(frozen=True)
class ForeignOperator:
    """decompose: as those of table.py; inputs: x has a name, ? may be left out; outputs: at most; attributes: by name.
    of_integers: its operands are others than f32."""

    decompose: Decompose
    inputs: str
    outputs: int = 1
    attributes: Attributes = field(default_factory=dict)
    of_integers: bool = False


def check(node: Node, known: ForeignOperator) -> None:
    """Raise InvalidArguments for a node that is none of its operator, Unimplemented for an attribute that is read by
    other versions."""
    places = Places(known.inputs)
    check_count(node, "input, and {} takes", places, node.inputs)
    check_count(node, "output, and {} makes", Places("?" * known.outputs), node.outputs)
    missing = places.missing(node.inputs)
    if missing is not None:
        raise InvalidArguments(f"{node} has no name for its input {missing}, which {node.op} cannot do without")
    for name, value in node.attributes.items():
        if name not in known.attributes:
            way_out = did_you_mean(name, known.attributes) if known.attributes else "it has none"
            raise Unimplemented(f"{node} has the attribute {shown(name)}, which is not known of {node.op}: {way_out}")
        check_kind(node, name, known.attributes[name], value)
    for name, attribute in known.attributes.items():
        if attribute.needed and name not in node.attributes:
            raise InvalidArguments(f"{node} lacks the attribute {name}, which must be {attribute.kind}")


def results_of(
    folding: Sentences, node: Node, known: ForeignOperator, words: Decomposer | None = None
) -> dict[str, str]:
    """The values after a node's results, whose nodes are taken in.  words: that name what is made, if the node's own
    results are no names for it.  Raises Unimplemented for other types than f32."""
    if not known.of_integers and not is_f32(folding, node):
        types = ", ".join(folding.values[name].dtype.name for name in node.inputs if name != NOTHING)
        raise Unimplemented(f"{node} is of {types}: {node.op} is known of float32 alone")
    count = len(Places(known.inputs).letters)
    results = known.decompose(
        words or Decomposer(folding, node), node, *node.inputs, *[NOTHING] * (count - len(node.inputs))
    )
    for name, result in zip_longest(node.outputs, results, fillvalue=NOTHING):
        if name != NOTHING and result == NOTHING:
            raise Unimplemented(f"{node} has the output {shown(name)}, which is not known here: nothing may read it")
    return {name: result for name, result in zip(node.outputs, results, strict=False) if name != NOTHING}
