"""Which integers of a file are the weights of products of integers, so that nobody makes floats of them."""

from collections.abc import Collection

from asmdnn.network.graph import NOTHING, Body

DEQUANTIZE, QUANTIZE = "DequantizeLinear", "QuantizeLinear"
PRODUCTS = {"Conv", "MatMul", "Gemm"}


def weights_of_products(body: Body) -> Collection[str]:
    """Results of DequantizeLinear that only products read, as weights of what was integers, too."""
    found = {name for node in body.nodes if node.op == DEQUANTIZE for name in node.outputs[:1]}
    floats = set(body.outputs)
    for node in body.nodes:
        is_product = node.op in PRODUCTS and not node.domain and found.issuperset(node.inputs[:1])
        floats.update(name for i, name in enumerate(node.inputs) if name != NOTHING and not (is_product and i == 1))
    return found - floats
