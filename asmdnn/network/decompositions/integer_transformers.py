"""onnxruntime's operators of quantised transformers, and two of its smaller ones: floats of integers, and the operator.

Source: docs/ContribOperators.md of onnxruntime.
"""

from asmdnn.network.decompositions.foreign import ForeignOperator
from asmdnn.network.decompositions.integers import floats, integers, weights
from asmdnn.network.decompositions.transformers import embedded, packed_attention
from asmdnn.network.decompositions.words import Decomposer
from asmdnn.network.graph import NOTHING, Node
from asmdnn.network.operators.attributes import EPSILON, FLOAT, INT, INTS, needed


def attention(w: Decomposer, node: Node, *inputs: str) -> tuple[str, ...]:
    """Weights have one scale, or one for each column."""
    x, matrix, bias, scale, weights_scale, mask, zero, weights_zero, past = inputs
    read = floats(w, x, scale, zero), weights(w, matrix, weights_scale, weights_zero, 1)
    operands = (*read, bias, mask, past, NOTHING, NOTHING)
    return packed_attention(w, node, *operands)


def embedding(w: Decomposer, node: Node, *inputs: str) -> tuple[str, ...]:
    """Tables, scale and shift of the norm are integers."""
    ids, segments, *tables, mask = inputs[:8]
    scales, zeros = inputs[8:13], inputs[13:18]
    read = [
        NOTHING if table == NOTHING else floats(w, table, scale, zero)
        for table, scale, zero in zip(tables, scales, zeros, strict=True)
    ]
    operands = (ids, segments, *read, mask, NOTHING)
    return embedded(w, node, *operands)[:2]


def mean(w: Decomposer, node: Node, *inputs: str) -> tuple[str, ...]:
    x, scale, zero, scale_of_means, zero_of_means = inputs
    axes = [w.ints(*node.get("axes"))] if "axes" in node.attributes else []
    made = w("ReduceMean", floats(w, x, scale, zero), *axes, keepdims=node.get("keepdims", 1))
    return integers(w, made, scale_of_means, zero_of_means)


def where(w: Decomposer, node: Node, *inputs: str) -> tuple[str, ...]:
    condition, x, sx, zx, y, sy, zy, sz, zz = inputs
    return integers(w, w("Where", condition, floats(w, x, sx, zx), floats(w, y, sy, zy)), sz, zz)


HEADS = {
    "num_heads": needed(INT), "unidirectional": INT, "do_rotary": INT, "mask_filter_value": FLOAT, "scale": FLOAT,
    "past_present_share_buffer": INT,
}  # fmt: skip
DECOMPOSITIONS = {
    name: ForeignOperator(decompose, inputs, outputs, attributes, of_integers=True)
    for name, decompose, inputs, outputs, attributes in (
        ("QAttention", attention, "xxxxx????", 2, HEADS),
        ("QEmbedLayerNormalization", embedding, "x?xx?xx?xx?xxxx?xx", 2, EPSILON),
        ("QLinearReduceMean", mean, "xx?x?", 1, {"axes": INTS, "keepdims": INT}),
        ("QLinearWhere", where, "xxx?xx?x?", 1, {}),
    )
}
