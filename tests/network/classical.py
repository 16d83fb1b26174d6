"""Models of the domain ai.onnx.ml, made by hand: trees of any modes, their nodes and files."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

DOMAIN = "ai.onnx.ml"
MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
Gives = Callable[[int], list[tuple[int, float]]]  # what a leaf of a tree gives: columns and weights


class TreeNode(NamedTuple):
    """One of a tree; a leaf leads nowhere."""

    mode: str
    feature: int = 0
    split: float = 0.0
    on_true: int = 0
    on_false: int = 0


LEAF = TreeNode("LEAF")
STUMP = (TreeNode("BRANCH_LEQ", 0, 0.0, 1, 2), LEAF, LEAF)


def random_tree(
    random: np.random.Generator, depth: int, features: int, modes: Sequence[str], splits: Sequence[float]
) -> list[TreeNode]:
    nodes: list[TreeNode] = []

    def build(levels: int) -> int:
        at = len(nodes)
        nodes.append(LEAF)
        if levels and random.random() > 0.15:
            on_true, on_false = build(levels - 1), build(levels - 1)
            split = float(splits[random.integers(len(splits))])
            nodes[at] = TreeNode(str(random.choice(modes)), int(random.integers(features)), split, on_true, on_false)
        return at

    build(depth)
    return nodes


def attributes_of(trees: Sequence[Sequence[TreeNode]], prefix: str, gives: Gives) -> dict[str, list[Any]]:
    """Of TreeEnsembleRegressor and TreeEnsembleClassifier; prefix: target or class."""
    names = ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids")
    nodes: dict[str, list[Any]] = {f"nodes_{name}": [] for name in names}
    leaves: dict[str, list[Any]] = {f"{prefix}_{name}": [] for name in ("treeids", "nodeids", "ids", "weights")}
    for tree, own in enumerate(trees):
        for i, node in enumerate(own):
            given = (tree, i, node.feature, node.split, node.mode, node.on_true, node.on_false)
            for values, value in zip(nodes.values(), given, strict=True):
                values.append(value)
            for column, weight in gives(tree) if node.mode == "LEAF" else ():
                for values, value in zip(leaves.values(), (tree, i, column, float(np.float32(weight))), strict=True):
                    values.append(value)
    return {**nodes, **leaves}


def model_of(nodes: Sequence[Any], x: Any, outputs: Sequence[str], constants: Sequence[Any] = (), ml: int = 3) -> bytes:
    """A file whose input is x (rows, features), of open rows; outputs of any type."""
    from onnx import helper

    code = helper.np_dtype_to_tensor_dtype(x.dtype)
    given = helper.make_tensor_value_info("x", code, [None, *x.shape[1:]])
    made = [helper.make_tensor_value_info(name, 7 if name == "label" else 1, None) for name in outputs]
    graph = helper.make_graph(list(nodes), "classical", [given], made, list(constants))
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, ml)]
    return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString())


def node_of(op: str, outputs: Sequence[str], attributes: dict[str, Any], inputs: Sequence[str] = ("x",)) -> Any:
    from onnx import helper

    name = "n" if inputs == ("x",) else op
    return helper.make_node(op, list(inputs), list(outputs), name=name, domain=DOMAIN, **attributes)


def ensemble(op: str, attributes: dict[str, Any], x: Any, ml: int = 3) -> bytes:
    """A file of one node on trees."""
    outputs = ("label", "scores") if op.endswith("Classifier") else ("y",)
    return model_of([node_of(op, outputs, attributes)], x, outputs, ml=ml)
