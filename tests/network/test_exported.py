"""Graphs as exporters write them, natively throughout, against onnxruntime."""

from pathlib import Path

import numpy as np
import pytest

import asmdnn as dnn
from tests.network.nets import compiled, engine

pytest.importorskip("onnx", reason="the networks extra: pip install onnx onnxruntime")
onnxruntime = pytest.importorskip("onnxruntime", reason="the networks extra: pip install onnx onnxruntime")

from tests.network.exported import GRAPHS  # noqa: E402

RELATIVE = 2e-6  # of the largest output: a dozen layers of some hundred terms
ATTENTION = {"vit", "bert", "gpt", "whisper"}


def feeds_of(session: object) -> dict[str, np.ndarray]:
    """Random inputs; a mask of tokens hides the last ones."""
    random = np.random.default_rng(0)
    found = {x.name: random.standard_normal(x.shape).astype(np.float32) for x in session.get_inputs()}  # type: ignore[attr-defined]
    if "mask" in found:
        found["mask"] = (np.arange(found["mask"].size) < 9).astype(np.float32).reshape(found["mask"].shape)
    return found


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("name", GRAPHS)
def test_against_onnxruntime(name: str) -> None:
    data = GRAPHS[name]()
    net = dnn.load_onnx(data, engine=engine(threads=2))
    net.check()
    session = onnxruntime.InferenceSession(data)
    feeds = feeds_of(session)
    for found, wanted in zip(net.run(feeds).values(), session.run(None, feeds), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=RELATIVE * np.abs(wanted).max())
    assert all(difference.fits for difference in net.verify(feeds))
    segment = compiled(net)
    assert any(step.label.startswith("Attention") for step in segment.steps) == (name in ATTENTION)


@pytest.mark.parametrize("name", sorted(ATTENTION))
def test_of_the_other_level_plans_are_proved(name: str) -> None:
    dnn.load_onnx(GRAPHS[name](), engine=engine(isa="avx512_core")).check()


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("name", ["bert", "gpt", "unet", "yolo"])
def test_files_that_onnxruntime_has_optimized(name: str, tmp_path: Path) -> None:
    """Its fused operators become the primitives that the model as it was exported becomes."""
    data, options = GRAPHS[name](), onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(tmp_path / "optimised.onnx")
    session = onnxruntime.InferenceSession(data, options)
    net = dnn.load_onnx(tmp_path / "optimised.onnx", engine=engine(threads=2))
    assert any(node.domain for node in net.model.body.nodes)
    net.check()
    feeds = feeds_of(session)
    for found, wanted in zip(net.run(feeds).values(), session.run(None, feeds), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=RELATIVE * np.abs(wanted).max())
    steps, others = (each.segments[0].steps for each in (net, dnn.load_onnx(data, engine=engine(threads=2))))
    assert len(steps) <= len(others)
