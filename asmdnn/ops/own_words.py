"""Errors of primitives in the words of array functions, whose callers have given x and dy, not src and diff_dst.

Every function of the package raises its errors through here, so that a planner says what it means in its own words.
"""

import re
from collections.abc import Container, Mapping

from asmdnn.errors import AsmdnnError

USUAL = {
    "src": "x", "src_layer": "src", "dst_layer": "the result", "dst_iter": "the last state",
    "dst_iter_c": "the last state of the cell", "diff_src": "dx", "diff_dst": "dy", "diff_dst_layer": "dy",
    "diff_dst_iter": "dh", "diff_dst_iter_c": "dc",
}  # fmt: skip
OPERANDS = {"src0": "a", "src1": "b", "src2": "condition"}
OF_FUNCTIONS: Mapping[str, Mapping[str, str]] = {
    "attention": {"x": "query"},
    "binary": OPERANDS,
    "binary_gradient": OPERANDS,
    "concat": {"src": "arrays"},
    "eltwise_gradient": {"data": "x"},
    "embedding": {"src": "table", "x": "table"},
    "embedding_gradient": {"src": "the result", "x": "the result", "updates": "dy"},
    "gather_gradient": {"src": "the result", "x": "the result", "updates": "dy"},
    "log_softmax_gradient": {"dst": "y"},
    "lrn": {"local_size": "size"},
    "lrn_gradient": {"local_size": "size"},
    "matmul": {"src": "a", "weights": "b"},
    "matmul_gradient": {"src": "a", "weights": "b"},
    "pack_quantized_weights": {"src": "b"},
    "pack_weights": {"src": "b"},
    "select": OPERANDS,
    "select_gradient": OPERANDS,
    "softmax_gradient": {"dst": "y"},
    "split_gradient": {"src": "dys"},
    "weighted_sum": {"src": "arrays"},
}
WORD = re.compile(r"(?<!['\"\w.])(?<!the )([a-z]\w*?)(\d+)?(?![\"=\w]|'(?!s\b)| type)")  # no quotes, no prose
OF_FORWARD = re.compile(r"^\w+, seen from its forward pass: ")
OF_FIELD = re.compile(r"^[A-Z]\w+\.(?=\w+ )")  # LayerNormForward.epsilon
DESCRIPTION = re.compile(r"\b[A-Z]\w+(?:Forward|Backward)\b")


def reworded(error: AsmdnnError, function: str, parameters: Container[str], has_out: bool) -> None:
    """Let the error of a function say what its caller calls each tensor."""
    own = {"dst": "dy" if function.endswith("_gradient") else "out" if has_out else "the result"}
    own |= {**USUAL, **OF_FUNCTIONS.get(function, {})}

    def said(found: re.Match[str]) -> str:
        whole, (word, number) = found[0], found.groups()
        if whole in parameters:
            return whole
        if whole in own or word not in own:
            return own.get(whole, whole.replace("diff_", "d", 1))
        return f"{own[word]}[{number}]"

    message, *more = error.args
    plain = OF_FIELD.sub("", OF_FORWARD.sub("", message))
    error.args = (WORD.sub(said, DESCRIPTION.sub(function, plain)), *more)
