"""Products with constant weights in blocks of one scale each, as operator set 21 writes them, of few bits.

    MatMul(a, [Transpose](DequantizeLinear(integers, scales, zeros, block_size)))  becomes  MatMulNBits

of the domain of fusion, whose weights stay integers.  What does not fit kernels, or itself, is left as it is.
"""

from collections.abc import Mapping

import numpy as np

from asmdnn.network.graph import Array, Body, Node, captured
from asmdnn.network.operators.own import OWN
from asmdnn.network.quantized.weights import DEQUANTIZE
from asmdnn.primitives.quantized.description import LEAST_GROUP, MOST_GROUP
from asmdnn.primitives.quantized.octets import in_octets
from asmdnn.records import replace

BITS = {"int4": 4, "uint4": 4, "int8": 8, "uint8": 8}
MATRIX = 2  # axes


def with_blocked_products(body: Body) -> Body:
    """The body with such products in the place of others; itself if there are none."""
    makers = {node.outputs[0]: node for node in body.nodes if node.outputs}
    values = {name: node.get("value") for name, node in makers.items() if node.op == "Constant" and not node.domain}
    known = {**body.constants, **{name: x for name, x in values.items() if isinstance(x, np.ndarray)}}
    nodes, constants = list(body.nodes), dict(body.constants)
    for i, node in enumerate(nodes):
        if node.op == "MatMul" and not node.domain and len(node.inputs) == MATRIX:
            found = BlockedWeights.found(node.inputs[1], makers, known)
            if found is not None:
                operands = {f"{node.outputs[0]}/{name}": x for name, x in found.operands().items()}
                if not operands.keys() & {*makers, *known, *body.inputs}:
                    constants |= operands
                    inputs, what = (node.inputs[0], *operands), found.attributes()
                    nodes[i] = replace(node, op="MatMulNBits", inputs=inputs, domain=OWN, attributes=what)
    if nodes == list(body.nodes):
        return body
    while True:
        read = {name for node in nodes for name in (*node.inputs, *captured(node))} | {*body.outputs}
        kept = [node for node in nodes if node.op not in (DEQUANTIZE, "Transpose") or read & {*node.outputs}]
        if len(kept) == len(nodes):
            break
        nodes = kept
    constants = {name: x for name, x in constants.items() if name in read}
    return replace(body, nodes=tuple(nodes), constants=constants)


class BlockedWeights:
    """integers (k, n) from 0 on, scales and zero points f32 (k / group, n)."""

    def __init__(self, integers: Array, scales: Array, zeros: Array | None) -> None:
        self.bits, self.scales = BITS[integers.dtype.name], np.ascontiguousarray(scales)
        self.group = len(integers) // len(scales)
        shift = 1 << self.bits - 1 if integers.dtype.name.startswith("int") else 0
        self.numbers = integers.astype(np.int16) + np.int16(shift)
        points = np.zeros(scales.shape, np.float32) if zeros is None else zeros.astype(np.float32)
        self.points = points + np.float32(shift)

    @staticmethod
    def found(name: str, makers: Mapping[str, Node], known: Mapping[str, Array]) -> "BlockedWeights | None":
        """Those of a value; None for other values, and for what kernels or the operator refuse."""
        node, is_turned = makers.get(name), False
        if node is not None and node.op == "Transpose" and not node.domain:
            is_turned = tuple(node.get("perm", (1, 0))) == (1, 0)
            node = makers.get(node.inputs[0]) if is_turned else None
        if node is None or node.op != DEQUANTIZE or node.domain or not node.get("block_size", 0):
            return None
        data = [known.get(one) for one in node.inputs if one]
        if any(x is None or x.ndim != MATRIX for x in data):
            return None
        axis, block = node.get("axis", 1), node.get("block_size")
        if axis % MATRIX != int(is_turned) or not -MATRIX <= axis < MATRIX:
            return None
        integers, scales, *zeros = (x.T if is_turned else x for x in data if x is not None)
        k, n = integers.shape
        fits = integers.dtype.name in BITS and scales.dtype == np.float32 and block * len(scales) == k
        fits = fits and LEAST_GROUP <= block <= MOST_GROUP and block % LEAST_GROUP == 0 and scales.shape[1] == n > 0
        fits = fits and all(zero.shape == scales.shape and zero.dtype == integers.dtype for zero in zeros)
        if not fits or not np.isfinite(scales).all() or not scales.all():
            return None
        return BlockedWeights(integers, scales, *zeros or (None,))

    @property
    def common_point(self) -> float | None:
        """The zero point that all have."""
        first = float(self.points.flat[0])
        return first if (self.points == first).all() else None

    def operands(self) -> dict[str, Array]:
        found = {"weights": in_octets(self.numbers, self.bits), "scales": self.scales}
        return found if self.common_point is not None else {**found, "offsets": self.scales * self.points}

    def attributes(self) -> dict[str, float]:
        return {"bits": self.bits, "group": self.group, "zero_point": self.common_point or 0.0, "rounds": 0}
