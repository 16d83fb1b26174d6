"""Classical models: files of ai.onnx.ml against onnxruntime and onnx's own evaluator."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.errors import InvalidArguments, Unimplemented
from tests.network import classical
from tests.network.classical import LEAF, MODES, STUMP, TreeNode, attributes_of, ensemble, model_of, node_of
from tests.network.nets import engine

pytest.importorskip("onnx", reason="the networks extra: pip install onnx onnxruntime")
pytestmark = pytest.mark.isa("avx2")
SEEDS, ALL_SEEDS = range(24), range(24, 1000)
X = np.random.default_rng(3).standard_normal((37, 4)).astype(np.float32)


def ours(data: bytes, x: Any) -> list[Any]:
    """Natively, but for f64."""
    net = dnn.load_onnx(data, {"x": x.shape}, engine=engine(), fallback="numpy" if x.dtype == np.float64 else None)
    return list(net.run({"x": x}).values())


def theirs(data: bytes, x: Any) -> list[Any]:
    """Of onnxruntime."""
    ort = pytest.importorskip("onnxruntime", reason="the networks extra: pip install onnx onnxruntime")
    options = ort.SessionOptions()
    options.log_severity_level = 4
    return list(ort.InferenceSession(data, options).run(None, {"x": x}))


def compare(data: bytes, x: Any) -> None:
    for found, wanted in zip(ours(data, x), theirs(data, x), strict=True):
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-6)


def random_rows(random: np.random.Generator, features: int, splits: Any) -> Any:
    """Rows with elements that are equal to splits, and NaN."""
    rows = int(random.integers(1, 40))
    x = random.standard_normal((rows, features)).astype(np.float32)
    x = np.where(random.random(x.shape) < 0.4, splits[random.integers(len(splits), size=x.shape)], x)
    x[random.random(x.shape) < 0.1] = np.nan
    return x.astype(np.float32)


class RandomTrees:
    """Trees, rows, and attributes that all ensembles have."""

    def __init__(self, seed: int) -> None:
        self.random = random = np.random.default_rng(seed)
        features, depth = int(random.integers(1, 7)), int(random.integers(1, 7))
        modes = MODES if random.random() < 0.6 else MODES[:1]
        whole = random.random() < 0.5
        splits = (random.integers(-2, 3, 6) if whole else random.standard_normal(6)).astype(np.float32)
        trees = [classical.random_tree(random, depth, features, modes, splits) for _ in range(random.integers(1, 9))]
        self.trees = [tree if len(tree) > 1 else STUMP for tree in trees]  # of one leaf onnxruntime makes 0
        self.x = random_rows(random, features, splits)

    def attributes(self, prefix: str, gives: classical.Gives) -> dict[str, Any]:
        found = attributes_of(self.trees, prefix, gives)
        if self.random.random() < 0.5:
            ways = self.random.integers(2, size=len(found["nodes_modes"])).tolist()
            found["nodes_missing_value_tracks_true"] = ways
        return found


def random_regressor(seed: int) -> tuple[bytes, Any]:
    trees = RandomTrees(seed)
    random, columns = trees.random, int(trees.random.integers(1, 4))
    single = random.random() < 0.4 and columns <= len(trees.trees)  # onnxruntime leaves base out where no leaf gives

    def gives(tree: int) -> list[tuple[int, float]]:
        given = [tree % columns] if single else range(columns)
        return [(column, random.standard_normal()) for column in given]

    attributes = trees.attributes("target", gives) | {"n_targets": columns}
    attributes["aggregate_function"] = str(random.choice(["SUM", "AVERAGE", "MIN", "MAX"]))
    attributes["post_transform"] = str(random.choice(["NONE", "SOFTMAX", "LOGISTIC"]))
    if random.random() < 0.5:
        attributes["base_values"] = random.standard_normal(columns).tolist()
    return ensemble("TreeEnsembleRegressor", attributes, trees.x), trees.x


def random_classifier(seed: int) -> tuple[bytes, Any]:
    """Of two classes leaves give to the first one alone, as exporters write it."""
    trees = RandomTrees(seed)
    random, classes = trees.random, int(trees.random.integers(2, 5))
    shares, single = random.random() < 0.5, random.random() < 0.4

    def gives(tree: int) -> list[tuple[int, float]]:
        given = [0] if classes == 2 else [tree % classes] if single else range(classes)
        return [(column, abs(random.standard_normal()) if shares else random.standard_normal()) for column in given]

    attributes = trees.attributes("class", gives)
    attributes["post_transform"] = str(random.choice(["NONE", "LOGISTIC"] + ["SOFTMAX"] * (classes > 2)))
    attributes["classlabels_int64s"] = random.permutation(20)[:classes].tolist()
    if single or random.random() < 0.5:
        attributes["base_values"] = random.standard_normal(1 if classes == 2 else classes).tolist()
    return ensemble("TreeEnsembleClassifier", attributes, trees.x), trees.x


@pytest.mark.parametrize("seed", SEEDS)
def test_regressors_are_those_of_onnxruntime(seed: int) -> None:
    compare(*random_regressor(seed))


@pytest.mark.parametrize("seed", SEEDS)
def test_classifiers_are_those_of_onnxruntime(seed: int) -> None:
    compare(*random_classifier(seed))


@pytest.mark.slow
def test_many_ensembles_are_those_of_onnxruntime() -> None:
    for seed in ALL_SEEDS:
        compare(*random_regressor(seed))
        compare(*random_classifier(seed))


def test_two_classes_that_leaves_give_to_are_those_of_the_reference() -> None:
    from onnx.reference import ReferenceEvaluator

    attributes = attributes_of([STUMP, STUMP], "class", lambda tree: [(0, 0.2 + tree), (1, 0.7)])
    for labels in ([0, 1], [5, 3]):
        data = ensemble("TreeEnsembleClassifier", {**attributes, "classlabels_int64s": labels}, X)
        for found, wanted in zip(ours(data, X), ReferenceEvaluator(data).run(None, {"x": X}), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-6)


LINEAR = {"coefficients": [float(x) for x in range(-5, 7)], "intercepts": [0.5, -1.0, 2.0]}
ONE_SCORE = {"coefficients": [1.0, -2.0, 0.5, 0.25], "intercepts": [0.125]}
NODES: dict[str, tuple[str, dict[str, Any], tuple[str, ...]]] = {
    "Scaler": ("Scaler", {"offset": [0.5, 1.0, 2.0, -1.0], "scale": [2.0, 0.5, 3.0, 1.0]}, ("y",)),
    "Scaler of one number": ("Scaler", {"offset": [0.5], "scale": [2.0]}, ("y",)),
    **{f"Normalizer {norm}": ("Normalizer", {"norm": norm}, ("y",)) for norm in ("MAX", "L1", "L2")},
    "Binarizer": ("Binarizer", {"threshold": 0.25}, ("y",)),
    "Imputer": (
        "Imputer", {"imputed_value_floats": [1.0, 2.0, 3.0, 4.0], "replaced_value_float": float(X[3, 1])}, ("y",)
    ),
    "LinearRegressor": ("LinearRegressor", {**LINEAR, "targets": 3}, ("y",)),
    "LinearRegressor of one": ("LinearRegressor", ONE_SCORE, ("y",)),
    **{
        f"LinearClassifier {after}": (
            "LinearClassifier", {**LINEAR, "classlabels_ints": [4, 0, 9], "post_transform": after}, ("label", "scores"),
        )
        for after in ("NONE", "SOFTMAX", "LOGISTIC")
    },
    "FeatureVectorizer": ("FeatureVectorizer", {"inputdimensions": [3]}, ("y",)),
}  # fmt: skip


@pytest.mark.parametrize("name", NODES)
def test_nodes_are_those_of_onnxruntime(name: str) -> None:
    op, attributes, outputs = NODES[name]
    compare(model_of([node_of(op, outputs, attributes)], X, outputs), X)


@pytest.mark.parametrize("seed", range(4))
def test_encoded_labels_are_those_of_the_reference(seed: int) -> None:
    from onnx.reference import ReferenceEvaluator

    random = np.random.default_rng(seed)
    keys, values = random.permutation(9)[:6].tolist(), random.permutation(50)[:6].tolist()
    x = random.integers(0, 9, (11, 1))
    data = model_of(
        [node_of("LabelEncoder", ("label",), {"keys_int64s": keys, "values_int64s": values})], x, ("label",)
    )
    (found,), (wanted,) = ours(data, x), ReferenceEvaluator(data).run(None, {"x": x})
    np.testing.assert_array_equal(found, wanted)


def test_integers_are_features() -> None:
    attributes = attributes_of([STUMP], "target", lambda tree: [(0, 1.5)]) | {"n_targets": 1}
    attributes["target_weights"] = [2.0, 4.0]
    x = np.arange(-1, 2).reshape(3, 1)
    (found,) = ours(ensemble("TreeEnsembleRegressor", attributes, x), x)
    assert (found.dtype, found.ravel().tolist()) == (np.float32, [2.0, 2.0, 4.0])


def test_doubles_are_compared_as_doubles() -> None:
    """A split that f32 rounds to another number."""
    attributes = attributes_of([STUMP], "target", lambda tree: [(0, 0.0)]) | {"n_targets": 1}
    del attributes["nodes_values"], attributes["target_weights"]
    attributes["nodes_values_as_tensor"] = onnx_tensor(np.array([0.1, 0.0, 0.0]))
    attributes["target_weights_as_tensor"] = onnx_tensor(np.array([1.0, 2.0]))
    x = np.nextafter(0.1, [[1.0], [-1.0]])
    (found,) = ours(ensemble("TreeEnsembleRegressor", attributes, x), x)
    assert found.ravel().tolist() == [2.0, 1.0]


def onnx_tensor(array: Any) -> Any:
    from onnx import numpy_helper

    return numpy_helper.from_array(array)


def changed(**attributes: Any) -> dict[str, Any]:
    return attributes_of([STUMP], "target", lambda tree: [(0, 1.5)]) | {"n_targets": 1} | attributes


def deep(levels: int) -> list[TreeNode]:
    """A chain with a leaf at each node."""
    nodes: list[TreeNode] = []
    for i in range(levels):
        nodes += [TreeNode("BRANCH_LEQ", 0, float(i), 2 * i + 1, 2 * i + 2), LEAF]
    return [*nodes, LEAF]


WRONG = {
    "rows of 4 features, and its node 0 compares feature 7": changed(nodes_featureids=[7, 0, 0]),
    "compares feature -1": changed(nodes_featureids=[-1, 0, 0]),
    "2 nodes_featureids and 3 nodes_treeids": changed(nodes_featureids=[0, 0]),
    "2 nodes_values and 3 nodes_treeids": changed(nodes_values=[0.0, 0.0]),
    "1 target_weights and 2 target_ids": changed(target_weights=[1.0]),
    "a node of mode 'BRANCH_LE'": changed(nodes_modes=["BRANCH_LE", "LEAF", "LEAF"]),
    "nodes_truenodeids 9 in tree 0": changed(nodes_truenodeids=[9, 0, 0]),
    "2 nodes in tree 0 that no other one leads to": changed(nodes_falsenodeids=[1, 0, 0]),
    "two nodes 1 in tree 0": changed(nodes_nodeids=[0, 1, 1]),
    "target_nodeids 5 in tree 0": changed(target_nodeids=[1, 5]),
    "weights of its node 0, which is no leaf": changed(target_nodeids=[0, 1]),
    "gives to 3, there are 1": changed(target_ids=[0, 3]),
    "2 base_values and 1 targets": changed(base_values=[1.0, 2.0]),
    "n_targets 0": changed(n_targets=0),
    "more than 4096 levels": attributes_of([deep(4097)], "target", lambda tree: [(0, 1.0)]) | {"n_targets": 1},
    "post_transform='SOFTMIN'": changed(post_transform="SOFTMIN"),
}  # fmt: skip


@pytest.mark.parametrize("said", WRONG)
def test_what_is_no_trees_is_said(said: str) -> None:
    with pytest.raises(InvalidArguments) as error:
        ours(ensemble("TreeEnsembleRegressor", WRONG[said], X), X)
    assert said in str(error.value)
    assert "TreeEnsembleRegressor 'n'" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_cycle_away_from_the_root_is_said() -> None:
    tree = [*STUMP, TreeNode("BRANCH_LEQ", 0, 0.0, 4, 1), TreeNode("BRANCH_LEQ", 0, 0.0, 3, 2)]
    attributes = attributes_of([tree], "target", lambda tree: [(0, 1.5)]) | {"n_targets": 1}
    with pytest.raises(InvalidArguments, match=r"several lead to: its nodes are no trees"):
        ours(ensemble("TreeEnsembleRegressor", attributes, X), X)


def test_trees_of_the_deepest_kind_are_walked() -> None:
    attributes = attributes_of([deep(4000)], "target", lambda tree: [(0, 1.5)]) | {"n_targets": 1}
    x = np.array([[5000.0]], np.float32)
    assert ours(ensemble("TreeEnsembleRegressor", attributes, x), x)[0] == 1.5


def v5(**changes: Any) -> dict[str, Any]:
    """A tree of TreeEnsemble with a set, and one of a single leaf."""
    modes, splits, members = np.array([0, 6, 0], np.uint8), np.array([0.0, 0.0, 0.0], np.float32), [1.0, 2.0, np.nan]
    found: dict[str, Any] = {
        "n_targets": 2, "tree_roots": [0, 2], "nodes_featureids": [0, 1, 0], "nodes_modes": onnx_tensor(modes),
        "nodes_splits": onnx_tensor(splits), "nodes_truenodeids": [0, 1, 3], "nodes_falsenodeids": [1, 2, 3],
        "nodes_trueleafs": [1, 1, 1], "nodes_falseleafs": [0, 1, 1], "leaf_targetids": [0, 1, 0, 1],
        "leaf_weights": onnx_tensor(np.array([1.0, 2.0, 4.0, 8.0], np.float32)),
        "membership_values": onnx_tensor(np.array(members, np.float32)),
    }  # fmt: skip
    return found | changes


@pytest.mark.parametrize("aggregate", range(4))
def test_sets_and_trees_of_one_leaf(aggregate: int) -> None:
    x = np.array([[-1, 0], [1, 1], [1, 2], [1, 3], [1, np.nan], [np.nan, 2]], np.float32)
    (found,) = ours(ensemble("TreeEnsemble", v5(aggregate_function=aggregate), x, ml=5), x)
    leaf = [0, 1, 1, 2, 2, 1]  # of the first tree
    given = np.array([[[1, None], [None, 2], [4, None]][i] for i in leaf], object)
    other = np.array([None, 8])
    how = (lambda a: sum(a) / 2, sum, min, max)[aggregate]
    for row, own in zip(found, given, strict=True):
        for column, pair in enumerate(zip(own, other, strict=True)):
            some = [y for y in pair if y is not None]
            if some:
                assert row[column] == how(some)


V5_WRONG = {
    "tree_roots from 0 to 5 of 3 nodes": v5(tree_roots=[0, 5]),
    "one of its tree_roots twice": v5(tree_roots=[0, 0]),
    "nodes_truenodeids 9 and 4 leaves: it must be below": v5(nodes_truenodeids=[9, 1, 3]),
    "nodes_falsenodeids 7 and 3 nodes: it must be below": v5(nodes_falsenodeids=[7, 2, 3]),
    "0 sets that end in NaN, and 1 node of mode MEMBER": v5(membership_values=onnx_tensor(np.ones(2, np.float32))),
    "aggregate_function 4": v5(aggregate_function=4),
    "post_transform 5": v5(post_transform=5),
    "2 leaf_weights and 4 leaf_targetids": v5(leaf_weights=onnx_tensor(np.ones(2, np.float32))),
    "mode 9": v5(nodes_modes=onnx_tensor(np.array([0, 9, 0], np.uint8))),
}


@pytest.mark.parametrize("said", V5_WRONG)
def test_what_is_no_ensemble_is_said(said: str) -> None:
    with pytest.raises(InvalidArguments, match=r"TreeEnsemble 'n'") as error:
        ours(ensemble("TreeEnsemble", V5_WRONG[said], X, ml=5), X)
    assert said in str(error.value)


WRONG_NODES = {
    "3 scale for (4,) columns": ("Scaler", {"scale": [1.0, 2.0, 3.0]}),
    "no imputed_value_floats": ("Imputer", {"imputed_value_int64s": [1]}),
    "5 coefficients and 0 intercepts": ("LinearRegressor", {"coefficients": [1.0] * 5}),
    "inputdimensions (4, 4) for 1 input": ("FeatureVectorizer", {"inputdimensions": [4, 4]}),
    "2 keys and 1 value": ("LabelEncoder", {"keys_int64s": [1, 2], "values_int64s": [3]}),
    "norm='L3'": ("Normalizer", {"norm": "L3"}),
    "lacks the attribute coefficients": ("LinearRegressor", {}),
}


@pytest.mark.parametrize("said", WRONG_NODES)
def test_what_is_wrong_with_a_node_is_said(said: str) -> None:
    op, attributes = WRONG_NODES[said]
    with pytest.raises((InvalidArguments, Unimplemented), match=f"{op} 'n'") as error:
        ours(model_of([node_of(op, ("y",), attributes)], X, ("y",)), X)
    assert said in str(error.value).replace("(4)", "(4,)")


def test_a_network_of_trees_is_proved_verified_and_saved(tmp_path: Path) -> None:
    data, x = random_classifier(3)
    net = dnn.load_onnx(data, {"x": x.shape}, engine=engine())
    net.check()
    assert all(one.fits for one in net.verify({"x": x}))
    net.save(tmp_path / "trees.pack")
    for name, found in dnn.load_pack(tmp_path / "trees.pack").run({"x": x}).items():
        np.testing.assert_array_equal(found, net.run({"x": x})[name])


def test_rows_are_open() -> None:
    data, _ = random_regressor(2)
    net = dnn.load_onnx(data, engine=engine())
    features = net.inputs["x"][0][1]
    x = np.random.default_rng(1).standard_normal((40, features)).astype(np.float32)
    whole = net.run({"x": x})["y"]
    for rows in (1, 7, 8, 17):
        np.testing.assert_array_equal(net.run({"x": x[:rows]})["y"], whole[:rows])
