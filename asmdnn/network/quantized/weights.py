"""Which integers of a file are the weights of products of integers, so that nobody makes floats of them."""

from collections.abc import Collection

from asmdnn.network.graph import NOTHING, Body, Node

DEQUANTIZE, QUANTIZE = "DequantizeLinear", "QuantizeLinear"
PRODUCTS = {"Conv", "MatMul", "Gemm"}
FUSED = {f"com.microsoft.{name}" for name in ("FusedConv", "NhwcConv", "NhwcFusedConv", "FusedGemm")}  # become these
# What makes integers of integers: it moves elements, or takes the largest ones.
MOVES = {
    "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Transpose", "Slice", "Split", "Gather", "Expand", "MaxPool",
    "DepthToSpace", "SpaceToDepth",
}  # fmt: skip


def is_move(node: Node) -> bool:
    """Also of those that move elements in one of their modes only."""
    return node.key in MOVES or (node.key == "Resize" and node.get("mode", "nearest") == "nearest")


def weights_of_products(body: Body) -> Collection[str]:
    """Results of DequantizeLinear that only products read, as weights of what was integers, too."""
    made = {name for node in body.nodes if node.op == DEQUANTIZE for name in node.outputs[:1]}
    moved, others = set(made), set(body.outputs)
    for node in body.nodes:
        is_of_integers = moved.issuperset(node.inputs[:1])
        if is_of_integers and is_move(node):
            moved.update(node.outputs)
        weights = 1 if is_of_integers and node.key in PRODUCTS | FUSED else None
        others.update(name for i, name in enumerate(node.inputs) if name != NOTHING and i != weights)
    return made - others
