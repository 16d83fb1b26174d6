"""Operators that have primitives: values, and which implementation computes them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from tests.network.nets import compiled, engine, implementations, random
from tests.network.test_network import check_values

Make = Callable[[dnn.Graph, Any], Any]


def built(make: Make, dims: tuple[int, ...], isa: str = "avx2") -> dnn.Network:
    """A network of one input, and of no node in numpy."""
    g = dnn.Graph()
    made = make(g, g.input("x", dims))
    outputs = made if isinstance(made, tuple) else (made,)
    return g.compile(engine=engine(isa=isa), **{f"y{i}": symbol for i, symbol in enumerate(outputs)})


def descriptions(net: dnn.Network) -> list[str]:
    """By their classes."""
    segment = compiled(net)
    return [type(step.pd.desc).__name__ for step in segment.steps if not step.is_reorder]


def stem(g: dnn.Graph, x: Any) -> Any:
    """Something blocked."""
    return g.apply("Conv", x, random(16, 3, 3, 3), pads=(1, 1, 1, 1))


WINDOWS: list[tuple[str, Make]] = [
    ("max", lambda g, x: g.apply("MaxPool", stem(g, x), kernel_shape=(3, 3), strides=(2, 2), pads=(1, 1, 1, 1))),
    ("max", lambda g, x: g.apply("MaxPool", x, kernel_shape=(3, 2), strides=(2, 1), ceil_mode=1)),
    ("max", lambda g, x: g.apply("MaxPool", x, kernel_shape=(3, 3), auto_pad="SAME_UPPER", dilations=(2, 2))),
    ("mean", lambda g, x: g.apply("AveragePool", stem(g, x), kernel_shape=(3, 3), pads=(1, 1, 0, 1))),
    ("mean", lambda g, x: g.apply("AveragePool", x, kernel_shape=(2, 2), pads=(1, 1, 1, 1), count_include_pad=1)),
    ("mean", lambda g, x: g.apply("GlobalAveragePool", stem(g, x))),
    ("mean", lambda g, x: g.apply("GlobalAveragePool", x) * 2.0 + 1.0),
    ("max", lambda g, x: g.apply("GlobalMaxPool", stem(g, x))),
    ("relu", lambda g, x: g.apply("Relu", g.apply("AveragePool", stem(g, x), kernel_shape=(3, 3)))),
    ("lrn", lambda g, x: g.apply("LRN", stem(g, x), size=5, alpha=0.5, bias=2.0)),
    ("grouped", lambda g, x: g.apply("Conv", stem(g, x), random(16, 1, 3, 3), random(16), group=16, pads=(1, 1, 1, 1))),
    ("groups", lambda g, x: g.apply("Conv", stem(g, x), random(32, 4, 1, 1), group=4)),
]


@pytest.mark.isa("avx2")
@pytest.mark.isa("avx2")
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(("op", "gates"), [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
def test_recurrent_layers_of_other_layouts_and_lengths(op: str, gates: int, direction: str) -> None:
    """Sequences that end before the others, and sequences in front of steps."""
    for more, dims in (
        ({"lengths": np.array([4, 2], np.int32)}, (4, 2, 6)),
        ({"layout": 1}, (2, 4, 6)),
        ({"layout": 1, "lengths": np.array([1, 3], np.int32)}, (2, 4, 6)),
    ):
        net = built(recurrent(op, gates, direction, **more), dims)
        net.check()
        check_values(net, {"x": random(*dims)})


@pytest.mark.isa("avx2")
def test_functions_of_recurrent_layers() -> None:
    """A vanilla RNN has three, and relu with a slope; what no kernel has is refused by name."""
    two = {"direction": "bidirectional", "activations": ["LeakyRelu", "LeakyRelu"], "activation_alpha": [0.25, 0.25]}
    for more in ({"direction": "forward", "activations": ["Sigmoid"]}, two):
        net = built(recurrent("RNN", 1, **more), (4, 2, 6))
        check_values(net, {"x": random(4, 2, 6)})
    for op, gates, activations, clip, message in (
        ("RNN", 1, ["Tanh", "Relu"], 0.0, "activations tanh, relu have no kernel, tanh, tanh have"),
        ("GRU", 3, ["HardSigmoid", "Tanh"] * 2, 0.0, "activations hardsigmoid, tanh, hardsigmoid, tanh have no kernel"),
        ("LSTM", 4, ["Sigmoid", "Tanh", "Tanh"] * 2, 1.5, "clip=1.5 has no kernel"),
    ):
        with pytest.raises(dnn.Unimplemented, match=message):
            built(recurrent(op, gates, "bidirectional", activations=activations, clip=clip), (4, 2, 6))


@pytest.mark.parametrize("make", [make for _, make in WINDOWS], ids=[name for name, _ in WINDOWS])
def test_windows(make: Make) -> None:
    net = built(make, (2, 3, 9, 8))
    net.check()
    check_values(net, {"x": random(2, 3, 9, 8)})


ROWS: list[tuple[list[str], Make]] = [
    (["SoftmaxForward"], lambda g, x: g.apply("Softmax", x)),
    (["SoftmaxForward"], lambda g, x: g.apply("LogSoftmax", x, axis=1)),
    (["LayerNormForward"], lambda g, x: g.apply("LayerNormalization", x, random(12), random(12))),
    (["LayerNormForward"], lambda g, x: g.apply("LayerNormalization", x, random(5, 12), axis=1)),
    (["LayerNormForward"], lambda g, x: g.apply("RMSNormalization", x, random(12))),
    (["CumulativeSum"], lambda g, x: g.apply("CumSum", x, np.array(1), exclusive=1)),
    (["CumulativeSum"], lambda g, x: g.apply("CumSum", x, np.array(-1), reverse=1)),
    (["CumulativeProduct"], lambda g, x: g.apply("CumProd", x, np.array(2))),
    (["CumulativeProduct"], lambda g, x: g.apply("CumProd", x, np.array(1), exclusive=1, reverse=1)),
    (["ReductionForward"], lambda g, x: g.apply("ReduceMean", x, np.array([-1]))),
    (["ReductionForward"], lambda g, x: g.apply("ReduceSum", x, np.array([0, 2]), keepdims=0)),
    (["ReductionForward"], lambda g, x: g.apply("ReduceMax", x, keepdims=0)),
    (["ReductionForward"], lambda g, x: g.apply("ReduceL1", x, np.array([1]))),
    (["ReductionForward"], lambda g, x: g.apply("ReduceL2", x, np.array([1]))),
    (["ReductionForward"], lambda g, x: g.apply("ReduceLogSumExp", x, np.array([2]))),
]


@pytest.mark.isa("avx2")
@pytest.mark.parametrize(("wanted", "make"), ROWS)
def test_rows(wanted: list[str], make: Make) -> None:
    net = built(make, (2, 5, 12))
    net.check()
    assert descriptions(net) == wanted
    check_values(net, {"x": random(2, 5, 12)})


ORDERS: list[Make] = [
    lambda g, x: g.apply("ArgMax", x, axis=1),
    lambda g, x: g.apply("ArgMin", x, axis=-1, keepdims=0, select_last_index=1),
    lambda g, x: g.apply("TopK", x, np.array([3]), results=2, axis=1)[0],
    lambda g, x: g.apply("TopK", g.apply("Relu", x), np.array([4]), results=2, largest=0)[1],
]


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("make", ORDERS)
def test_orders(make: Make, tmp_path: Path) -> None:
    """Positions are int64 for the caller: of a network as it is, of one from a file; they are not bound."""
    net, x = built(make, (2, 5, 12)), random(2, 5, 12)
    x[0, 1, 2], x[1, :, 3] = x[0, 1, 5], x[1, 0, 3]
    net.check()
    assert "TopKForward" in descriptions(net)
    check_values(net, {"x": x})
    ((name, (dims, dtype)),) = net.outputs.items()
    net.save(tmp_path / "net")
    found, (wanted,) = dnn.load_pack(tmp_path / "net").run({"x": x})[name], net.run({"x": x}).values()
    assert found.dtype == dtype and found.shape == dims and np.array_equal(found, wanted)
    if dtype == np.int64:
        with pytest.raises(dnn.InvalidArguments, match="int64, which kernels read and write as f32: use run"):
            net.bind(**{"x": x, name: np.empty(dims, dtype)})


@pytest.mark.isa("avx2")
def test_positions_become_numbers() -> None:
    def make(g: dnn.Graph, x: Any) -> Any:
        return g.apply("Sqrt", g.apply("Cast", g.apply("ArgMax", x, axis=1), to=1))

    check_values(built(make, (2, 5, 12)), {"x": random(2, 5, 12)})


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("op", ["BitwiseNot", "Neg"])
def test_positions_go_on(op: str) -> None:
    """In numpy where nothing else does."""

    def make(g: dnn.Graph, x: Any) -> Any:
        return g.apply(op, g.apply("Cast", g.apply("ArgMax", g.apply("Relu", x), axis=1), to=6))

    if op == "Neg":
        check_values(built(make, (2, 5, 12)), {"x": random(2, 5, 12)})
        return
    with pytest.raises(dnn.Unimplemented, match="BitwiseNot"):
        built(make, (2, 5, 12))
    g = dnn.Graph()
    net = g.compile(engine=engine(), fallback="numpy", y=make(g, g.input("x", (2, 5, 12))))
    check_values(net, {"x": random(2, 5, 12)})


def recurrent(op: str, gates: int, direction: str, lengths: Any = None, **attributes: Any) -> Make:
    d = 2 if direction == "bidirectional" else 1
    state = (2, d, 8) if attributes.get("layout") else (d, 2, 8)

    def make(g: dnn.Graph, x: Any) -> Any:
        count = 3 if op == "LSTM" else 2
        weights = (random(d, gates * 8, 6), random(d, gates * 8, 8), random(d, 2 * gates * 8))
        results = g.apply(
            op,
            x,
            *weights,
            lengths,
            random(*state),
            *[random(*state)] * (op == "LSTM"),
            results=count,
            direction=direction,
            hidden_size=8,
            **attributes,
        )
        return tuple(result * 1.0 for result in results)

    return make


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(
    ("op", "gates", "attributes"),
    [("LSTM", 4, {}), ("GRU", 3, {}), ("GRU", 3, {"linear_before_reset": 1}), ("RNN", 1, {})],
)
def test_recurrent_layers(op: str, gates: int, attributes: dict[str, Any], direction: str) -> None:
    net = built(recurrent(op, gates, direction, **attributes), (4, 2, 6))
    net.check()
    check_values(net, {"x": random(4, 2, 6)})


@pytest.mark.parametrize("make", [make for _, make in WINDOWS], ids=[name for name, _ in WINDOWS])
def test_windows_of_the_other_level(make: Make) -> None:
    net = built(make, (2, 3, 9, 8), "avx512_core")
    net.check()


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("images", [1, 2])
@pytest.mark.parametrize("channels", [(16, 24), (16, 12), (12, 16)])
def test_concatenated_branches(images: int, channels: tuple[int, int]) -> None:
    """Of one image, branches write where they belong; of several, or where blocks would be cut, they are copied."""

    def make(g: dnn.Graph, x: Any) -> Any:
        one, two = (g.apply("Relu", g.apply("Conv", x, random(c, 3, 1, 1))) for c in channels)
        both = g.apply("Concat", one, two, axis=1)
        more = g.apply("Concat", both, g.apply("Conv", one, random(8, channels[0], 1, 1)), axis=1)
        return g.apply("Conv", more, random(8, sum(channels) + 8, 1, 1)), two

    net = built(make, (images, 3, 6, 7))
    net.check()
    segment = compiled(net)
    inner = [step for step in segment.steps if step.is_reorder and not step.buffers["dst"].startswith("result ")]
    assert bool(inner) == (images > 1 or channels != (16, 24))
    check_values(net, {"x": random(images, 3, 6, 7)})


MOVES: list[Make] = [
    lambda g, x: g.apply("ConvTranspose", x, random(3, 8, 2, 2), random(8), strides=(2, 2)),
    lambda g, x: g.apply("Relu", g.apply("ConvTranspose", stem(g, x), random(16, 4, 3, 3), pads=(1, 0, 1, 0))),
    lambda g, x: g.apply(
        "ConvTranspose", stem(g, x), random(16, 2, 3, 3), strides=(2, 2), output_padding=(1, 0), group=2
    ),
    lambda g, x: g.apply("Pad", x, np.array([0, 0, 1, 2, 0, 1, 0, 3])),
    lambda g, x: g.apply("Pad", x, np.array([0, 0, -1, 2, 0, 0, 2, -3]), 0.5),
    lambda g, x: g.apply("Pad", x, np.array([1, 2, 2, 1]), None, np.array([-1, 2]), mode="reflect"),
    lambda g, x: g.apply("Pad", x, np.array([0, 0, 1, 2, 0, 1, 0, 3]), mode="edge"),
    lambda g, x: g.apply("Gather", x, np.array(1), axis=1) * 2.0,
    lambda g, x: g.apply("Gather", x, np.array([1, 3, 5]), axis=2) + 1.0,
    lambda g, x: g.apply("Gather", x, np.array([-1])),
    lambda g, x: g.apply(
        "Resize",
        stem(g, x),
        None,
        np.float32([1, 1, 2, 2]),
        mode="nearest",
        nearest_mode="floor",
        coordinate_transformation_mode="asymmetric",
    ),
    lambda g, x: g.apply("Resize", stem(g, x), None, None, np.array([2, 16, 5, 17]), mode="linear"),
    lambda g, x: g.apply(
        "Resize", x, None, None, np.array([2, 3, 18, 4]), mode="linear", coordinate_transformation_mode="align_corners"
    ),
    lambda g, x: g.apply("Resize", x, None, np.float32([1, 1, 1.5, 0.6])),
]


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("number", range(len(MOVES)))
def test_moves(number: int) -> None:
    net = built(MOVES[number], (2, 3, 9, 8))
    net.check()
    check_values(net, {"x": random(2, 3, 9, 8)})


def erf_spelt(g: dnn.Graph, x: Any, half: bool) -> Any:
    """Gelu in two orders of its factors."""
    bell = g.apply("Erf", x / float(np.sqrt(2))) + 1.0
    return (0.5 * x) * bell if half else (x * bell) * 0.5


def tanh_spelt(g: dnn.Graph, x: Any, cube: bool) -> Any:
    """Gelu by tanh with x^3 as a power or as products."""
    third = g.apply("Pow", x, 3.0) if cube else x * x * x
    bell = g.apply("Tanh", (x + third * 0.044715) * float(np.sqrt(2 / np.pi)))
    return (0.5 * x) * (bell + 1.0) if cube else x * ((bell + 1.0) * 0.5)


def norm_spelt(g: dnn.Graph, x: Any) -> Any:
    """Layer normalisation with scale and shift."""
    d = x - g.apply("ReduceMean", x, np.array([-1]))
    v = g.apply("ReduceMean", g.apply("Pow", d, 2.0), np.array([-1]))
    return d / g.apply("Sqrt", v + 1e-5) * random(12) + random(12)


@pytest.mark.isa("avx2")
@pytest.mark.parametrize(
    ("make", "wanted"),
    [
        (lambda g, x: erf_spelt(g, x, True), ["eltwise"]),
        (lambda g, x: erf_spelt(g, x, False), ["eltwise"]),
        (lambda g, x: erf_spelt(g, x @ random(12, 12), False), ["tiles"]),
        (lambda g, x: tanh_spelt(g, x, True), ["eltwise"]),
        (lambda g, x: tanh_spelt(g, x @ random(12, 12), False), ["tiles"]),
        (norm_spelt, ["layer_norm"]),
    ],
)
def test_spellings_are_recognised(make: Make, wanted: list[str]) -> None:
    net = built(make, (2, 5, 12))
    net.check()
    assert implementations(net) == wanted
    assert wanted == ["layer_norm"] or "Gelu" in net.explain()
    check_values(net, {"x": random(2, 5, 12)})


@pytest.mark.isa("avx2")
def test_what_is_nearly_gelu_is_not() -> None:
    net = built(lambda g, x: (x * (g.apply("Erf", x / 1.4) + 1.0)) * 0.5, (2, 5, 12))
    assert "Erf" in net.explain()
    check_values(net, {"x": random(2, 5, 12)})
    net = built(lambda g, x: (x * (g.apply("Tanh", (x + x * x * x * 0.04) * 0.8) + 1.0)) * 0.5, (2, 5, 12))
    assert "Tanh" in net.explain()
    check_values(net, {"x": random(2, 5, 12)})


def compared(g: dnn.Graph, x: Any) -> Any:
    """Every comparison, chosen by in the kernel that makes them; two of them join in one group."""
    z = g.apply("Sin", x * 9.0)
    both = g.apply("And", g.apply("Less", x, z), g.apply("Not", g.apply("GreaterOrEqual", z, 0.1)))
    either = g.apply("Xor", both, g.apply("Equal", g.apply("Greater", x, 0.0), g.apply("LessOrEqual", x, z)))
    return g.apply("Where", g.apply("Or", either, g.apply("IsNaN", x)), g.apply("Cos", z), g.apply("Sign", x))


@pytest.mark.isa("avx2")
def test_logic_stays_in_a_kernel() -> None:
    net = built(compared, (2, 5, 12))
    net.check()
    assert set(implementations(net)) == {"eltwise"}
    check_values(net, {"x": random(2, 5, 12)})


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("fmod", [0, 1])
def test_remainders(fmod: int) -> None:
    net = built(lambda g, x: g.apply("Mod", g.apply("Round", x * 40.0), 3.0, fmod=fmod), (2, 5, 12))
    check_values(net, {"x": random(2, 5, 12)})


@pytest.mark.isa("avx2")
def test_truths_from_outside() -> None:
    """An input and a constant of bools choose; neither such an input can be bound, nor a result of bools."""
    g = dnn.Graph()
    x, mask = g.input("x", (4, 6)), g.input("mask", (4, 1), np.bool_)
    chosen = g.apply("Where", mask, x, -1.0)
    y = g.apply("Where", np.array([True, False] * 3), chosen * 2.0, x)
    net = g.compile(engine=engine(), y=y)
    net.check()
    feeds = {"x": random(4, 6), "mask": np.array([[True], [False], [True], [True]])}
    check_values(net, feeds)
    with pytest.raises(dnn.InvalidArguments, match="mask is bool, which kernels read and write as f32: use run"):
        net.bind(**feeds, y=np.empty((4, 6), np.float32))
    g = dnn.Graph()
    truths = g.compile(engine=engine(), y=g.apply("Less", g.input("x", (4, 6)), 0.0))
    np.testing.assert_array_equal(truths(feeds["x"]), feeds["x"] < 0.0)
    with pytest.raises(dnn.InvalidArguments, match="y is bool, which kernels read and write as f32: use run"):
        truths.bind(x=feeds["x"], y=np.empty((4, 6), np.bool_))


def shuffled(g: dnn.Graph, x: Any, groups: int) -> Any:
    """As ShuffleNet's graphs writes it."""
    n, c, *sizes = (2, 16, 9, 8)
    rows = g.apply("Reshape", x, np.array([n, groups, c // groups, *sizes]))
    turned = g.apply("Transpose", rows, perm=(0, 2, 1, 3, 4))
    return g.apply("Reshape", turned, np.array([n, c, *sizes]))


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("groups", [2, 4])
@pytest.mark.parametrize("channels_last", [False, True])
def test_a_shuffle_of_channels_is_one_primitive(groups: int, channels_last: bool) -> None:
    """In blocks, and after a convolution of groups in the order that it writes."""

    def make(g: dnn.Graph, x: Any) -> Any:
        first = g.apply("Conv", stem(g, x), random(16, 2, 1, 1), group=8) if channels_last else stem(g, x)
        return g.apply("Conv", shuffled(g, first, groups), random(16, 1, 3, 3), group=16, pads=(1, 1, 1, 1)) * 2.0

    net = built(make, (2, 3, 9, 8))
    net.check()
    assert descriptions(net).count("Shuffle") == 1
    check_values(net, {"x": random(2, 3, 9, 8)})


def test_a_transpose_of_other_axes_is_no_shuffle() -> None:
    def make(g: dnn.Graph, x: Any) -> Any:
        rows = g.apply("Reshape", x, np.array([2, 4, 4, 9, 8]))
        return g.apply("Reshape", g.apply("Transpose", rows, perm=(0, 2, 1, 4, 3)), np.array([2, 16, 9, 8]))

    assert "Shuffle" not in descriptions(built(make, (2, 16, 9, 8)))


@pytest.mark.isa("avx2")
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_gather_by_an_input(dtype: Any) -> None:
    """Rows of a table by indices that are known when the network runs, and by constants at any distances."""
    g = dnn.Graph()
    rows = g.apply("Gather", random(9, 12), g.input("x", (2, 5), dtype))
    y = g.apply("MatMul", rows, random(12, 4))
    z = g.apply("Gather", y, np.array([3, 0, 0, -1]), axis=1)
    net = g.compile(engine=engine(), y=y, z=z)
    net.check()
    assert [name for name in implementations(net) if name not in ("tiles", "dots")] == ["gather", "gather"]
    x = np.random.default_rng(0).integers(-9, 9, (2, 5)).astype(dtype)
    check_values(net, {"x": x})
    results = {name: np.empty(shape, np.float32) for name, (shape, _) in net.outputs.items()}
    run = net.bind(x=x, **results)
    run()
    x[1, 2] = 9
    for call in (run, lambda: net.run({"x": x}), lambda: net.verify({"x": x})):
        with pytest.raises(dnn.InvalidArguments, match=r"x\[1, 2\] is 9, axis 0 of src has 9: use -9 to 8"):
            call()


@pytest.mark.isa("avx2")
def test_slices_backwards() -> None:
    """A gather along the axis of a step below 0, of a view of the others."""

    def make(g: dnn.Graph, x: Any) -> Any:
        y = g.apply("Slice", stem(g, x), np.array([-1, 1]), np.array([-99, 8]), np.array([1, 2]), np.array([-1, 3]))
        return g.apply("Relu", y), g.apply("Slice", x, np.array([7]), np.array([-9]), np.array([3]), np.array([-2]))

    net = built(make, (2, 3, 9, 8))
    net.check()
    assert [name for name in implementations(net) if name in ("gather", "lanes")] == ["lanes", "gather"]
    check_values(net, {"x": random(2, 3, 9, 8)})
    with pytest.raises(dnn.Unimplemented, match="steps below 0 along several axes have no kernel"):
        both = np.array([-1, -1]), np.array([-99, -99]), np.array([1, 2]), np.array([-1, -1])
        built(lambda g, x: g.apply("Slice", x, *both), (2, 3, 9, 8))


def test_constant_indices_out_of_range() -> None:
    with pytest.raises(dnn.Unimplemented, match="are not all from -5 to 4"):
        built(lambda g, x: g.apply("Gather", x, np.array([4, 5, 0]), axis=1), (2, 5, 12))


def mobile(g: dnn.Graph, x: Any, channels: int = 24, stride: int = 1) -> Any:
    """A 1x1 convolution, a depthwise one, and relu6 after each."""
    first = g.apply("Clip", g.apply("Conv", x, random(channels, 8, 1, 1), random(channels)), 0.0, 6.0)
    second = g.apply(
        "Conv", first, random(channels, 1, 3, 3), random(channels), group=channels, pads=(1, 1, 1, 1),
        strides=(stride, stride),
    )  # fmt: skip
    return g.apply("Clip", second, 0.0, 6.0)


@pytest.mark.isa("avx2")
@pytest.mark.parametrize(("dims", "stride", "names"), [
    ((1, 8, 80, 80), 2, ["strips+direct+depthwise"]), ((2, 8, 7, 9), 1, ["direct", "depthwise"]),
])  # fmt: skip
def test_pairs_of_convolutions(dims: tuple[int, ...], stride: int, names: list[str]) -> None:
    """As one primitive where what is between them leaves L2."""
    net = built(lambda g, x: mobile(g, x, stride=stride), dims)
    assert [name for name in implementations(net) if name != "reorder"] == names
    net.check()
    check_values(net, {"x": random(*dims)})


@pytest.mark.isa("avx2")
def test_a_middle_that_others_read_is_no_pair() -> None:
    def make(g: dnn.Graph, x: Any) -> Any:
        first = g.apply("Conv", x, random(24, 8, 1, 1))
        return g.apply("Conv", first, random(24, 1, 3, 3), group=24, pads=(1, 1, 1, 1)), first

    net = built(make, (1, 8, 80, 80))
    assert "strips+direct+depthwise" not in implementations(net)
    check_values(net, {"x": random(1, 8, 80, 80)})


@pytest.mark.isa("avx2")
def test_lone_maps_keep_the_sign_of_zeros() -> None:
    """A map with no kernel before it starts from the value itself, not from a sum with 0."""
    g = dnn.Graph("zeros")
    x = g.input("x", (19,))
    maps = {
        "itself": g.map(lambda v: v * 1.0, x), "negated": g.apply("Neg", x), "floor": g.apply("Floor", x),
        "doubled": g.apply("Mul", x, 2.0), "size": g.apply("Abs", x), "third": g.apply("Div", x, 3.0),
    }  # fmt: skip
    zeros = np.where(np.arange(19) % 3 == 0, -0.0, 0.0).astype(np.float32)
    wanted = {"negated": -zeros, "size": np.abs(zeros)}
    for name, y in maps.items():
        found = g.compile(y=y, engine=engine())(zeros)
        np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted.get(name, zeros)), err_msg=name)
