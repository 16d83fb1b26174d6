"""Gradients of graphs: against finite differences of the float64 definitions, operator by operator and of whole
networks."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.network.building import Symbol
from asmdnn.network.operators.evaluation import results_of
from tests.network.nets import engine, random

pytestmark = pytest.mark.isa("avx2")
STEP = 1e-6


def values_of(graph: dnn.Graph, feeds: dict[str, Any], wanted: str) -> Any:
    """A value of a graph by its operators' definitions in double precision."""
    known = {**{k: np.asarray(v, np.float64) if v.dtype == np.float32 else v for k, v in graph._constants.items()}}
    known |= {k: np.asarray(v, np.float64) if v.dtype == np.float32 else v for k, v in feeds.items()}
    for node in graph._nodes:
        inputs = [known[x] if x else None for x in node.inputs]
        known |= dict(zip(node.outputs, results_of(node, inputs), strict=False))
        if wanted in known:
            break
    return known[wanted]


def check(
    graph: dnn.Graph, loss: Any, feeds: dict[str, Any], names: list[str], tolerance: float = 2e-5, native: bool = True
) -> None:
    """Gradients of a network against central differences in double precision, in random directions."""
    symbols = {name: Symbol(graph, name) for name in names}
    found = graph.gradients(loss, wrt=list(symbols.values()))
    ends = {f"d {name}": d for name, d in zip(names, found, strict=True)}
    net = graph.compile(engine=engine(2), fallback="numpy", the_loss=loss, **ends)
    assert net.is_native == native
    net.check()
    results = net.run(feeds)
    rng = np.random.default_rng(7)
    for name in names:
        gradient = results[f"d {name}"]
        assert gradient.shape == feeds[name].shape
        for _ in range(3):
            direction = rng.standard_normal(feeds[name].shape)
            ends = []
            for sign in (1, -1):
                moved = {**feeds, name: feeds[name].astype(np.float64) + sign * STEP * direction}
                ends.append(float(np.ravel(values_of(graph, moved, loss.name))[0]))
            expected = (ends[0] - ends[1]) / (2 * STEP)
            scale = float(np.linalg.norm(gradient.astype(np.float64)) * np.linalg.norm(direction)) + 1e-3
            assert abs(float((gradient * direction).sum()) - expected) <= tolerance * scale, name


UNARY = (
    "Neg", "Exp", "Erf", "Sin", "Cos", "Tan", "Sinh", "Cosh", "Atan", "Asinh", "Relu", "Sigmoid", "Tanh",
    "Softplus", "Softsign", "HardSigmoid", "HardSwish", "Mish", "Elu", "Celu", "Selu", "LeakyRelu", "Shrink",
    "Abs", "Swish", "ThresholdedRelu", "Gelu", "Identity", "Floor", "Softmax", "LogSoftmax", "ReduceSum",
    "ReduceMean", "ReduceSumSquare", "ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceMax", "ReduceMin",
    "LpNormalization", "Flatten", "Transpose", "GlobalAveragePool", "GlobalMaxPool", "ReduceProd",
    "MeanVarianceNormalization",
)  # fmt: skip
POSITIVE = ("Sqrt", "Log", "Reciprocal", "ReduceLogSum", "Asin", "Acos", "Atanh")


def weighed(graph: dnn.Graph, y: Any, shape: tuple[int, ...]) -> Any:
    """One number of which every element of y has another share."""
    return graph.apply("ReduceSum", graph.apply("Mul", y, random(*shape)), keepdims=0)


@pytest.mark.parametrize("op", [*UNARY, *POSITIVE, "Acosh"])
def test_functions_of_one_operand(op: str) -> None:
    graph = dnn.Graph(op)
    shape = (2, 3, 4, 5)
    x = graph.input("x", shape)
    given = random(*shape)
    if op in POSITIVE:
        given = np.abs(given) * np.float32(0.1) + np.float32(0.2)
        given /= np.float32(max(1.0, 1.2 * given.max()))
    if op == "Acosh":
        given = np.abs(given) + np.float32(1.2)
    y = graph.apply(op, x)
    y = graph.apply("Mul", y, np.float32(1.3))
    loss = graph.apply("ReduceSum", graph.apply("Mul", y, graph.apply("Sin", graph.apply("Mul", y, 0.7))), keepdims=0)
    check(graph, loss, {"x": given}, ["x"])


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div", "Max", "Min", "Sum", "Mean", "PRelu"])
@pytest.mark.parametrize("other", [(2, 3, 4, 5), (1, 3, 1, 1), (5,), (1,)])
def test_broadcasting(op: str, other: tuple[int, ...]) -> None:
    graph = dnn.Graph(op)
    x, b = graph.input("x", (2, 3, 4, 5)), graph.input("b", other)
    y = graph.apply(op, x, b)
    given = {"x": random(2, 3, 4, 5), "b": np.abs(random(*other)) + np.float32(0.5)}
    check(graph, weighed(graph, y, (2, 3, 4, 5)), given, ["x", "b"])


def i64(*numbers: int) -> Any:
    return np.array(numbers, np.int64)


MOVES: dict[str, tuple[str, tuple[Any, ...], dict[str, Any]]] = {
    "reshape": ("Reshape", (i64(6, 20),), {}),
    "squeeze": ("Unsqueeze", (i64(1),), {}),
    "expand": ("Expand", (i64(3, 2, 3, 4, 5),), {}),
    "slice": ("Slice", (i64(1), i64(4), i64(2)), {}),
    "steps": ("Slice", (i64(0, -1), i64(4, -9), i64(2, 3), i64(2, -2)), {}),
    "pad": ("Pad", (i64(0, 1, 0, 2, 1, 0, 0, -1),), {}),
    "edges": ("Pad", (i64(0, 1, 2, 2, 1, 0, 0, 1),), {"mode": "edge"}),
    "edges cut off": ("Pad", (i64(0, -1, -3, 0, 3, -1, 2, -2),), {"mode": "edge"}),
    "tile": ("Tile", (i64(1, 2, 1, 3),), {}),
    "sum": ("CumSum", (i64(2),), {}),
    "clip": ("Clip", (-0.5, 0.5), {}),
    "square": ("Pow", (2.0,), {}),
    "cube": ("Pow", (3.0,), {}),
    "gather": ("Gather", (i64(1, 0, 1, -1),), {}),
    "means": ("AveragePool", (), {"kernel_shape": (2, 2), "strides": (2, 1), "pads": (1, 0, 0, 1)}),
    "means with padding": (
        "AveragePool", (), {"kernel_shape": (3, 2), "pads": (1, 1, 1, 1), "count_include_pad": 1}
    ),
    "maxima": ("MaxPool", (), {"kernel_shape": (2, 2), "strides": (2, 2)}),
    "maxima that overlap": ("MaxPool", (), {"kernel_shape": (3, 3), "strides": (2, 2), "pads": (1, 1, 1, 1)}),
    "rows": ("LayerNormalization", (random(4, 5), random(4, 5)), {"axis": 2}),
    "rms": ("RMSNormalization", (random(5),), {}),
    "elements": ("GatherElements", (np.array([[[[1, 4, 1], [0, 0, -1]]]], np.int64),), {"axis": 3}),
    "columns": ("Gather", (i64(1, 0, 1, -1, 3),), {"axis": 3}),
    "channels": ("Gather", (np.array([[1, 0], [2, 2]], np.int64),), {"axis": 1}),
    "groups": ("GroupNormalization", (random(3), random(3)), {"num_groups": 1}),
    "instances": ("InstanceNormalization", (random(3), random(3)), {}),
    "neighbours": ("LRN", (), {"size": 3, "alpha": 0.5, "beta": 0.7}),
    "nearest": ("Resize", (None, np.array([1, 1, 2, 2.5], np.float32)), {}),
    "linear": ("Resize", (None, np.array([1, 1, 2, 0.6], np.float32)), {"mode": "linear"}),
    "cubic": ("Resize", (None, None, i64(2, 3, 7, 5)), {"mode": "cubic"}),
    "mirrored": ("Pad", (i64(0, 1, 2, -1, 1, 0, 2, 3),), {"mode": "reflect"}),
    "shares": ("LpNormalization", (), {"p": 1, "axis": 2}),
    "remainder": ("Mod", (np.float32(0.7),), {"fmod": 1}),
    "statistics": ("BatchNormalization", (random(3), random(3), random(3), np.abs(random(3)) + 1), {}),
}  # fmt: skip


@pytest.mark.parametrize("name", MOVES)
def test_operators_with_attributes(name: str) -> None:
    op, operands, attributes = MOVES[name]
    graph = dnn.Graph(name)
    y = graph.apply(op, graph.input("x", (2, 3, 4, 5)), *operands, **attributes)
    loss = graph.apply("ReduceSum", graph.apply("Mul", y, graph.apply("Sin", y)), keepdims=0)
    check(graph, loss, {"x": random(2, 3, 4, 5)}, ["x"])


@pytest.mark.parametrize(
    ("bounds", "slopes"),
    [
        ((0.0, 6.0), (0, 0, 1, 0, 0)),  # as torch.nn.functional.relu6
        ((0.0,), (0, 0, 1, 1, 1)),  # as torch.relu
        ((-1.0, 6.0), (1, 1, 1, 1, 0)),  # as torch.clamp, the others too
        ((None, 0.0), (1, 1, 0, 0, 0)),
        ((0.0, 0.0), (0, 1, 0, 0, 0)),
    ],
)
def test_slopes_of_clip_at_bounds(bounds: tuple[Any, ...], slopes: tuple[int, ...]) -> None:
    graph = dnn.Graph("clip")
    x = graph.input("x", (5,))
    loss = graph.apply("ReduceSum", graph.apply("Clip", x, *bounds), keepdims=0)
    net = graph.compile(engine=engine(1), d=graph.gradients(loss, wrt=[x])[0])
    assert net(np.array([-0.5, 0, 3, 6, 7], np.float32)).tolist() == list(slopes)


WITH_ZEROS = random(3, 5, 4) * (np.arange(60).reshape(3, 5, 4) % 7 != 3)
SINGULAR = np.stack([random(3, 3), np.ones((3, 3), np.float32), np.zeros((3, 3), np.float32)])
CHOSEN: dict[str, tuple[str, Any, tuple[Any, ...], dict[str, Any]]] = {
    "some rows": ("Compress", random(3, 5, 4), (np.array([1, 0, 1, 1], bool),), {"axis": 1}),
    "some elements": ("Compress", random(3, 4), (np.array([0, 1, 1, 0, 1], bool),), {}),
    "powers": ("Pow", np.abs(random(3, 5, 4)) + np.float32(0.2), (random(4),), {}),
    "squares and ones": ("Pow", np.zeros((3, 4), np.float32), (np.array([2, 0, 1, 3], np.float32),), {}),
    "products": ("CumProd", random(3, 5, 4), (i64(1),), {}),
    "products with zeros": ("CumProd", WITH_ZEROS, (i64(1),), {}),
    "from behind": ("CumProd", WITH_ZEROS, (i64(1),), {"reverse": 1}),
    "without itself": ("CumProd", WITH_ZEROS, (i64(2),), {"exclusive": 1}),
    "of others behind": ("CumProd", WITH_ZEROS, (i64(1),), {"reverse": 1, "exclusive": 1}),
    "determinants": ("Det", random(2, 3, 4, 4), (), {}),
    "singular ones": ("Det", SINGULAR, (), {}),
    "one element": ("Det", random(3, 1, 1), (), {}),
}
BY_NUMPY: dict[str, tuple[str, Any, tuple[Any, ...], dict[str, Any]]] = {
    "periodic": ("Pad", random(3, 5, 4), (i64(1, 2, 0, 0, -1, 3),), {"mode": "wrap"}),
    "determinants of many rows": ("Det", random(2, 6, 6), (), {}),
    "an exponent of 0": ("Pow", np.zeros((3, 4), np.float32), (0.0,), {}),  # all of which is constant
}


@pytest.mark.parametrize("name", [*CHOSEN, *BY_NUMPY])
def test_of_one_operand_and_constants(name: str) -> None:
    """Some with fallback="numpy" around what is native."""
    op, given, operands, attributes = (CHOSEN | BY_NUMPY)[name]
    graph = dnn.Graph(name)
    y = graph.apply(op, graph.input("x", given.shape), *operands, **attributes)
    loss = graph.apply("ReduceSum", graph.apply("Mul", y, graph.apply("Sin", graph.apply("Add", y, 0.5))), keepdims=0)
    check(graph, loss, {"x": given}, ["x"], native=name in CHOSEN)


@pytest.mark.parametrize(("op", "native"), [("Mod", True), ("Pow", True)])
def test_second_operands(op: str, native: bool) -> None:
    graph, dims = dnn.Graph(op), {"x": (3, 5, 4), "b": (5, 1)}
    x, b = (graph.input(name, shape) for name, shape in dims.items())
    y = graph.apply(op, x, b, **({"fmod": 1} if op == "Mod" else {}))
    given = {name: np.abs(random(*shape)) + np.float32(0.6) for name, shape in dims.items()}
    check(graph, weighed(graph, y, (3, 5, 4)), given, ["x", "b"], native=native)


@pytest.mark.parametrize("dims", [(), (1,), (3,)], ids=str)
def test_scales_of_constant_integers(dims: tuple[int, ...]) -> None:
    """Of weights of bytes: one for all, or one for each column."""
    graph, stored = dnn.Graph("scales"), np.arange(12, dtype=np.int8).reshape(4, 3)
    x, s = graph.input("x", (5, 4)), graph.input("s", dims)
    zero = np.full(dims, 3, np.int8)
    y = x @ graph.apply("DequantizeLinear", stored, s, zero, axis=1)
    loss = graph.apply("ReduceSum", graph.apply("Sin", y), keepdims=0)
    given = {"x": random(5, 4), "s": np.abs(random(*dims, 1)).reshape(dims) / np.float32(8)}
    check(graph, loss, given, ["x", "s"])


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_through_other_floats(name: str) -> None:
    """A cast has the slope 1, as in torch."""
    code = {"float16": 10, "bfloat16": 16}[name]
    graph = dnn.Graph(name)
    x = graph.input("x", (4, 5))
    y = graph.apply("Cast", graph.apply("Cast", x, to=code), to=1)
    (dx,) = graph.gradients(graph.apply("ReduceSum", graph.apply("Sin", y), keepdims=0), [x])
    given = random(4, 5)
    results = graph.compile(engine=engine(1), fallback="numpy", y=y, dx=dx).run({"x": given})
    assert np.abs(results["y"] - given).max() < 0.01
    assert np.abs(results["dx"] - np.cos(results["y"].astype(np.float64))).max() < 1e-6
    inside = graph.apply("Cast", graph.apply("Relu", graph.apply("Cast", x, to=code)), to=1)
    with pytest.raises(dnn.Unimplemented, match=f"Relu '.*' computes in {name}, gradients are f32: cast its operands"):
        graph.gradients(graph.apply("ReduceSum", inside + x, keepdims=0), [x])


def test_norms_of_zeros() -> None:
    """0, as in torch."""
    graph = dnn.Graph("zeros")
    x = graph.input("x", (3, 4))
    y = graph.apply("ReduceL2", x, np.array([1]), keepdims=0)
    (dx,) = graph.gradients(graph.apply("ReduceSum", y, keepdims=0), [x])
    given = random(3, 4) * np.array([[1], [0], [1]], np.float32)
    found = graph.compile(engine=engine(1), dx=dx).run({"x": given})["dx"]
    assert not found[1].any() and np.allclose(np.linalg.norm(found, axis=1), (1, 0, 1))


def test_large_determinants() -> None:
    graph = dnn.Graph("large")
    x = graph.input("x", (33, 33))
    with pytest.raises(dnn.Unimplemented, match=r"^Det '.*' has no gradient: of 33x33 it takes all minors"):
        graph.gradients(graph.apply("Det", x), [x])


@pytest.mark.parametrize("rms", [False, True])
def test_scales_of_rows(rms: bool) -> None:
    graph = dnn.Graph("rows")
    x, scale, shift = graph.input("x", (6, 16)), graph.input("scale", (16,)), graph.input("shift", (16,))
    names = ["x", "scale"] if rms else ["x", "scale", "shift"]
    y = graph.apply("RMSNormalization", x, scale) if rms else graph.apply("LayerNormalization", x, scale, shift)
    given = {"x": random(6, 16), "scale": random(16), "shift": random(16)}
    check(graph, weighed(graph, y, (6, 16)), given, names)


CHANNELS: dict[str, dict[str, Any]] = {
    "InstanceNormalization": {}, "GroupNormalization": {"num_groups": 3},
    "BatchNormalization": {"training_mode": 1, "results": 3},
}  # fmt: skip


@pytest.mark.parametrize("op", CHANNELS)
def test_scales_of_channels(op: str) -> None:
    """With statistics of x, which the gradient goes through."""
    graph, dims = dnn.Graph(op), (3, 6, 4, 5)
    x, scale, shift = graph.input("x", dims), graph.input("scale", (6,)), graph.input("shift", (6,))
    running = [graph.input(name, (6,)) for name in ("mean", "variance")] if op == "BatchNormalization" else []
    y = graph.apply(op, x, scale, shift, *running, **CHANNELS[op])
    y = graph.apply("Relu", y[0] if running else y)
    given = {"x": random(*dims), "scale": random(6) + 1, "shift": random(6)}
    given |= {symbol.name: random(6) for symbol in running}
    check(graph, weighed(graph, y, dims), given, ["x", "scale", "shift"], 1e-4)


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("same", [False, True])
def test_attention(causal: int, same: bool) -> None:
    """Through what it is decomposed into; one tensor may be all three operands."""
    graph, dims = dnn.Graph("attention"), (2, 4, 6, 8)
    symbols = [graph.input(name, dims) for name in ("q" if same else "qkv")]
    y = graph.apply("Attention", *(symbols * 3)[:3], is_causal=causal)
    given = {symbol.name: 3 * random(*dims) for symbol in symbols}
    check(graph, weighed(graph, y, dims), given, [*given], 1e-4)


def test_pieces() -> None:
    graph = dnn.Graph("pieces")
    x, z = graph.input("x", (2, 6)), graph.input("z", (2, 3))
    a, b, _ = graph.apply("Split", x, i64(1, 3, 2), axis=1, results=3)
    y = graph.apply("Concat", graph.apply("Exp", b), z * a, axis=1)
    check(graph, weighed(graph, y, (2, 6)), {"x": random(2, 6), "z": random(2, 3)}, ["x", "z"])


def test_choices() -> None:
    graph = dnn.Graph("choices")
    x, z = graph.input("x", (4, 5)), graph.input("z", (4, 5))
    y = graph.apply("Where", graph.apply("Greater", x, z), x * z, z)
    check(graph, weighed(graph, y, (4, 5)), {"x": random(4, 5), "z": random(4, 5)}, ["x", "z"])


@pytest.mark.parametrize(
    "dims", [((6, 5), (5, 7)), ((2, 3, 6, 5), (5, 7)), ((2, 6, 5), (2, 5, 7)), ((2, 1, 6, 5), (3, 5, 4))]
)
def test_products(dims: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    graph = dnn.Graph("products")
    a, b = graph.input("a", dims[0]), graph.input("b", dims[1])
    y = a @ b
    loss = graph.apply("ReduceSum", graph.apply("Mul", y, graph.apply("Tanh", y)), keepdims=0)
    check(graph, loss, {"a": random(*dims[0]), "b": random(*dims[1])}, ["a", "b"])


@pytest.mark.parametrize("axis", [-1, 1])
def test_the_best_of_rows(axis: int) -> None:
    graph = dnn.Graph("best")
    x = graph.input("x", (3, 6, 5))
    y, _ = graph.apply("TopK", x, np.array([3]), results=2, axis=axis)
    loss = graph.apply("ReduceSum", graph.apply("Mul", y, graph.apply("Sin", y)), keepdims=0)
    check(graph, loss, {"x": random(3, 6, 5)}, ["x"])


TWICE = np.array([[1], [3], [1], [0]], np.int64)  # of several updates of a row the last one stays
SCATTERS: dict[str, tuple[str, Any, tuple[int, ...], dict[str, Any]]] = {
    "rows added": ("ScatterND", TWICE, (4, 3), {"reduction": "add"}),
    "rows": ("ScatterND", TWICE, (4, 3), {}),
    "elements added": ("ScatterElements", np.array([[0, 2, 2], [4, 0, 2]]), (2, 3), {"reduction": "add"}),
    "elements": ("ScatterElements", np.array([[0, 2, 2], [4, 0, 2]]), (2, 3), {}),
    "elements along": ("ScatterElements", np.array([[0, 2], [1, 1]]), (2, 2), {"axis": 1}),
}


@pytest.mark.parametrize("is_input", [False, True])
@pytest.mark.parametrize("name", SCATTERS)
def test_scatters(name: str, is_input: bool) -> None:
    op, indices, dims, how = SCATTERS[name]
    graph = dnn.Graph(name)
    x, updates = graph.input("x", (5, 3)), graph.input("u", dims)
    places = graph.input("i", indices.shape, np.int64) if is_input else indices.astype(np.int64)
    y = graph.apply(op, x, places, updates, **how)
    loss = graph.apply("ReduceSum", graph.apply("Mul", y, graph.apply("Sin", y)), keepdims=0)
    feeds = {"x": random(5, 3), "u": random(*dims), **({"i": indices.astype(np.int64)} if is_input else {})}
    check(graph, loss, feeds, ["x", "u"])


def test_scatters_that_choose_have_no_gradient() -> None:
    graph = dnn.Graph("largest")
    x = graph.input("x", (5, 3))
    y = graph.apply("ScatterND", x, TWICE, random(4, 3), reduction="max")
    with pytest.raises(dnn.Unimplemented, match=r"reduction 'max' has none.*: leave 'x' out of wrt"):
        graph.gradients(graph.apply("ReduceSum", y, keepdims=0), [x])


@pytest.mark.parametrize(
    ("equation", "dims"),
    [
        ("bij,bjk->bik", ((2, 3, 4), (2, 4, 5))),
        ("ij,jk,kl->il", ((2, 3), (3, 4), (4, 5))),
        ("ij,kl->i", ((2, 3), (4, 5))),
        ("...ij,...jk->...ik", ((2, 1, 4, 5), (3, 5, 6))),
        ("ii->i", ((3, 3),)),
        ("bii,bc->c", ((2, 3, 3), (2, 4))),
        ("ijk->kj", ((2, 3, 4),)),
        ("ij,ij->", ((3, 1), (3, 4))),
    ],
)
def test_einstein_sums(equation: str, dims: tuple[tuple[int, ...], ...]) -> None:
    graph = dnn.Graph("sums")
    names = [f"x{i}" for i in range(len(dims))]
    y = graph.apply("Einsum", *map(graph.input, names, dims), equation=equation)
    loss = graph.apply("ReduceSum", graph.apply("Mul", y, graph.apply("Sin", y)), keepdims=0)
    check(graph, loss, {name: random(*shape) for name, shape in zip(names, dims, strict=True)}, names)


@pytest.mark.parametrize("turned", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_gemm_of_data(turned: tuple[int, int]) -> None:
    graph = dnn.Graph("gemm")
    shapes = {"a": (5, 6) if turned[0] else (6, 5), "b": (7, 5) if turned[1] else (5, 7), "c": (7,)}
    symbols = [graph.input(name, shape) for name, shape in shapes.items()]
    y = graph.apply("Gemm", *symbols, transA=turned[0], transB=turned[1], alpha=0.5, beta=2.0)
    check(graph, weighed(graph, y, (6, 7)), {name: random(*shape) for name, shape in shapes.items()}, [*shapes])


IMAGE = (2, 6, 9, 8)
CONVOLUTIONS: dict[str, tuple[str, tuple[int, ...], dict[str, Any]]] = {
    "plain": ("Conv", (16, 6, 3, 3), {"pads": (1, 1, 1, 1)}),
    "strides": ("Conv", (5, 6, 3, 2), {"strides": (2, 3), "pads": (1, 0, 0, 1)}),
    "same": ("Conv", (5, 6, 3, 2), {"strides": (2, 1), "auto_pad": "SAME_UPPER"}),
    "dilations": ("Conv", (8, 6, 2, 2), {"dilations": (2, 3)}),
    "groups": ("Conv", (9, 2, 3, 3), {"group": 3}),
    "depthwise": ("Conv", (6, 1, 3, 3), {"group": 6, "pads": (1, 1, 1, 1)}),
    "points": ("Conv", (10, 6, 1, 1), {}),
    "transposed": ("ConvTranspose", (6, 5, 3, 3), {"strides": (2, 2), "output_padding": (1, 0)}),
    "transposed groups": ("ConvTranspose", (6, 4, 3, 3), {"group": 2, "pads": (1, 1, 1, 1)}),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions(name: str) -> None:
    op, shape, attributes = CONVOLUTIONS[name]
    graph = dnn.Graph(name)
    channels = shape[0] if op == "Conv" else shape[1] * attributes.get("group", 1)
    x, weights, bias = graph.input("x", IMAGE), graph.input("w", shape), graph.input("b", (channels,))
    y = graph.apply(op, x, weights, bias, **attributes)
    loss = graph.apply("ReduceMean", graph.apply("Mul", y, graph.apply("Sigmoid", y)), keepdims=0)
    check(graph, loss, {"x": random(*IMAGE), "w": random(*shape), "b": random(channels)}, ["x", "w", "b"])


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("ignored", [None, 2])
def test_losses_of_classes(reduction: str, ignored: int | None) -> None:
    graph = dnn.Graph("classes")
    x, target = graph.input("x", (6, 5)), graph.input("t", (6,), np.int64)
    more = {} if ignored is None else {"ignore_index": ignored}
    loss = graph.apply("SoftmaxCrossEntropyLoss", x, target, reduction=reduction, **more)
    check(graph, loss, {"x": random(6, 5), "t": i64(0, 2, 4, 1, 2, 3)}, ["x"])


def test_a_network_with_two_readers() -> None:
    """As a step has it: relu, pooling, a sum of branches, and a loss."""
    graph = dnn.Graph("branches")
    x, t = graph.input("x", (4, 2, 8, 8)), graph.input("t", (4,), np.int64)
    shapes = {"w": (8, 2, 3, 3), "v": (8, 8, 3, 3), "u": (128, 10), "b": (10,)}
    w, v, u, b = (graph.input(name, shape) for name, shape in shapes.items())
    h = graph.apply("Relu", graph.apply("Conv", x, w, pads=(1, 1, 1, 1)))
    h = graph.apply("Relu", graph.apply("Conv", h, v, pads=(1, 1, 1, 1)) + h)
    h = graph.apply("Flatten", graph.apply("MaxPool", h, kernel_shape=(2, 2), strides=(2, 2)))
    loss = graph.apply("SoftmaxCrossEntropyLoss", h @ u + b, t)
    feeds = {name: random(*shape) * np.float32(0.2) for name, shape in shapes.items()}
    check(graph, loss, {**feeds, "x": random(4, 2, 8, 8), "t": i64(3, 1, 9, 0)}, [*shapes], 1e-4)


def test_bad_input() -> None:
    graph = dnn.Graph("bad")
    x, t = graph.input("x", (4, 5)), graph.input("t", (4,), np.int64)
    other = graph.input("z", (4, 5))
    loss = graph.apply("ReduceMean", x, keepdims=0)
    for arguments, words in (
        ((x, [x]), "must be one number"),
        ((loss, [other]), "does not depend on"),
        ((loss, [t]), "only f32"),
        ((loss, [1.0]), r"wrt\[0\] must be a Symbol of this graph"),
        ((loss, 3), r"wrt\[0\] must be a Symbol of this graph"),
        ((None, [x]), "loss must be a Symbol of this graph"),
    ):
        with pytest.raises(dnn.InvalidArguments, match=words):
            graph.gradients(*arguments)
    soft = graph.apply("ReduceSum", graph.apply("Sin", graph.apply("Softmax", x)), keepdims=0)
    (dx,) = graph.gradients(soft, [x])
    with pytest.raises(dnn.Unimplemented, match="second derivatives end here"):
        graph.gradients(graph.apply("ReduceSum", dx, keepdims=0), [x])
    open_graph = dnn.Graph("open")
    y = open_graph.input("y", ("n", 3))
    with pytest.raises(dnn.InvalidArguments, match="say its dims"):
        open_graph.gradients(open_graph.apply("ReduceSum", y, keepdims=0), [y])


def test_second_derivatives() -> None:
    """Of functions whose gradients are written in operators."""
    graph = dnn.Graph("second")
    x = graph.input("x", (3, 4))
    (first,) = graph.gradients(graph.apply("ReduceSum", graph.apply("Tanh", x) * x, keepdims=0), [x])
    loss = graph.apply("ReduceSum", first * first, keepdims=0)
    check(graph, loss, {"x": random(3, 4)}, ["x"])


def test_bits_are_those_of_every_number_of_threads() -> None:
    found = []
    for threads in (1, 2, 3, 7):
        graph = dnn.Graph("threads")
        x, w = graph.input("x", (4, 8, 14, 14)), graph.input("w", (16, 8, 3, 3))
        y = graph.apply("Relu", graph.apply("Conv", x, w, pads=(1, 1, 1, 1)))
        dx, dw = graph.gradients(graph.apply("ReduceMean", y * y, keepdims=0), [x, w])
        net = graph.compile(engine=engine(threads), dx=dx, dw=dw)
        rng = np.random.default_rng(3)
        shapes = {"x": (4, 8, 14, 14), "w": (16, 8, 3, 3)}
        given = {name: rng.standard_normal(dims, np.float32) for name, dims in shapes.items()}
        found.append(net.run(given))
    for other in found[1:]:
        for name in ("dx", "dw"):
            assert np.array_equal(found[0][name], other[name])
