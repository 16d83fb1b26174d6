"""`quantize(method="static")`: files with bytes between operators, against f32, against themselves and onnxruntime."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.errors import InvalidArguments
from asmdnn.network.of_model import network_of
from asmdnn.network.onnx.reader import read_model
from asmdnn.network.static_qdq.folded import folded
from asmdnn.network.static_qdq.ranges import BINS, ENOUGH, Observed
from asmdnn.network.static_qdq.roles import Roles
from tests.network import wire
from tests.network.nets import engine
from tests.support.drawing import RANDOM

CHANNELS = 8


def weights(*dims: int) -> np.ndarray:
    return (RANDOM.standard_normal(dims) / np.prod(dims[1:]) ** 0.5).astype(np.float32)


def file(opset: int = 17) -> bytes:
    """A stem with a batch norm, hardswish written out, a residual sum, a gate, a maximum, a mean, and a classifier."""
    positive = np.abs(weights(CHANNELS)) + 1
    nodes = [
        wire.node("Conv", ["x", "stem w"], ["stem"], "stem", pads=[1, 1, 1, 1]),
        wire.node("BatchNormalization", ["stem", "gamma", "beta", "mean", "var"], ["normal"], "norm"),
        wire.node("Add", ["normal", "three"], ["above"]),
        wire.node("Clip", ["above", "zero", "six"], ["clipped"]),
        wire.node("Mul", ["normal", "clipped"], ["swish by six"]),
        wire.node("Div", ["swish by six", "six"], ["swish"]),
        wire.node("Conv", ["swish", "deep w"], ["deep"], "deep", pads=[1, 1, 1, 1], group=CHANNELS),
        wire.node("Relu", ["deep"], ["deep relu"]),
        wire.node("GlobalAveragePool", ["deep relu"], ["mean of all"]),
        wire.node("Conv", ["mean of all", "gate w", "gate b"], ["gate"], "gate"),
        wire.node("HardSigmoid", ["gate"], ["gate 1"]),
        wire.node("Mul", ["deep relu", "gate 1"], ["gated"]),
        wire.node("Conv", ["gated", "point w", "point b"], ["point"], "point"),
        wire.node("Add", ["point", "swish"], ["sum"]),
        wire.node("Relu", ["sum"], ["sum relu"]),
        wire.node("MaxPool", ["sum relu"], ["small"], kernel_shape=[2, 2], strides=[2, 2]),
        wire.node("Flatten", ["small"], ["row"]),
        wire.node("Gemm", ["row", "head w", "head b"], ["scores"], "head", transB=1),
        wire.node("MatMul", ["scores", "last w"], ["last"], "last"),
        wire.node("Softmax", ["last"], ["y"], axis=-1),
    ]
    constants = {
        "stem w": weights(CHANNELS, 3, 3, 3), "gamma": positive, "beta": weights(CHANNELS), "mean": weights(CHANNELS),
        "var": positive, "three": np.float32(3), "zero": np.float32(0), "six": np.float32(6),
        "deep w": weights(CHANNELS, 1, 3, 3), "gate w": weights(CHANNELS, CHANNELS, 1, 1), "gate b": weights(CHANNELS),
        "point w": weights(CHANNELS, CHANNELS, 1, 1), "point b": weights(CHANNELS),
        "head w": weights(10, CHANNELS * 16), "head b": weights(10), "last w": weights(10, 4),
    }  # fmt: skip
    return wire.model(wire.graph(nodes, {"x": ("n", 3, 8, 8)}, ["y", "last"], constants), opset)


PRODUCTS = ("stem", "deep", "gate", "point", "head", "last")
CALIBRATIONS = [
    dnn.Calibration(rule, activations=activations)
    for rule, activations in (("minmax", "u8"), ("percentile", "s8"), ("entropy", "u8"))
]


def feeds(count: int = 4) -> dict[str, np.ndarray]:
    return {"x": RANDOM.standard_normal((count, 3, 8, 8)).astype(np.float32)}


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("opset", [12, 17])
@pytest.mark.parametrize("calibration", CALIBRATIONS, ids=lambda one: f"{one.rule}-{one.activations}")
def test_a_file_of_bytes_is_near_f32_and_onnxruntime(calibration: dnn.Calibration, opset: int) -> None:
    given, data = [feeds(), feeds(2)], file(opset)
    made = dnn.quantize(data, given, "static", calibration=calibration, engine=engine())
    assert made.nodes == PRODUCTS
    assert isinstance(made.network, dnn.OpenNetwork)
    assert made.network.last.planned().refused == {}, "natively throughout"
    assert made.errors["last"] < 0.1, "six products of 8 bits, one after another"
    assert all(0 < error < 0.1 for error in made.steps.values())
    nodes = Counter(node.op for node in read_model(made.data).body.nodes)
    assert nodes["BatchNormalization"] == 0
    assert nodes["QuantizeLinear"] == len(bytes_of(data)), "one for each value, and none inside of functions"
    onnx = pytest.importorskip("onnx", reason="the networks extra: pip install onnx onnxruntime")
    runtime = pytest.importorskip("onnxruntime", reason="the networks extra: pip install onnx onnxruntime")
    made = dnn.quantize(data, given, "static", calibration=calibration, reduce_range=True, engine=engine())
    onnx.checker.check_model(onnx.load_from_string(made.data), full_check=True)
    session = runtime.InferenceSession(made.data, providers=["CPUExecutionProvider"])
    for one in given:
        theirs = dict(zip(("y", "last"), session.run(["y", "last"], one), strict=True))
        for name, array in made.network.run(one).items():
            step = np.abs(theirs[name]).max() / 127
            assert np.abs(array - theirs[name]).max() <= 3 * step, "six products, each of which may round otherwise"
            assert (np.abs(array - theirs[name]) > step / 2).mean() < 0.1


def bytes_of(data: bytes) -> tuple[str, ...]:
    return Roles(folded(read_model(data).body, 17), ()).stored


def test_which_values_are_bytes() -> None:
    stored = (
        "x", "swish", "deep relu", "mean of all", "gate 1", "gated", "point", "sum relu", "small", "row", "scores",
    )  # fmt: skip
    assert bytes_of(file()) == stored
    roles = Roles(folded(read_model(file()).body, 17), ("point", "deep relu"))
    assert "sum relu" in roles.stored, "which the classifier reads"
    assert "sum relu" in roles.made, "of a stem of bytes"
    roles = Roles(folded(read_model(file()).body, 17), ("point", "stem"))
    assert not {"small", "sum relu"} & roles.made, "nothing before is of bytes"


@pytest.mark.isa("avx2")
def test_folding_changes_nothing() -> None:
    data = file()
    model = read_model(data)
    small = replace(model, body=folded(model.body, 17))
    assert [node.op for node in small.body.nodes][:3] == ["Conv", "Add", "Clip"]
    assert [node.op for node in folded(model.body, 17, ["norm"]).nodes][:2] == ["Conv", "BatchNormalization"]
    given = feeds()
    wanted = dnn.load_onnx(data, engine=engine()).run(given)
    found = network_of(small, None, None, engine(), None).run(given)
    for name, array in wanted.items():
        assert np.abs(found[name] - array).max() < 1e-5 * np.abs(array).max()


@pytest.mark.isa("avx2")
def test_a_limit_keeps_the_fewest_in_f32() -> None:
    given, data = feeds(), file()
    free = dnn.quantize(data, given, "static", engine=engine())
    most = max(free.errors.values()) / 2
    made = dnn.quantize(data, given, "static", max_error=most, engine=engine())
    assert max(made.errors.values()) <= most
    assert made.kept_f32
    assert {*made.kept_f32} | {*made.nodes} == {*PRODUCTS}
    worst = sorted(free.steps, key=lambda name: -free.steps[name])
    assert {*made.kept_f32} == {*worst[: len(made.kept_f32)]}, "largest error first"
    assert f"f32 for max_error: {', '.join(made.kept_f32)}" in str(made)


@pytest.mark.isa("avx2")
def test_biases_take_what_rounding_changes_of_means() -> None:
    given, data = feeds(16), file()
    exact = dnn.load_onnx(data, engine=engine()).run(given)["last"].mean(axis=0)
    errors = []
    for one in (dnn.Calibration(), dnn.Calibration(correct_bias=False)):
        made = dnn.quantize(data, given, "static", calibration=one, engine=engine())
        errors.append(np.abs(made.network.run(given)["last"].mean(axis=0) - exact).max())
    assert errors[0] < errors[1]


def test_ranges_by_percentile_and_entropy() -> None:
    one = Observed()
    x = np.concatenate([RANDOM.standard_normal(2 * ENOUGH), [50.0]])
    one.widen(x)
    one.count(x)
    wide = one.numbers(dnn.Calibration("minmax"))
    assert wide.scale == pytest.approx((50 - x.min()) / 255, rel=1e-6)
    assert wide.zero == round(-x.min() / wide.scale)
    held = one.numbers(dnn.Calibration("percentile", 99.9))
    assert held.scale * 255 == pytest.approx(2 * 3.29, abs=2 * (50 - x.min()) / BINS + 0.2), "of a normal distribution"
    assert one.numbers(dnn.Calibration("entropy")).scale < wide.scale / 2, "one value is no range"
    assert Observed().numbers(dnn.Calibration()).scale == 1, "nothing but zeros"


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"rule": "max"}, "rule must be one of minmax, percentile, entropy, not 'max'"),
        ({"percentile": 40}, "percentile must be above 50"),
        ({"activations": "s16"}, "activations must be one of u8, s8"),
        ({"correct_bias": 1}, "correct_bias must be True or False"),
    ],
)
def test_bad_calibrations(said: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidArguments, match=words):
        dnn.Calibration(**said)  # type: ignore[arg-type]


@pytest.mark.isa("avx2")
def test_values_without_a_range() -> None:
    given = feeds()
    given["x"][0, 0, 0, 0] = np.inf
    with pytest.raises(InvalidArguments, match=r"the value '.*' cannot have a range: it is not finite"):
        dnn.quantize(file(), given, "static", engine=engine())
