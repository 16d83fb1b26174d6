"""What is checked of a node before it is computed."""

from asmdnn.errors import Unimplemented, shown
from asmdnn.network.graph import NOTHING, Node
from asmdnn.network.operators.attributes import check_attributes
from asmdnn.network.operators.signatures import check_signature
from asmdnn.records import replace


def check_node(node: Node) -> None:
    """Raise InvalidArguments for a node that is none of its operator, whatever its operands are."""
    check_attributes(node)
    check_signature(node)


def check_outputs(node: Node, made: int) -> None:
    """Raise Unimplemented for an output that the definition has not."""
    for name in node.outputs[made:]:
        if name != NOTHING:
            raise Unimplemented(
                f"{node} has the output {shown(name)}, and {made} are defined here: nothing may read it"
            )


def without_empty_end(node: Node) -> Node:
    """The node without the inputs at its end that are left out: who asks how many there are finds names."""
    inputs = node.inputs
    while inputs and inputs[-1] == NOTHING:
        inputs = inputs[:-1]
    return node if inputs == node.inputs else replace(node, inputs=inputs)
