"""onnxruntime's operators: native, and equal to onnxruntime."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.errors import AsmdnnError
from tests.network.nets import engine, random

onnx = pytest.importorskip("onnx", reason="the networks extra: pip install onnx onnxruntime")
onnxruntime = pytest.importorskip("onnxruntime", reason="the networks extra: pip install onnx onnxruntime")
pytestmark = pytest.mark.isa("avx2")
DOMAIN = "com.microsoft"


def model_of(
    op: str, arrays: list[Any], results: int, constants: tuple[int, ...], domain: str, **attributes: Any
) -> Any:
    """A file of one node, and what it is fed; operands at the places `constants` are in the file."""
    from onnx import TensorProto, helper, numpy_helper

    names = ["" if x is None else f"x{i}" for i, x in enumerate(arrays)]
    outputs = [f"y{i}" for i in range(results)]
    node = helper.make_node(op, names, outputs, domain=domain, **attributes)
    kinds = {"f": TensorProto.FLOAT, "i": TensorProto.INT32}
    known = {f"x{i}": x for i, x in enumerate(arrays) if x is not None}
    fed = {name: x for name, x in known.items() if int(name[1:]) not in constants}
    inputs = [
        helper.make_tensor_value_info(
            name, TensorProto.INT64 if x.dtype == np.int64 else kinds[x.dtype.kind], list(x.shape)
        )
        for name, x in fed.items()
    ]
    second = TensorProto.INT32 if op == "EmbedLayerNormalization" else TensorProto.FLOAT
    made = [
        helper.make_tensor_value_info(name, second if i == 1 else TensorProto.FLOAT, None)
        for i, name in enumerate(outputs)
    ]
    data = [numpy_helper.from_array(x, name) for name, x in known.items() if name not in fed]
    graph = helper.make_graph([node], op, inputs, made, data)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString(), fed


def compare(data: bytes, feeds: dict[str, Any], atol: float = 3e-6) -> dnn.Network:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    net = dnn.load_onnx(data, engine=engine(2), shapes={name: x.shape for name, x in feeds.items()})
    net.check()
    found = net.run(feeds)
    for name, wanted in zip([x.name for x in session.get_outputs()], session.run(None, feeds), strict=True):
        np.testing.assert_allclose(found[name], wanted, rtol=1e-5, atol=atol, err_msg=name)
    return net


X, ROWS = random(2, 5, 24), random(2, 5, 24)
SCALES = [abs(random(24)) + 0.5, random(24), random(24)]
IMAGE, FILTERS = random(1, 4, 6, 7), [random(8, 4, 3, 3), random(8)]
BEHIND = ("transBatchA", "transBatchB")
WINDOW = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
FUSED: dict[str, tuple[str, list[Any], int, tuple[int, ...], dict[str, Any]]] = {
    "conv": ("FusedConv", [IMAGE, *FILTERS], 1, (1, 2), {**WINDOW, "activation": "Relu"}),
    "conv and sum": ("FusedConv", [IMAGE, *FILTERS, random(1, 8, 6, 7)], 1, (1, 2), {**WINDOW, "activation": "Relu"}),
    "conv with a slope": (
        "FusedConv", [IMAGE, FILTERS[0]], 1, (1,), {**WINDOW, "activation": "LeakyRelu", "activation_params": [0.2]},
    ),
    "conv clipped": (
        "FusedConv", [IMAGE, *FILTERS], 1, (1, 2), {**WINDOW, "activation": "Clip", "activation_params": [-0.1, 0.2]},
    ),
    "gemm": (
        "FusedGemm", [random(4, 9), random(5, 9), random(5)], 1, (1, 2),
        {"transB": 1, "alpha": 0.5, "activation": "LeakyRelu", "activation_alpha": 0.3},
    ),
    "product": ("FusedMatMul", [X, random(2, 7, 24)], 1, (), {"transB": 1, "alpha": 0.25}),
    "product of turned": ("FusedMatMul", [random(2, 24, 5), random(24, 7)], 1, (1,), {"transA": 1}),
    "batches after": ("FusedMatMul", [random(5, 2, 24), random(24, 2, 7)], 1, (), dict.fromkeys(BEHIND, 1)),
    "gelu": ("Gelu", [X], 1, (), {}),
    "gelu with bias": ("BiasGelu", [X, random(24)], 1, (1,), {}),
    "fast gelu": ("FastGelu", [X, random(24)], 1, (1,), {}),
    "fast gelu alone": ("FastGelu", [X], 1, (), {}),
    "quick gelu": ("QuickGelu", [X], 1, (), {"alpha": 1.3}),
    "upper triangle": ("Trilu", [X, np.array(2)], 1, (1,), {}),
    "lower triangle": ("Trilu", [X], 1, (), {"upper": 0}),
    "padded": ("Pad", [X, np.array([0, 1, 2, 0, 0, 1]), np.float32(3)], 1, (1, 2), {}),
    "mirrored": ("Pad", [X, np.array([0, 1, 2, 0, 0, 1])], 1, (1,), {"mode": "reflect"}),
    "grid": ("GridSample", [IMAGE, random(1, 4, 5, 2)], 1, (), {"mode": "bilinear", "padding_mode": "border"}),
    "skip": ("SkipLayerNormalization", [X, ROWS, *SCALES], 1, (2, 3, 4), {"epsilon": 1e-5}),
    "skip without shift": ("SkipLayerNormalization", [X, ROWS[:1], SCALES[0]], 1, (2,), {}),
    "skip, simplified": ("SkipSimplifiedLayerNormalization", [X, ROWS, SCALES[0], SCALES[1]], 1, (2, 3), {}),
}  # fmt: skip


@pytest.mark.parametrize("name", FUSED)
def test_fused(name: str) -> None:
    op, arrays, results, constants, attributes = FUSED[name]
    compare(*model_of(op, arrays, results, constants, DOMAIN, **attributes))


@pytest.mark.parametrize("op", ["NhwcConv", "NhwcFusedConv"])
def test_channels_last(op: str) -> None:
    """Those of onnxruntime's CPU kernels are of f16, so Conv is what it is compared with; no reorder is needed."""
    how = {**WINDOW, "strides": [2, 1]}
    data, _ = model_of(op, [np.ascontiguousarray(IMAGE.transpose(0, 2, 3, 1)), *FILTERS], 1, (1, 2), DOMAIN, **how)
    plain, feeds = model_of("Conv", [IMAGE, *FILTERS], 1, (1, 2), "", **how)
    wanted = onnxruntime.InferenceSession(plain).run(None, feeds)[0]
    net = dnn.load_onnx(data, engine=engine(2))
    found = net(np.ascontiguousarray(IMAGE.transpose(0, 2, 3, 1)))
    np.testing.assert_allclose(found.transpose(0, 3, 1, 2), wanted, rtol=1e-5, atol=3e-6)
    assert "0 of them reorders" in net.explain()


@pytest.mark.parametrize("kind", ["uint8", "int8"])
@pytest.mark.parametrize("how", [{"strides": [2, 2], "pads": [1, 1, 1, 1]}, {"strides": [2, 1], "ceil_mode": 1}])
def test_maxima_of_bytes_with_channels_last(kind: str, how: dict[str, Any]) -> None:
    from onnx import helper

    x = np.random.default_rng(3).integers(-99, 99, (2, 9, 8, 20)).astype(kind)
    code = helper.np_dtype_to_tensor_dtype(x.dtype)
    node = helper.make_node("NhwcMaxPool", ["x"], ["y"], domain=DOMAIN, kernel_shape=[3, 2], **how)
    values = [helper.make_tensor_value_info(name, code, dims) for name, dims in (("x", x.shape), ("y", None))]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)]
    graph = helper.make_graph([node], "g", values[:1], values[1:])
    whole = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    net = compare(whole.SerializeToString(), {"x": x}, atol=0)
    assert net.is_native and "0 of them reorders" in net.explain()


def test_the_sum_in_front_of_a_norm() -> None:
    data, feeds = model_of("SkipLayerNormalization", [X, ROWS, *SCALES], 4, (2, 3, 4), DOMAIN, epsilon=1e-5)
    found = dnn.load_onnx(data, engine=engine()).run(feeds)
    np.testing.assert_allclose(found["y3"], X + ROWS + SCALES[2], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found["y1"], found["y3"].mean(2, keepdims=True), rtol=1e-5, atol=1e-6)


def test_simplified_norm() -> None:
    compare(*model_of("SimplifiedLayerNormalization", [X, SCALES[0]], 1, (1,), "", epsilon=1e-5))


WEIGHTS = [random(24, 72), random(72)]
IDS = np.random.default_rng(1).integers(0, 2, (2, 5), np.int32)
LEFT = np.array([[1] * 7, [1] * 4 + [0] * 3], np.int32)
MASK = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 0]], np.int32)
PAST = random(2, 2, 4, 3, 6)
ROW = random(72)
KEYS = [random(2, 7, 24), random(2, 7, 24)]
ATTENTION: dict[str, tuple[str, list[Any], int, tuple[int, ...], dict[str, Any]]] = {
    "attention": ("Attention", [X, *WEIGHTS], 1, (1, 2), {}),
    "masked": ("Attention", [X, *WEIGHTS, MASK], 1, (1, 2), {}),
    "ends": ("Attention", [X, *WEIGHTS, np.array([3, 4], np.int32)], 1, (1, 2), {}),
    "ends and starts": ("Attention", [X, *WEIGHTS, np.array([4, 5, 1, 0], np.int32)], 1, (1, 2), {}),
    "a mask of rows": ("Attention", [X, *WEIGHTS, np.tril(np.ones((2, 5, 5), np.int32))], 1, (1, 2), {}),
    "causal": ("Attention", [X, *WEIGHTS], 1, (1, 2), {"unidirectional": 1, "scale": 0.3}),
    "added": ("Attention", [X, *WEIGHTS, None, None, random(2, 4, 5, 5)], 1, (1, 2), {}),
    "past": ("Attention", [X, *WEIGHTS, None, PAST], 2, (1, 2), {"unidirectional": 1}),
    "three": ("MultiHeadAttention", [X, *KEYS], 1, (), {}),
    "biased": ("MultiHeadAttention", [X, *KEYS, ROW], 1, (3,), {}),
    "keys masked": ("MultiHeadAttention", [X, *KEYS, None, LEFT], 1, (), {}),
    "scores added": ("MultiHeadAttention", [X, *KEYS, None, None, random(1, 4, 5, 7)], 1, (), {}),
    "heads": ("MultiHeadAttention", [X, random(2, 4, 7, 6), random(2, 4, 7, 6)], 1, (), {}),
    "with a past": (
        "MultiHeadAttention", [X, X * 2, ROWS, None, None, None, *PAST], 3, (), {"unidirectional": 1},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ATTENTION)
def test_attention(name: str) -> None:
    op, arrays, results, constants, attributes = ATTENTION[name]
    net = compare(*model_of(op, arrays, results, constants, DOMAIN, num_heads=4, **attributes))
    assert "attention" in net.explain()


def grouped_query(n: int, rows: int, past: int, is_packed: bool = False, **attributes: Any) -> tuple[bytes, Any]:
    """4 heads of 16 in 2 groups, after a past."""
    q, k, v = (random(n, rows, heads * 16) for heads in (4, 2, 2))
    own: list[Any] = [np.concatenate([q, k, v], 2), None, None] if is_packed else [q, k, v]
    pasts = [random(n, 2, past, 16) for _ in range(2)]
    ends = [np.full(n, past + rows - 1, np.int32), np.array([past + rows], np.int32)]
    tables = [random(16, 8), random(16, 8)] if "do_rotary" in attributes else []
    heads = {"num_heads": 4, "kv_num_heads": 2}
    return model_of("GroupQueryAttention", [*own, *pasts, *ends, *tables], 3, (), DOMAIN, **heads, **attributes)


@pytest.mark.parametrize(("n", "rows", "past"), [(2, 5, 0), (1, 5, 3), (3, 1, 7)])
@pytest.mark.parametrize(
    "attributes",
    [
        {}, {"do_rotary": 1}, {"do_rotary": 1, "rotary_interleaved": 1}, {"local_window_size": 3},
        {"softcap": 0.7, "scale": 0.3}, {"is_packed": True, "do_rotary": 1},
    ],
    ids=str,
)  # fmt: skip
def test_groups_of_heads(n: int, rows: int, past: int, attributes: dict[str, Any]) -> None:
    data, feeds = grouped_query(n, rows, past, **attributes)
    compare(data, feeds)


def test_sequences_of_different_lengths_in_groups_of_heads() -> None:
    """A prompt may be padded at its end; rows of the padding are nobody's."""
    data, feeds = grouped_query(2, 5, 0, do_rotary=1)
    feeds["x5"] = np.array([2, 4], np.int32)
    net, session = dnn.load_onnx(data, engine=engine(2)), onnxruntime.InferenceSession(data)
    found, wanted = net.run(feeds)["y0"], session.run(None, feeds)[0]
    np.testing.assert_allclose(found[0, :3], wanted[0, :3], rtol=1e-5, atol=3e-6)
    np.testing.assert_allclose(found[1], wanted[1], rtol=1e-5, atol=3e-6)
    for wrong in (5, -1):
        with pytest.raises(dnn.InvalidArguments, match="axis 1 of src has 5"):
            net.run({**feeds, "x5": np.array([2, wrong], np.int32)})
    data, feeds = grouped_query(2, 1, 3)
    net = dnn.load_onnx(data, engine=engine(2))
    for wrong in (0, 2, 4, -1):  # new keys belong into the middle of the past, or there are more than it has
        with pytest.raises(dnn.InvalidArguments, match="axis 2 of src has 4: use 3 to 3"):
            net.run({**feeds, "x5": np.array([3, wrong], np.int32)})


@pytest.mark.parametrize("near", [0, 1])
def test_rotary_embedding(near: int) -> None:
    places = np.array([[0, 3, 4, 4, 11], [1, 2, 3, 4, 5]], np.int64)
    tables = [random(12, 3), random(12, 3)]
    compare(*model_of("RotaryEmbedding", [X, places, *tables], 1, (2, 3), DOMAIN, interleaved=near))


def test_embeddings() -> None:
    ids = np.random.default_rng(1).integers(0, 9, (2, 5), np.int32)
    tables = [random(9, 24), random(6, 24), random(2, 24)]
    arrays = [ids, IDS, *tables, *SCALES[:2]]
    compare(*model_of("EmbedLayerNormalization", arrays, 2, tuple(range(2, 7)), DOMAIN, epsilon=1e-5))


def test_texts_as_inputs() -> None:
    """An intact file, of which a part is not read."""
    from onnx import TensorProto, helper

    keys = {"keys_strings": ["a", "b"], "values_floats": [1.0, 2.0]}
    node = helper.make_node("LabelEncoder", ["x"], ["y"], domain="ai.onnx.ml", **keys)
    given = helper.make_tensor_value_info("x", TensorProto.STRING, [3])
    made = helper.make_tensor_value_info("y", TensorProto.FLOAT, [3])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 2)]
    model = helper.make_model(helper.make_graph([node], "g", [given], [made]), opset_imports=opsets)
    with pytest.raises(dnn.Unimplemented, match="the model is not read: input 'x' has elements of type string"):
        dnn.load_onnx(model.SerializeToString(), engine=engine())


def test_junk() -> None:
    """One sentence that names the node."""
    cases: list[tuple[str, list[Any], dict[str, Any]]] = [
        ("Attention", [X, *WEIGHTS], {}),
        ("Attention", [X, *WEIGHTS], {"num_heads": 5}),
        ("Attention", [X, WEIGHTS[0][:5]], {"num_heads": 4}),
        ("Attention", [X, *WEIGHTS, np.ones((3, 3, 3, 3), np.int32)], {"num_heads": 4}),
        ("Attention", [X, *WEIGHTS], {"num_heads": 4, "do_rotary": 1}),
        ("Attention", [X, *WEIGHTS], {"num_heads": 4, "colour": 1}),
        ("FusedConv", [IMAGE, *FILTERS], {**WINDOW, "activation": "Sine"}),
        ("FusedMatMul", [X, X], {}),
        ("Gelu", [X, X], {}),
        ("FastGelu", [X.astype(np.int32)], {}),
        ("SkipLayerNormalization", [X, random(3), SCALES[0]], {}),
        ("EmbedLayerNormalization", [IDS, IDS, X], {}),
        ("GroupQueryAttention", [X, X, X, None, None, *[np.array([4], np.int32)] * 2], {"num_heads": 4}),
        (
            "GroupQueryAttention", [X, X, X, None, None, *[np.array([4], np.int32)] * 2],
            {"num_heads": 4, "kv_num_heads": 3},
        ),
        (
            "GroupQueryAttention", [X, X, None, None, None, *[np.array([4], np.int32)] * 2],
            {"num_heads": 4, "kv_num_heads": 2},
        ),
        (
            "GroupQueryAttention", [X, X, X, None, None, *[np.array([4], np.int32)] * 2],
            {"num_heads": 4, "kv_num_heads": 4, "do_rotary": 1},
        ),
        ("NoSuchOperator", [X], {}),
    ]
    for op, arrays, attributes in cases:
        data, _ = model_of(op, arrays, 1, (), DOMAIN, **attributes)
        with pytest.raises(AsmdnnError) as error:
            dnn.load_onnx(data, engine=engine())
        assert f"{op} 'y0" in str(error.value)
        assert "\n" not in str(error.value)
