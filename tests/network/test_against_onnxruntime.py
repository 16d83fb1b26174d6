"""Networks of one random node against onnxruntime: values, dims and types, whoever computes them."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from tests.network.nets import engine
from tests.network.random_nodes import RandomNode, random_node

onnx = pytest.importorskip("onnx", reason="the networks extra: pip install onnx onnxruntime")
runtime = pytest.importorskip("onnxruntime", reason="the networks extra: pip install onnx onnxruntime")

QUICK, ALL = range(200), range(200, 4000)
LEAST = 1e-12


def modelled(node: RandomNode, coin: Any) -> tuple[bytes, dict[str, np.ndarray]]:
    """A file with the node, and what its inputs are fed."""
    helper, feeds, constants, names = onnx.helper, dict[str, np.ndarray](), [], []
    for i, operand in enumerate(node.operands):
        names.append("" if operand is None else f"x{i}")
        if operand is None:
            continue
        array = np.asarray(operand)
        if i in node.constants or (i and coin()):
            constants.append(onnx.numpy_helper.from_array(array, names[-1]))
        else:
            feeds[names[-1]] = array
    types = {name: helper.np_dtype_to_tensor_dtype(array.dtype) for name, array in feeds.items()}
    inputs = [helper.make_tensor_value_info(name, types[name], array.shape) for name, array in feeds.items()]
    outputs = [f"y{i}" for i in range(node.outputs)]
    made = helper.make_node(node.op, names, outputs, **node.attributes)
    graph = helper.make_graph([made], "g", inputs, [onnx.ValueInfoProto(name=name) for name in outputs], constants)
    opset = helper.make_opsetid("", node.opset)
    return helper.make_model(graph, opset_imports=[opset], ir_version=8).SerializeToString(), feeds


def answers(model: bytes, feeds: dict[str, np.ndarray]) -> list[np.ndarray] | None:
    """onnxruntime's, unoptimised; None where it has no kernel for a type."""
    options = runtime.SessionOptions()
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    try:
        session = runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except runtime.capi.onnxruntime_pybind11_state.NotImplemented:
        return None
    return list(session.run(None, feeds))


def check(seed: int, isa: str) -> bool:
    node, coin = random_node(seed)
    model, feeds = modelled(node, coin)
    wanted = answers(model, feeds)
    if wanted is None:
        return False
    found = dnn.load_onnx(model, engine=engine(1, isa), fallback="numpy").run(feeds)
    for made, answer in zip(found.values(), wanted, strict=True):
        assert (made.dtype, made.shape) == (answer.dtype, answer.shape), node
        if answer.dtype.kind == "f":
            most = max(1.0, abs(answer[np.isfinite(answer)]).max(initial=0))
            tolerance = node.slack * np.finfo(answer.dtype).eps * most
            np.testing.assert_allclose(made, answer, rtol=0, atol=tolerance, err_msg=str(node))
        else:
            np.testing.assert_array_equal(made, answer, err_msg=str(node))
    return True


@pytest.mark.parametrize("isa", [pytest.param(isa, marks=pytest.mark.isa(isa)) for isa in ("avx2", "avx512_core")])
def test_random_nodes(isa: str) -> None:
    assert sum(check(seed, isa) for seed in QUICK) > 0.9 * len(QUICK)


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"])
@pytest.mark.parametrize("counts", [0, 1])
@pytest.mark.isa("avx2")
def test_means_of_padding_by_words(auto_pad: str, counts: int) -> None:
    """What a word pads counts as what numbers pad."""
    x = np.random.default_rng(0).standard_normal((2, 5, 8, 7)).astype(np.float32)
    pads = {"pads": (1, 0, 0, 2)} if auto_pad == "NOTSET" else {}
    known = {"kernel_shape": (3, 3), "strides": (1, 2), "auto_pad": auto_pad, "count_include_pad": counts, **pads}
    model, feeds = modelled(RandomNode("AveragePool", [x], known, 19), bool)
    net = dnn.load_onnx(model, engine=engine(1, "avx2"))
    (wanted,) = answers(model, feeds) or ()
    np.testing.assert_allclose(net.run(feeds)["y0"], wanted, rtol=0, atol=1e-5)


@pytest.mark.isa("avx2")
def test_nearest_before_its_rounding_was_an_attribute() -> None:
    """Operator set 10 does not say what the nearest element is: onnxruntime goes up where an axis shrinks."""
    x = np.arange(1, 9, dtype=np.float32).reshape(1, 1, 2, 4)
    operands = [x, np.float32([1, 1, 2, 0.6])]
    model, feeds = modelled(RandomNode("Resize", operands, {"mode": "nearest"}, 10, constants=(1,)), bool)
    (wanted,) = answers(model, feeds) or ()
    made = dnn.load_onnx(model, engine=engine(1, "avx2"), fallback="numpy").run(feeds)["y0"]
    np.testing.assert_array_equal(made, wanted)
    assert made[0, 0, 0].tolist() == [1, 3]


@pytest.mark.isa("avx2")
def test_bytes_are_cut_off() -> None:
    """Between elements, natively and of constants."""
    x = np.random.default_rng(0).integers(0, 255, (1, 2, 4, 4)).astype(np.uint8)
    node = RandomNode("Resize", [x, None, np.float32([1, 1, 2, 2])], {"mode": "linear"}, 19, constants=(2,))
    for constants in ((2,), (0, 2)):
        node.constants = constants
        model, feeds = modelled(node, bool)
        (wanted,) = answers(model, feeds) or ()
        made = dnn.load_onnx(model, engine=engine(1, "avx2")).run(feeds)["y0"]
        np.testing.assert_array_equal(made, wanted)


CROP = {"mode": "linear", "coordinate_transformation_mode": "tf_crop_and_resize"}


@pytest.mark.parametrize("roi", [None, np.zeros(3), np.full(8, np.nan)], ids=["none", "short", "no number"])
@pytest.mark.parametrize("is_known", [True, False])
def test_regions_that_are_none(roi: Any, is_known: bool) -> None:
    graph = dnn.Graph()
    x = graph.input("x", (1, 1, 4, 4))
    region = roi if roi is None else np.float32(roi)
    given = region if is_known or roi is None else graph.input("roi", region.shape)
    feeds = {"x": np.ones((1, 1, 4, 4), np.float32)} | ({} if given is region else {"roi": region})
    with pytest.raises(dnn.InvalidArguments, match="roi must have two finite numbers for each of 4 axes"):
        y = graph.apply("Resize", x, given, np.float32([1, 1, 2, 2]), **CROP)
        graph.compile(y=y, engine=engine(), fallback="numpy").run(feeds)


def test_a_filter_of_nothing() -> None:
    """A factor of almost 0 leaves no element, and a filter that reaches over 10^9 of them is not made."""
    graph = dnn.Graph()
    x, factors = graph.input("x", (1, 1, 4, 4)), np.float32([1, 1, 1e-9, 1])
    y = graph.apply("Resize", x, None, factors, mode="linear", antialias=1)
    net = graph.compile(y=y, engine=engine(), fallback="numpy")
    assert net.run({"x": np.ones((1, 1, 4, 4), np.float32)})["y"].shape == (1, 1, 0, 4)


@pytest.mark.slow
@pytest.mark.isa("avx2")
def test_more_random_nodes(sweep: Any) -> None:
    seeds = sweep(ALL, 5)
    assert sum(check(seed, "avx2") for seed in seeds) > 0.9 * len(seeds)
