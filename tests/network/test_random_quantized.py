"""Random files of integers against onnxruntime, operator by operator: natively, and within a step of each rounding."""

import numpy as np
import pytest

import asmdnn as dnn
from tests.network.nets import engine, reference

onnxruntime = pytest.importorskip("onnxruntime", reason="the networks extra: pip install onnx onnxruntime")
pytest.importorskip("onnx", reason="the networks extra: pip install onnx onnxruntime")

from tests.network.quantized_operators import random_file  # noqa: E402
from tests.network.test_against_onnxruntime import answers  # noqa: E402

QUICK, ALL, MOST_OPERATORS = range(24), range(24, 2024), 5
UNEQUAL = 0.01  # share of elements that are a step away, where there is one rounding


def check(seed: int, isa: str) -> tuple[int, int]:
    """How many elements were compared after one rounding, and how many of them differ."""
    file = random_file(seed, 1 + seed % MOST_OPERATORS)
    model, counts = file.model(), np.zeros(2, int)
    wanted = answers(model, file.feeds)
    assert wanted is not None
    found = dnn.load_onnx(model, engine=engine(1, isa)).run(file.feeds)
    for value, answer in zip(file.outputs(), wanted, strict=True):
        made, where = found[value.name], f"seed {seed}, {value.name}"
        assert (made.dtype, made.shape) == (answer.dtype, answer.shape), where
        off = abs(made.astype(int) - answer.astype(int))
        assert off.max(initial=0) <= value.off + 1e-6, where
        if value.off <= 1 and "QLinearSoftmax" not in model.decode("latin1"):  # which onnxruntime has a table for
            counts += (off.size, np.count_nonzero(off))
    return int(counts[0]), int(counts[1])


@pytest.mark.parametrize("isa", [pytest.param(isa, marks=pytest.mark.isa(isa)) for isa in ("avx2", "avx512_core_vnni")])
def test_random_files_of_integers(isa: str) -> None:
    compared, unequal = np.sum([check(seed, isa) for seed in QUICK], 0)
    assert unequal < UNEQUAL * compared


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("op", ["LayerNormalization", "MatMul"])
def test_a_tensor_that_a_kernel_of_rows_does_not_take(op: str) -> None:
    """A number for each channel, broadcast along the batch and the rows, is a pass after it."""
    graph = dnn.Graph()
    x, numbers = graph.input("x", (2, 3, 4, 8)), np.float32([1, 2, 3]).reshape(1, 3, 1, 1)
    rows = graph.apply(op, x, np.eye(8, dtype=np.float32) if op == "MatMul" else np.ones(8, np.float32))
    net = graph.compile(y=graph.apply("Relu", rows * numbers), engine=engine())
    feeds = {"x": np.random.default_rng(0).standard_normal((2, 3, 4, 8)).astype(np.float32)}
    net.check()
    assert [str(one) for one in net.verify(feeds) if not one.fits] == []
    np.testing.assert_allclose(net.run(feeds)["y"], reference(net, feeds)["y"], rtol=0, atol=1e-5)


@pytest.mark.slow
@pytest.mark.isa("avx2")
def test_more_random_files_of_integers() -> None:
    compared, unequal = np.sum([check(seed, "avx2") for seed in ALL], 0)
    assert unequal < UNEQUAL * compared
