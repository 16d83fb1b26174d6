"""What a Scan says beside its body, for those who unroll it and those who call a round at a time."""

from collections.abc import Collection
from typing import NamedTuple

from asmdnn.errors import InvalidArguments, Unimplemented
from asmdnn.network.graph import Node

SCANS_BY_AXES = 9  # the operator set since which a Scan has no batches


class ScanFrame(NamedTuple):
    """What a Scan says beside its body.  carried: states; parts: what is scanned; back: whether from the end."""

    carried: tuple[str, ...]
    parts: tuple[str, ...]
    input_axes: tuple[int, ...]
    input_back: tuple[int, ...]
    output_axes: tuple[int, ...]
    output_back: tuple[int, ...]


def frame_of_scan(node: Node) -> ScanFrame:
    """Raises InvalidArguments, Unimplemented."""
    body, count = node.get("body"), node.get("num_scan_inputs")
    if node.opset < SCANS_BY_AXES:
        raise Unimplemented(f"{node} is of operator set {node.opset}, whose Scan has batches: convert it to 9 or more")
    carried, parts = node.inputs[: len(node.inputs) - count], node.inputs[len(node.inputs) - count :]
    made = len(node.outputs) - len(carried)
    if len(body.inputs) != len(node.inputs) or len(body.outputs) != len(node.outputs) or min(count - 1, made) < 0:
        raise InvalidArguments(f"{node} has no body with {len(carried)} states, {count} parts and {made} results")
    return ScanFrame(
        carried,
        parts,
        listed(node, "scan_input_axes", count),
        listed(node, "scan_input_directions", count),
        listed(node, "scan_output_axes", made),
        listed(node, "scan_output_directions", made),
    )


def elements_differ(node: Node, rounds: Collection[int]) -> str:
    return f"{node} scans axes of {sorted(rounds)} elements, they must have as many, and some"


def listed(node: Node, name: str, count: int) -> tuple[int, ...]:
    """A list of numbers, which are 0 where it is left out.  Raises InvalidArguments."""
    found = tuple(node.get(name, (0,) * count))
    if len(found) != count:
        raise InvalidArguments(f"{node} has {len(found)} {name}, it must have {count}")
    return found
