"""Rules of attention as the primitive has it; other forms go through what they are decomposed into."""

import numpy as np

from asmdnn.network.gradients.table import Gradients, Rule, given_of
from asmdnn.network.gradients.words import GradientWords, KnownGraph
from asmdnn.network.graph import NOTHING, Node
from asmdnn.network.operators.own import OWN

DEFAULTS = {
    "softcap": 0.0, "left_window_size": -1, "right_window_size": -1, "qk_matmul_output_mode": 0, "q_num_heads": 0,
    "kv_num_heads": 0, "softmax_precision": 1,
}  # fmt: skip


def is_plain(known: KnownGraph, node: Node) -> bool:
    """Whether it is of queries, keys and values of four dims alone; a row sees all keys, or those up to its own."""
    if len([name for name in node.inputs if name]) != 3 or any(name != NOTHING for name in node.outputs[1:]):
        return False
    values = [known.values[name] for name in node.inputs[:3]]
    if any(len(x.shape) != 4 or 0 in x.shape or x.dtype != np.float32 for x in values):
        return False
    if node.get("is_causal", 0) and values[0].shape[2] != values[1].shape[2]:
        return False
    return all(node.get(name, default) == default for name, default in DEFAULTS.items())


def attention(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    """By query, key and value."""
    q, k, v = node.inputs[:3]
    numbers = {"scale": node.get("scale", w.shape(q)[3] ** -0.5), "causal": int(node.get("is_causal", 0))}
    return w.own("AttentionGradient", q, k, v, given_of(given[:1]), results=3, **numbers)


def masked_attention(w: GradientWords, node: Node, given: Gradients) -> Gradients:
    """By query, key and value of the library's own operator; its mask depends on nothing that is trained."""
    q, k, v, *mask = node.inputs
    found = w.own("AttentionGradient", q, k, v, given_of(given), *mask, results=3, scale=node.get("scale"), causal=0)
    return *found, *[None] * len(mask)


RULES: dict[str, Rule] = {"Attention": attention, f"{OWN}.Attention": masked_attention}
