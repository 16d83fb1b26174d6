"""Gradients of array functions: against central differences of definitions in float64, and against the float types."""

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import asmdnn as dnn
from asmdnn import ops
from asmdnn.definitions.elementwise import slope
from asmdnn.definitions.reduction import cumulated, reduced
from asmdnn.primitives.elementwise.eltwise import BACKWARD_ALGS, USE_DST

STEP = 2.0**-17
TYPES = (np.dtype(ml_dtypes.bfloat16), np.dtype(np.float16))
ROUNDOFF = {TYPES[0]: 2.0**-8, TYPES[1]: 2.0**-11}


def real(seed: int, *dims: int, least: float = -2.0) -> np.ndarray:
    """Multiples of 1/64, apart from one another where they are few: no kink is nearer than a step."""
    found = np.random.default_rng(seed).permutation(np.arange(1, 1 + int(np.prod(dims)))) / 64
    return (np.abs(found) if least >= 0 else found - found.mean() + 1 / 200).reshape(dims).astype(np.float32)


def differences(function: Callable[..., Any], arrays: Sequence[np.ndarray], dy: np.ndarray) -> list[np.ndarray]:
    """The gradients of <function(*arrays), dy> by each array, in float64."""
    wide = [np.array(array, np.float64) for array in arrays]
    found = []
    for array in wide:
        gradient = np.zeros(array.shape)
        for at in np.ndindex(array.shape):
            kept, ends = array[at], []
            for step in (STEP, -STEP):
                array[at] = kept + step
                ends.append(float((function(*wide) * dy).sum()))
            array[at] = kept
            gradient[at] = (ends[0] - ends[1]) / (2 * STEP)
        found.append(gradient)
    return found


def agree(found: Any, wanted: Sequence[np.ndarray], tolerance: float = 1e-4) -> None:
    results = found if isinstance(found, list | tuple) else [found]
    for result, right in zip(results, wanted, strict=True):
        assert result.shape == right.shape and result.dtype == np.float32
        assert np.allclose(result, right, rtol=tolerance, atol=tolerance * max(1.0, np.abs(right).max(initial=0.0)))


NUMBERS = {
    "pow": (1.5, 2.0), "clip": (-0.2, 0.3), "clip_v2": (-0.2, 0.3), "linear": (2.0, 0.5), "hardswish": (0.5, 0.25),
    "hardsigmoid": (0.5, 0.25), "relu": (0.5, 0.0), "elu": (0.5, 0.0), "soft_relu": (0.5, 0.0), "swish": (0.5, 0.0),
}  # fmt: skip


@pytest.mark.parametrize("alg", BACKWARD_ALGS)
def test_eltwise(isa: str, alg: Any) -> None:
    """Every algorithm, of its argument or its result, against the definition's slope."""
    function, of_dst = alg.removesuffix(USE_DST), alg.endswith(USE_DST)
    alpha, beta = NUMBERS.get(function, (0.0, 0.0))
    x, dy = real(1, 4, 19), real(2, 4, 19)
    if function in ("sqrt", "log") or (of_dst and function in ("exp", "logistic", "sqrt")):
        x = np.abs(x) + np.float32(0.1)
    if of_dst and function in ("tanh", "logistic"):
        x = np.clip(x, -0.9, 0.9)
    found = ops.eltwise_gradient(dy, x, alg, alpha, beta, engine=dnn.Engine(isa=isa))
    agree(found, [dy * slope(function, x.astype(np.float64), alpha, beta, of_dst)], 1e-3)
    assert ops.eltwise_gradient(dy, x, alg, alpha, beta, out=(out := np.empty_like(x))) is out


@pytest.mark.parametrize("dims", [(19,), (1, 19), (4, 1), (4, 19), (3, 4, 19)])
def test_prelu(isa: str, dims: tuple[int, ...]) -> None:
    x, dy, weights = real(1, 3, 4, 19), real(2, 3, 4, 19), real(3, *((4,) if len(dims) == 1 else dims))
    wide = weights.reshape(4, 1) if weights.ndim == 1 else weights
    wanted = differences(lambda x, w: np.where(x > 0, x, x * w), [x, wide], dy)
    found = ops.prelu_gradient(dy, x, weights, engine=dnn.Engine(isa=isa))
    agree(found, [wanted[0], wanted[1].reshape(weights.shape)])


MAPS = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "max": np.maximum, "min": np.minimum}


@pytest.mark.parametrize("alg", MAPS)
@pytest.mark.parametrize("dims", [((3, 5), (3, 5)), ((3, 5), (5,)), ((4, 1, 5), (3, 1)), ((2, 3), ()), ((), (4,))])
def test_binary(isa: str, alg: str, dims: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    a, b = real(1, *dims[0]), real(2, *dims[1], least=0.0) + np.float32(0.3)
    dy = real(3, *np.broadcast_shapes(*dims))
    found = ops.binary_gradient(alg, dy, a, b, engine=dnn.Engine(isa=isa))
    agree(found, differences(MAPS[alg], [a, b], dy), 1e-3)


def test_equal_operands_and_numbers() -> None:
    """Of equal ones the first has it; a number has a gradient, too; results are no views."""
    x = np.ones((2, 3), np.float32)
    for alg in ("max", "min"):
        da, db = ops.binary_gradient(alg, x, x, x)
        assert (da == 1).all() and (db == 0).all()
    da, db = ops.binary_gradient("mul", x, x, 3.0)
    assert (da == 3).all() and db == 6 and db.shape == ()
    da, _ = ops.binary_gradient("add", x, x, x)
    assert not np.shares_memory(da, x)


def test_select(isa: str) -> None:
    a, b, dy = real(1, 3, 5), real(2, 5), real(3, 4, 3, 5)
    condition = np.random.default_rng(4).random((4, 1, 5)) < 0.5
    wanted = differences(lambda a, b: np.where(condition, a, b), [a, b], dy)
    agree(ops.select_gradient(dy, condition, a, b, engine=dnn.Engine(isa=isa)), wanted)


@pytest.mark.parametrize("given", [False, True], ids=["of the batch", "given"])
@pytest.mark.parametrize("dims", [(5, 3), (3, 4, 7), (2, 19, 3, 5)])
def test_batch_norm(isa: str, dims: tuple[int, ...], given: bool) -> None:
    x, dy, scale = real(1, *dims), real(2, *dims), real(3, dims[1])
    axes = (0, *range(2, len(dims)))
    fixed = (real(4, dims[1]), real(5, dims[1], least=0.0)) if given else ()

    def norm(x: Any, scale: Any, shift: Any) -> Any:
        mean, variance = fixed or (x.mean(axes), x.var(axes))
        across = (-1, *[1] * (len(dims) - 2))
        centred = x - np.asarray(mean, float).reshape(across)
        root = np.sqrt(np.asarray(variance, float) + 0.1).reshape(across)
        return centred / root * scale.reshape(across) + shift.reshape(across)

    wanted = differences(norm, [x, scale, np.zeros_like(scale)], dy)
    engine = dnn.Engine(isa=isa)
    agree(ops.batch_norm_gradient(dy, x, scale, *fixed, epsilon=0.1, engine=engine), wanted, 1e-3)
    plain = differences(lambda x: norm(x, np.ones(dims[1]), np.zeros(dims[1])), [x], dy)
    agree(ops.batch_norm_gradient(dy, x, None, *fixed, epsilon=0.1, engine=engine)[0], plain, 1e-3)


@pytest.mark.parametrize("dims", [(7,), (3, 4), (2, 3, 2)])
def test_inner_product(isa: str, dims: tuple[int, ...]) -> None:
    random, engine = np.random.default_rng(1), dnn.Engine(isa=isa)
    x, w, dy = (random.integers(-4, 5, shape).astype(np.float32) for shape in ((5, *dims), (6, *dims), (5, 6)))
    dx = ops.inner_product_input_gradient(dy, w, engine=engine)
    dw, db = ops.inner_product_weight_gradient(np.asfortranarray(x), dy, engine=engine)
    assert np.array_equal(dx, np.tensordot(dy, w, 1)) and np.array_equal(dw, np.tensordot(dy.T, x, 1))
    assert np.array_equal(db, dy.sum(0)) and dx.shape == x.shape and dw.shape == w.shape


@pytest.mark.parametrize(
    ("of_a", "of_b"), [((5, 4), (4, 6)), ((3, 5, 4), (4, 6)), ((5, 4), (2, 3, 4, 6)), ((2, 1, 5, 4), (3, 4, 6))]
)
def test_matmul(isa: str, of_a: tuple[int, ...], of_b: tuple[int, ...]) -> None:
    """<a b, dy> = <a, da> = <b, db>, exactly."""
    random = np.random.default_rng(1)
    a, b = (random.integers(-4, 5, dims).astype(np.float32) for dims in (of_a, of_b))
    y = np.matmul(a, b)
    dy = random.integers(-4, 5, y.shape).astype(np.float32)
    da, db = ops.matmul_gradient(dy, a, b, engine=dnn.Engine(isa=isa))
    assert da.shape == a.shape and db.shape == b.shape
    assert np.array_equal(db, summed(np.matmul(np.swapaxes(a, -1, -2), dy), b.shape))
    assert np.array_equal(da, summed(np.matmul(dy, np.swapaxes(b, -1, -2)), a.shape))


def summed(x: np.ndarray, dims: tuple[int, ...]) -> np.ndarray:
    x = x.sum(tuple(range(x.ndim - len(dims))))
    return x.sum(tuple(i for i, n in enumerate(dims) if n < x.shape[i]), keepdims=True)


REDUCTIONS = [
    ("sum", {}), ("mean", {}), ("max", {}), ("min", {}), ("mul", {}), ("logsumexp", {}),
    *((f"norm_lp_{alg}", {"p": p, "eps": eps})
      for alg in ("sum", "max", "power_p_sum", "power_p_max") for p, eps in ((2.0, 0.0), (1.0, 0.5), (3.0, 0.25))),
]  # fmt: skip


@pytest.mark.parametrize(("alg", "numbers"), REDUCTIONS)
def test_reductions(isa: str, alg: Any, numbers: dict[str, float]) -> None:
    engine = dnn.Engine(isa=isa)
    for dims, axis in (((3, 5), 1), ((2, 3, 4), (0, 2)), ((2, 3), None), ((4, 1), 1), ((5,), -1)):
        x = real(1, *dims)
        axes = tuple(range(len(dims))) if axis is None else tuple(n % len(dims) for n in np.atleast_1d(axis))

        def function(x: Any, axes: tuple[int, ...] = axes) -> Any:
            return reduced(alg, x, axes, **numbers)

        kept = np.asarray(function(x.astype(float)))
        dy = real(2, *kept.shape)
        wanted = differences(function, [x], dy)
        for keepdims in (True, False):
            given = dy if keepdims else dy.reshape([n for i, n in enumerate(dims) if i not in axes])
            found = ops.reduce_gradient(given, x, alg, axis, keepdims=keepdims, engine=engine, **numbers)
            agree(found, wanted, 1e-3)


def test_reductions_at_corners() -> None:
    """Equal maxima share it; a product has that of a single zero; the norm of nothing has none."""
    x = np.array([[3, 3, 1], [0, 2, 4], [0, 0, 2]], np.float32)
    dy = np.array([4, 1, 1], np.float32)
    assert ops.reduce_gradient(dy, x, "max", 1).tolist() == [[2, 2, 0], [0, 0, 1], [0, 0, 1]]
    assert ops.reduce_gradient(dy, x, "mul", 1).tolist() == [[12, 12, 36], [8, 0, 0], [0, 0, 0]]
    assert not ops.reduce_gradient(dy, x * 0, "norm_lp_sum", 1).any()
    assert ops.reduce_gradient(np.float32(3), np.float32(2), "sum").shape == ()
    assert ops.reduce_gradient(np.zeros(3, np.float32), np.zeros((3, 0), np.float32), "sum", 1).shape == (3, 0)


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_sums(isa: str, exclusive: bool, reverse: bool) -> None:
    engine, x, dy = dnn.Engine(isa=isa), real(1, 3, 5), real(2, 3, 5)
    flags = {"exclusive": exclusive, "reverse": reverse}
    for axis in (0, 1):
        wanted = differences(lambda x, axis=axis: cumulated("sum", x, axis, **flags), [x], dy)
        agree(ops.cumsum_gradient(dy, axis, **flags, engine=engine), wanted)
    found = ops.weighted_sum_gradient(dy, (2.0, -0.5), engine=engine)
    agree(found, [2 * dy, -0.5 * dy])
    y, mask = ops.dropout(x, 0.25, seed=3, engine=engine)
    agree(ops.dropout_gradient(dy, mask, 0.25, engine=engine), [dy * mask / 0.75])
    agree(ops.dropout_gradient(dy, np.zeros_like(mask), 1.0), [dy * 0])
    assert y.shape == mask.shape


@pytest.mark.parametrize("kind", TYPES, ids=str)
@pytest.mark.parametrize("name", ["eltwise", "prelu", "batch norm", "binary", "select", "reduce", "cumsum", "dropout",
                                  "weighted sum", "input", "weights", "bias", "matmul a", "matmul b"])  # fmt: skip
def test_halves_are_those_of_f32_rounded(isa: str, name: str, kind: Any) -> None:
    """In the type of dy, and of numbers of that type."""
    engine = dnn.Engine(isa=isa)
    x, y, row = (real(seed, *dims).astype(kind) for seed, dims in ((1, (6, 6)), (2, (6, 6)), (3, (6,))))
    mask = np.arange(36, dtype=np.uint8).reshape(6, 6) % 3 // 2
    calls: dict[str, Callable[[Any, Any, Any], Any]] = {
        "eltwise": lambda d, x, r: ops.eltwise_gradient(d, x, "gelu_erf", engine=engine),
        "prelu": lambda d, x, r: ops.prelu_gradient(d, x, r, engine=engine),
        "batch norm": lambda d, x, r: ops.batch_norm_gradient(d, x, engine=engine)[0],
        "binary": lambda d, x, r: ops.binary_gradient("div", d, x, r, engine=engine),
        "select": lambda d, x, r: ops.select_gradient(d, mask, x, r, engine=engine),
        "reduce": lambda d, x, r: ops.reduce_gradient(d[0], x, "norm_lp_sum", 0, engine=engine),
        "cumsum": lambda d, x, r: ops.cumsum_gradient(d, engine=engine),
        "dropout": lambda d, x, r: ops.dropout_gradient(d, mask, 0.25, engine=engine),
        "weighted sum": lambda d, x, r: ops.weighted_sum_gradient(d, [0.3, 3.0], engine=engine),
        "input": lambda d, x, r: ops.inner_product_input_gradient(d, x, engine=engine),
        "weights": lambda d, x, r: ops.inner_product_weight_gradient(x, d, engine=engine)[0],
        "bias": lambda d, x, r: ops.inner_product_weight_gradient(x, d, engine=engine)[1],
        "matmul a": lambda d, x, r: ops.matmul_gradient(d, x, x, engine=engine)[0],
        "matmul b": lambda d, x, r: ops.matmul_gradient(np.stack([d, d]), np.stack([d, d]), x, engine=engine)[1],
    }  # fmt: skip
    found, wanted = calls[name](y, x, row), calls[name](*(each.astype(np.float32) for each in (y, x, row)))
    pairs = zip(*([each] if isinstance(each, np.ndarray) else each for each in (found, wanted)), strict=True)
    for narrow, wide in pairs:
        assert narrow.dtype == kind and narrow.shape == wide.shape and wide.dtype == np.float32
        error = ROUNDOFF[kind] * np.abs(wide) + 2e-5 * np.abs(wide).max()
        assert (np.abs(narrow.astype(np.float32) - wide) <= error).all()


X, V = real(1, 3, 4), real(2, 4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ops.eltwise_gradient(X, X, "round"), "^alg must be one of"),
        (lambda: ops.eltwise_gradient(V, X, "tanh"), "has dims"),
        (lambda: ops.eltwise_gradient(None, X, "tanh"), "dy must be an array, not None"),
        (lambda: ops.eltwise_gradient(X.astype(np.int8), X, "tanh"), "dy has dtype int8, convert it to float32"),
        (lambda: ops.eltwise_gradient(X, X, "relu_use_dst_for_bwd", -1.0), "alpha must not be negative"),
        (lambda: ops.eltwise_gradient(X, X, 3), "^alg must be one of"),
        (lambda: ops.prelu_gradient(X, X, V[:3]), "weights has dims"),
        (lambda: ops.prelu_gradient(X, V, X), "weights has 2 dims, x has 1"),
        (lambda: ops.binary_gradient("ge", X, X, X), "alg must be one of add, sub, mul, div, max, min"),
        (lambda: ops.binary_gradient("add", V, X, X), r"dy has dims \(4,\), the result has \(3, 4\)"),
        (lambda: ops.binary_gradient("add", X, X, V[:3]), "dims that are not 1 must be equal"),
        (lambda: ops.select_gradient(V, X > 0, X, X), r"dy has dims \(4,\), the result has \(3, 4\)"),
        (lambda: ops.batch_norm_gradient(V, V), "x has 1 dim, images and channels are needed: 2"),
        (lambda: ops.batch_norm_gradient(X, X, mean=V), "mean and variance must both be given"),
        (lambda: ops.batch_norm_gradient(X[:1], X[:1]), "has one value for each channel: give it more"),
        (lambda: ops.batch_norm_gradient(X, X, V[:3]), "scale has dims"),
        (lambda: ops.batch_norm_gradient(X, X, epsilon=-1.0), "epsilon"),
        (lambda: ops.inner_product_input_gradient(V, X), "dy has 1 dim, rows and columns are needed: 2"),
        (lambda: ops.inner_product_input_gradient(X, X.T.copy()[:2]), "weights"),
        (lambda: ops.inner_product_weight_gradient(X, X[:2]), "^dy has dims"),
        (lambda: ops.matmul_gradient(X, X, X), r"dy has dims \(3, 4\), the product of a"),
        (lambda: ops.matmul_gradient(X, X[None].repeat(2, 0), X[None].repeat(3, 0)), "must be 1 or equal"),
        (lambda: ops.reduce_gradient(X, X, "sum", 1), r"dy has dims \(3, 4\), the result has \(3,\)"),
        (lambda: ops.reduce_gradient(X, X, "median", 1), "alg must be one of"),
        (lambda: ops.reduce_gradient(X, X, "sum", 2), "axis is 2, x has 2 dims"),
        (lambda: ops.cumsum_gradient(X, 2), "axis"),
        (lambda: ops.cumsum_gradient(X, reverse=1), "reverse"),
        (lambda: ops.weighted_sum_gradient(X, ()), "scales must be a sequence, a number for each array"),
        (lambda: ops.dropout_gradient(X, X), "mask must be uint8 or bool with the dims of dy"),
        (lambda: ops.dropout_gradient(X, X.astype(np.uint8), 2.0), "probability must be from 0 to 1, not 2.0"),
    ],
)
def test_mistakes(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(dnn.InvalidArguments, match=message):
        call()
