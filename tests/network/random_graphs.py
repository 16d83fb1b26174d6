"""Random graphs: operators of networks on whatever values are there, so that formats, fusion, order and memory meet in
ways that no model of ours has them."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import asmdnn as dnn
from asmdnn.network.building import OPSET
from asmdnn.network.graph import NOTHING, Array, Node
from asmdnn.network.operators.definition import listed
from asmdnn.network.operators.table import operator_of

MOST_ELEMENTS, MOST = 40_000, 1e4  # of a value, and its largest element
INPUT_CHANGE = 2.0**-21  # by which inputs are moved, to see how far results move
IMAGES = ((1, 3, 15, 17), (2, 16, 9, 9), (1, 24, 12, 5), (1, 64, 7, 7), (3, 1, 20, 6), (1, 17, 20, 16))
ROWS = ((2, 9, 24), (3, 14, 8), (1, 20, 33), (12, 16), (5, 33))


class Value(NamedTuple):
    """What it is in the graph, its elements in double precision, and these where inputs are moved a little."""

    symbol: Any
    exact: Array
    moved: Array

    @property
    def dims(self) -> tuple[int, ...]:
        return self.exact.shape

    @property
    def tolerance(self) -> float:
        """Rounding of sums of some hundred terms, and of what the graph makes of an error in front."""
        return float(3e-5 * max(1.0, abs(self.exact).max()) + 40 * abs(self.exact - self.moved).max())


class RandomGraph:
    """A graph of `count` operators; which ones, on which values, is the seed's."""

    def __init__(self, seed: int, count: int) -> None:
        self.random, self.graph = np.random.default_rng(seed), dnn.Graph(f"random {seed}")
        self.values, self.feeds, self.read = list[Value](), dict[str, Array](), set[str]()
        for name in "xy"[: self.random.integers(1, 3)]:
            self.add_input(name)
        made = 0
        while made < count:
            made += STEPS[self.random.integers(len(STEPS))](self)

    def add_input(self, name: str) -> None:
        shapes = IMAGES if self.random.random() < 0.7 else ROWS
        dims = shapes[self.random.integers(len(shapes))]
        exact = self.feeds[name] = self.array(*dims)
        moved = exact * (1 + INPUT_CHANGE * self.random.choice((-1, 1), size=dims))
        self.values.append(Value(self.graph.input(name, dims), exact.astype(np.float64), moved))

    def array(self, *dims: int, terms: int = 1) -> Array:
        """Constants for sums of so many terms."""
        return (self.random.standard_normal(dims) / np.sqrt(terms)).astype(np.float32)

    def one_of(self, *some: Any) -> Any:
        return some[self.random.integers(len(some))]

    def value(self, fits: Callable[[Value], Any] = bool) -> Value | None:
        """One of the values that fit; the last three come more often than others."""
        found = [value for value in self.values if fits(value)] if fits is not bool else self.values
        likely = found + 3 * found[-3:]
        return likely[self.random.integers(len(likely))] if likely else None

    def apply(self, op: str, *operands: Any, results: int = 1, **attributes: Any) -> bool:
        """Add an operator whose results are numbers of a usual size."""
        names = tuple(f"y{i}" for i in range(results))
        node = Node(op, tuple(NOTHING if x is None else "x" for x in operands), names, attributes, "", "", OPSET)
        operator = operator_of(node)
        assert operator is not None
        made = []
        for which in ("exact", "moved"):
            given = [getattr(x, which) if isinstance(x, Value) else x for x in operands]
            wide = [x.astype(np.float64) if x is not None and x.dtype == np.float32 else x for x in given]
            with np.errstate(all="ignore"):
                made.append(listed(operator.evaluate(node, *wide)))
        if not all(x.ndim and 0 < x.size <= MOST_ELEMENTS and abs(x).max() <= MOST for x in made[0] + made[1]):
            return False
        self.read |= {x.symbol.name for x in operands if isinstance(x, Value)}
        passed = (x.symbol if isinstance(x, Value) else x for x in operands)
        symbols = self.graph.apply(op, *passed, results=results, **attributes)
        both = zip(symbols if results > 1 else [symbols], *made, strict=True)
        self.values += [Value(symbol, exact, moved) for symbol, exact, moved in both]
        return True

    def outputs(self) -> dict[str, Value]:
        """What nobody reads, by name."""
        ends = (value for value in self.values if value.symbol.name not in self.read | self.feeds.keys())
        return {f"output {i}": value for i, value in enumerate(ends)}

    def compile(self, engine: dnn.Engine) -> dnn.Network:
        ends = {name: value.symbol for name, value in self.outputs().items()}
        return self.graph.compile(engine=engine, fallback="numpy", **ends)


def is_image(value: Value) -> bool:
    return len(value.dims) == 4


def function(r: RandomGraph) -> bool:
    op = r.one_of("Relu", "Sigmoid", "Tanh", "HardSwish", "Elu", "Softplus", "Erf", "Abs", "Neg", "Gelu", "Identity")
    return r.apply(op, r.value())


def arithmetic(r: RandomGraph) -> bool:
    """With another value of these dims, or a constant that broadcasts."""
    value = r.value()
    assert value is not None
    other: Any = r.value(lambda x: x.dims == value.dims)
    if r.random.random() < 0.5:
        other = r.array(*(n if r.random.random() < 0.5 else 1 for n in value.dims))
    return r.apply(r.one_of("Add", "Mul", "Sub", "Max", "Min"), *r.one_of((value, other), (other, value)))


def convolution(r: RandomGraph) -> bool:
    """By groups or not, of any window that fits, strided or dilated."""
    value = r.value(is_image)
    if value is None:
        return False
    channels, *image = value.dims[1:]
    groups = r.one_of(1, 1, channels, *(g for g in (2, 4, 8) if channels % g == 0))
    kernel, dilation, stride = r.one_of((1, 1), (3, 3), (3, 3), (5, 1), (2, 5)), r.one_of(1, 1, 2), r.one_of(1, 1, 2)
    reach = [(k - 1) * dilation for k in kernel]
    pads = r.one_of((0, 0, 0, 0), (*(n // 2 for n in reach), *(n - n // 2 for n in reach)))
    if min(n + pads[i] + pads[i + 2] - reach[i] for i, n in enumerate(image)) < 1:
        return False
    outputs = groups * r.one_of(1, 2) if groups > 1 else r.one_of(1, 5, 8, 16, 24, 48)
    weights = r.array(outputs, channels // groups, *kernel, terms=channels // groups * kernel[0] * kernel[1])
    bias = r.one_of([], [r.array(outputs)])
    options = {"strides": (stride, stride), "dilations": (dilation, dilation), "pads": pads, "group": groups}
    return r.apply("Conv", value, weights, *bias, kernel_shape=kernel, **options)


def pooling(r: RandomGraph) -> bool:
    value = r.value(lambda x: is_image(x) and min(x.dims[2:]) > 2)
    if value is None:
        return False
    op = r.one_of("MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool")
    options = {} if op.startswith("Global") else {"kernel_shape": (2, 3), "strides": r.one_of((1, 1), (2, 2))}
    return r.apply(op, value, **options)


def product(r: RandomGraph) -> bool:
    value = r.value(lambda x: len(x.dims) > 1)
    assert value is not None
    k, n = value.dims[-1], r.one_of(1, 5, 16, 17, 48)
    return r.apply("MatMul", value, r.array(k, n, terms=k))


def norm(r: RandomGraph) -> bool:
    value = r.value()
    assert value is not None
    op, last = r.one_of("LayerNormalization", "Softmax", "BatchNormalization"), value.dims[-1]
    if op == "Softmax":
        return r.apply(op, value, axis=r.random.integers(len(value.dims)).item())
    if op == "LayerNormalization":
        return last > 3 and r.apply(op, value, r.array(last), r.array(last), axis=-1)
    channels = value.dims[1] if is_image(value) else 0
    statistics = (r.array(channels), r.array(channels), r.array(channels), abs(r.array(channels)) + 1)
    return bool(channels) and r.apply(op, value, *statistics)


def reduction(r: RandomGraph) -> bool:
    value = r.value()
    assert value is not None
    axes = r.random.permutation(len(value.dims))[: r.one_of(1, 2)]
    return r.apply(r.one_of("ReduceMean", "ReduceMax", "ReduceSum"), value, axes.astype(np.int64))


def reshape(r: RandomGraph) -> bool:
    """Transposed, or its elements in other dims."""
    value = r.value()
    assert value is not None
    if r.random.random() < 0.5:
        return r.apply("Transpose", value, perm=tuple(r.random.permutation(len(value.dims)).tolist()))
    first, *others = value.dims
    dims = r.one_of((-1,), (1, -1), (first, 1, -1, value.dims[-1]), (*others, first), (1, first, -1))
    return len(value.dims) > 1 and r.apply("Reshape", value, np.array(dims))


def pieces(r: RandomGraph) -> bool:
    """Cut out, split, put side by side, or surrounded by something."""
    value = r.value()
    assert value is not None
    axis = r.random.integers(len(value.dims)).item()
    at, n = np.array([axis]), value.dims[axis]
    fits = r.value(lambda x: x.dims[:axis] + x.dims[axis + 1 :] == value.dims[:axis] + value.dims[axis + 1 :])
    match r.random.integers(4):
        case 0:
            return n > 2 and r.apply("Slice", value, np.array([1]), np.array([n]), at, np.array([r.one_of(1, 2)]))
        case 1:
            return n > 2 and r.apply("Split", value, np.array([n // 2, n - n // 2]), results=2, axis=axis)
        case 2:
            return r.apply("Concat", *r.one_of((value, fits), (fits, value, value)), axis=axis)
    pads = np.zeros(2 * len(value.dims), np.int64)
    pads[axis], pads[axis - len(value.dims)] = r.one_of((1, 1), (0, 2))
    return r.apply("Pad", value, pads, mode=r.one_of("constant", "edge"))


STEPS: list[Callable[[RandomGraph], bool]] = [
    function, function, arithmetic, arithmetic, arithmetic, convolution, convolution, convolution, pooling, product,
    product, norm, norm, reduction, reshape, reshape, pieces, pieces,
]  # fmt: skip
