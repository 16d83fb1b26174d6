"""Support vector machines: files of ai.onnx.ml against onnxruntime."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.errors import InvalidArguments, Unimplemented
from tests.network.classical import model_of, node_of
from tests.network.nets import engine
from tests.network.test_classical import compare

pytest.importorskip("onnx", reason="the networks extra: pip install onnx onnxruntime")
pytestmark = pytest.mark.isa("avx2")
SEEDS, MANY = range(24), range(24, 80)
KERNELS = ("LINEAR", "POLY", "RBF", "SIGMOID")
OUTPUTS = ("label", "scores")
X = np.random.default_rng(4).standard_normal((9, 3)).astype(np.float32)


def kernel(random: np.random.Generator) -> dict[str, Any]:
    params = [float(random.random()), float(random.random()), float(random.integers(1, 5))]
    return {"kernel_type": str(random.choice(KERNELS)), "kernel_params": params}


def numbers(random: np.random.Generator, count: int) -> list[float]:
    return [float(x) for x in random.standard_normal(count).astype(np.float32)]


def random_regressor(seed: int) -> tuple[bytes, Any]:
    """Of support vectors, or of coefficients alone."""
    random = np.random.default_rng(seed)
    features, vectors = (int(n) for n in random.integers(1, 7, 2))
    x = random.standard_normal((int(random.integers(1, 20)), features)).astype(np.float32)
    attributes = {**kernel(random), "rho": numbers(random, 1), "one_class": int(random.integers(2))}
    if random.random() < 0.3:
        attributes |= {"n_supports": 0, "coefficients": numbers(random, features)}
    else:
        attributes |= {"n_supports": vectors, "coefficients": numbers(random, vectors)}
        attributes["support_vectors"] = numbers(random, vectors * features)
    return model_of([node_of("SVMRegressor", ("y",), attributes)], x, ("y",)), x


def random_classifier(seed: int) -> tuple[bytes, Any]:
    """With votes alone, with probabilities, or of coefficients alone, which may all be positive."""
    random = np.random.default_rng(seed)
    classes, features = int(random.integers(2, 6)), int(random.integers(1, 6))
    counts = random.integers(1, 5, classes).tolist()
    x = random.standard_normal((int(random.integers(1, 20)), features)).astype(np.float32)
    pairs, vectors = classes * (classes - 1) // 2, sum(counts)
    attributes = {
        **kernel(random), "rho": numbers(random, pairs), "classlabels_ints": random.permutation(20)[:classes].tolist(),
        "post_transform": str(random.choice(["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])),
    }  # fmt: skip
    if random.random() < 0.3:
        weights = numbers(random, classes * features)
        attributes["coefficients"] = [abs(w) for w in weights] if random.random() < 0.5 else weights
    else:
        attributes["coefficients"] = numbers(random, (classes - 1) * vectors)
        attributes |= {"support_vectors": numbers(random, vectors * features), "vectors_per_class": counts}
        if random.random() < 0.5:
            attributes["prob_a"] = [-3 * abs(a) for a in numbers(random, pairs)]
            attributes["prob_b"] = numbers(random, pairs)
    return model_of([node_of("SVMClassifier", OUTPUTS, attributes)], x, OUTPUTS), x


@pytest.mark.parametrize("seed", SEEDS)
def test_regressors_are_those_of_onnxruntime(seed: int) -> None:
    compare(*random_regressor(seed))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.one_in(5)
def test_classifiers_are_those_of_onnxruntime(seed: int) -> None:
    compare(*random_classifier(seed))


@pytest.mark.slow
def test_many_machines_are_those_of_onnxruntime() -> None:
    for seed in MANY:
        compare(*random_regressor(seed))
        compare(*random_classifier(seed))


def test_rows_far_from_zero_lose_nothing() -> None:
    """Distances of features near 1,000, whose squares f32 rounds by more than a whole distance."""
    random = np.random.default_rng(5)
    x = (1000 + random.standard_normal((9, 3))).astype(np.float32)
    attributes = {
        "kernel_type": "RBF", "kernel_params": [0.5, 0.0, 3.0], "rho": [0.25], "n_supports": 9,
        "coefficients": numbers(random, 9), "support_vectors": [float(v) for v in x.ravel()],
    }  # fmt: skip
    compare(model_of([node_of("SVMRegressor", ("y",), attributes)], x, ("y",)), x)


CLASSIFIER: dict[str, Any] = {
    "coefficients": [1.0, -2.0, 0.5], "support_vectors": [0.5] * 9, "vectors_per_class": [1, 2], "rho": [0.25],
    "classlabels_ints": [0, 1], "kernel_type": "RBF", "kernel_params": [0.5, 0.0, 3.0],
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"rho": [1.0, 2.0]}, "2 rho, with its other attributes it needs 1"),
        ({"kernel_params": [1.0]}, "1 kernel_params, with its other attributes it needs 3"),
        ({"support_vectors": [1.0] * 8}, "8 support_vectors, with its other attributes it needs 9"),
        ({"coefficients": [1.0]}, "1 coefficients, with its other attributes it needs 3"),
        ({"vectors_per_class": [4, -1]}, r"vectors_per_class \[4, -1\]: 2 counts, of 2 classes or more"),
        ({"prob_a": [1.0]}, "0 prob_b, with its other attributes it needs 1"),
        ({"kernel_type": "COSINE"}, "kernel_type"),
    ],
)
def test_what_is_no_machine(changes: dict[str, Any], says: str) -> None:
    data = model_of([node_of("SVMClassifier", OUTPUTS, CLASSIFIER | changes)], X, OUTPUTS)
    with pytest.raises(InvalidArguments, match=says):
        dnn.load_onnx(data, {"x": X.shape}, engine=engine())


def test_probabilities_of_many_classes_are_refused() -> None:
    many = {
        "coefficients": [1.0] * 110, "support_vectors": [0.5] * 33, "vectors_per_class": [1] * 11, "rho": [0.25] * 55,
        "classlabels_ints": list(range(11)), "prob_a": [-1.0] * 55, "prob_b": [0.0] * 55,
    }  # fmt: skip
    data = model_of([node_of("SVMClassifier", OUTPUTS, CLASSIFIER | many)], X, OUTPUTS)
    with pytest.raises(Unimplemented, match="probabilities of 11 classes, at most 10 are read: export its votes alone"):
        dnn.load_onnx(data, {"x": X.shape}, engine=engine())
