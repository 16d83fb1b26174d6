"""Operators of the domain ai.onnx.preview: attention whose scores go through a body of the caller's."""

from math import sqrt

from asmdnn.errors import InvalidArguments
from asmdnn.network.decompositions.foreign import ForeignOperator
from asmdnn.network.decompositions.words import Decomposer
from asmdnn.network.element_types import element_type
from asmdnn.network.graph import Node
from asmdnn.network.operators.attributes import BODY, FLOAT, INT, Attributes, optional


def flex_attention(w: Decomposer, node: Node, q: str, k: str, v: str) -> tuple[str, ...]:
    """softmax(score_mod(scale q k^T)) v, prob_mod between both: the heads of a group are rows of one."""
    if any(len(w.shape(x)) != 4 for x in (q, k, v)) or w.shape(q)[1] % w.shape(k)[1]:
        raise InvalidArguments(f"{node} has no queries, keys and values of four dims, whose heads are in groups")
    (n, heads, rows, d), (_, groups, keys, _) = w.shape(q), w.shape(k)
    merged = (n, groups, heads // groups * rows)
    raw = w("MatMul", w.reshaped(w.widened(q), *merged, d), w.turned(w.widened(k), 0, 1, 3, 2))
    scores = w.reshaped(w.mul(raw, node.get("scale", 1 / sqrt(d))), n, heads, rows, keys)
    if "softmax_precision" in node.attributes:
        to = node.get("softmax_precision")
        element_type(to, f"{node}")
        scores = w("Cast", scores, to=to)
    shares = w("Softmax", inside(w, node, "score_mod", scores), axis=-1)
    shares = w.reshaped(inside(w, node, "prob_mod", shares), *merged, keys)
    made = w("MatMul", shares, w.as_type_of(v, shares))
    return (w.as_type_of(w.reshaped(made, n, heads, rows, w.shape(v)[3]), v),)


def inside(w: Decomposer, node: Node, name: str, x: str) -> str:
    """What a body that may be left out makes."""
    body = node.get(name)
    return x if body is None else w.inlined(body, x)


FLEXIBLE: Attributes = {
    "prob_mod": optional(BODY), "score_mod": optional(BODY), "scale": FLOAT, "softmax_precision": INT,
}  # fmt: skip
DECOMPOSITIONS = {"FlexAttention": ForeignOperator(flex_attention, "xxx", 1, FLEXIBLE, of_integers=True)}
