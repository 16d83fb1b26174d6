"""Operators that carry states, and attention with bodies: native, and equal to ONNX's own reference."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from tests.network.nets import engine, random

onnx = pytest.importorskip("onnx", reason="the networks extra: pip install onnx onnxruntime")
pytestmark = pytest.mark.isa("avx2")


def compare(op: str, arrays: list[Any], results: int = 1, fallback: str | None = None, **attributes: Any) -> None:
    from onnx import helper
    from onnx.reference import ReferenceEvaluator

    domain = attributes.pop("domain", "")
    given = {f"x{i}": x for i, x in enumerate(arrays) if x is not None}
    names = ["" if x is None else f"x{i}" for i, x in enumerate(arrays)]
    node = helper.make_node(op, names, [f"y{i}" for i in range(results)], domain=domain, **attributes)
    inputs = [
        helper.make_tensor_value_info(name, 7 if x.dtype == np.int64 else 1, x.shape) for name, x in given.items()
    ]
    outputs = [helper.make_tensor_value_info(f"y{i}", 1, None) for i in range(results)]
    imports = [helper.make_opsetid("", 27), *[helper.make_opsetid(domain, 1)] * bool(domain)]
    model = helper.make_model(helper.make_graph([node], op, inputs, outputs), opset_imports=imports)
    net = dnn.load_onnx(model.SerializeToString(), engine=engine(2), fallback=fallback)
    found = net.run(given)
    if fallback is None:
        net.check()
        assert all(difference.fits for difference in net.verify(given))
    for i, wanted in enumerate(ReferenceEvaluator(model).run(None, given)):
        np.testing.assert_allclose(found[f"y{i}"], wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("taps", [1, 4])
@pytest.mark.parametrize("has_past", [False, True])
def test_causal_convolutions(has_past: bool, taps: int) -> None:
    past = random(2, 6, taps - 1) if has_past and taps > 1 else None
    compare("CausalConvWithState", [random(2, 6, 9), random(6, 1, taps), random(6), past], 2, activation="silu")


@pytest.mark.parametrize("rule", ["linear", "gated", "delta", "gated_delta"])
def test_linear_attention(rule: str) -> None:
    """Of 4 heads in 2 groups, with a past."""
    decay = -np.abs(random(2, 5, 2)) if "gated" in rule else None
    beta = np.abs(random(2, 5, 2)) if "delta" in rule else None
    operands = [random(2, 5, 12), random(2, 5, 6), random(2, 5, 8), random(2, 2, 3, 4), decay, beta]
    compare("LinearAttention", operands, 2, q_num_heads=4, kv_num_heads=2, update_rule=rule)


def test_attention_with_bodies() -> None:
    from onnx import helper

    def body(op: str, number: float) -> Any:
        ends = [[helper.make_tensor_value_info(name, 1, None)] for name in ("s", "t")]
        constant = helper.make_tensor("c", 1, [], [number])
        return helper.make_graph([helper.make_node(op, ["s", "c"], ["t"])], op, *ends, [constant])

    operands = [random(2, 4, 5, 8), random(2, 2, 7, 8), random(2, 2, 7, 6)]
    how = {"score_mod": body("Mul", 0.5), "prob_mod": body("Add", 0.25), "scale": 0.7}
    compare("FlexAttention", operands, domain="ai.onnx.preview", **how)


def test_maxima_put_back() -> None:
    """By numpy so far, which scatters."""
    places = np.array([[[[1, 3], [8, 14]]]])
    compare("MaxUnpool", [random(1, 1, 2, 2), places], fallback="numpy", kernel_shape=[2, 2], strides=[2, 2])
