"""`asmdnn.ops.matmul`: arrays of every kind, broadcasting as numpy does it, packed weights, and what it refuses."""

from pathlib import Path

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn import ops

pytestmark = pytest.mark.usefixtures("isa")  # at each level, under a cap


def values(*dims: int) -> np.ndarray:
    return np.random.default_rng(len(dims)).integers(-3, 4, dims).astype(np.float32)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((5, 7), (7, 9)),
        ((2, 3, 4, 5), (5, 6)),
        ((3, 4), (2, 1, 4, 6)),
        ((2, 1, 3, 4), (5, 4, 6)),
        ((1,) * 10 + (3, 4), (4, 5)),
        ((3, 0), (0, 4)),
        ((0, 3), (3, 4)),
        ((70, 80), (80, 90)),
    ],
    ids=str,
)
def test_shapes(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    x, y = values(*a), values(*b)
    result = ops.matmul(x, y)
    assert (result.dtype, result.flags.c_contiguous) == (np.float32, True)
    assert np.array_equal(result, np.matmul(x, y))


def test_strides_and_post_ops() -> None:
    x, y, bias = values(24, 14)[::2, ::2], values(9, 7).T, values(9)
    out = values(12, 9, 2)[:, :, 1]
    old = out.copy()
    assert ops.matmul(x, y, bias, post_ops=[dnn.Sum(0.5), dnn.Eltwise("relu")], out=out) is out
    assert np.array_equal(out, np.maximum(x @ y + bias + 0.5 * old, 0))
    assert np.array_equal(ops.matmul(x[::-1], y, np.float32(2)), x[::-1] @ y + 2)
    column = values(12, 1)
    assert np.array_equal(ops.matmul(x, y, column), x @ y + column)


def test_packed_once_for_any_number_of_rows(tmp_path: Path) -> None:
    b = values(40, 50)
    packed = ops.pack_weights(b)
    for m in (1, 5, 30):
        assert np.array_equal(ops.matmul(values(m, 40), packed), values(m, 40) @ b)
    assert np.array_equal(ops.matmul(values(2, 3, 40), packed), values(2, 3, 40) @ b)
    packed.array.tofile(tmp_path / "weights")
    mapped = dnn.Memory(packed.desc, np.memmap(tmp_path / "weights", np.float32, "r"), padding_is_zero=True)
    assert np.array_equal(ops.matmul(values(5, 40), mapped), values(5, 40) @ b)


@pytest.mark.parametrize(
    ("a", "b", "options", "message"),
    [
        (values(2, 3), values(4, 5), {}, "b has 4 rows, a has 3 columns"),
        (values(3), values(3, 5), {}, "a has 1 dim"),
        (values(2, 3).astype(np.float16), values(4, 5).astype(np.float16), {}, "b has 4 rows, a has 3 columns"),
        (values(2, 3).astype(np.float16), values(3).astype(np.float16), {}, "b has 1 dim"),
        (np.ones((2, 3), np.uint8), np.ones((3, 5), np.int8), {"out": np.ones((2, 4), np.int32)}, "out has dims"),
        (values(2, 3), values(3, 5).astype(float), {}, "b has dtype float64, convert it to float32"),
        (values(2, 2, 3), values(3, 3, 5), {}, "batch dims must be equal or 1"),
        (values(2, 3), values(3, 5), {"bias": values(4)}, "bias has dims"),
        (values(2, 3), values(3, 5), {"bias": values(1, 2, 5)}, "bias has 3 dims, the result has 2"),
        (values(2, 3), values(3, 5), {"out": values(2, 4)}, r"out has dims \(2, 4\), the product has \(2, 5\)"),
        (values(2, 3), values(3, 5), {"out": [[0.0]]}, "out must be an array in memory"),
        (values(2, 3), values(3, 5), {"post_ops": [dnn.Sum()]}, "out must be given"),
    ],
)
def test_bad_arguments(a: np.ndarray, b: np.ndarray, options: dict[str, object], message: str) -> None:
    with pytest.raises(dnn.InvalidArguments, match=message):
        ops.matmul(a, b, **options)  # type: ignore[arg-type]


def test_only_matrices_are_packed() -> None:
    for shape in ((2, 3, 4), (0, 3)):
        with pytest.raises(dnn.InvalidArguments, match="a matrix with elements is needed"):
            ops.pack_weights(values(*shape))


def test_out_may_not_overlap() -> None:
    both = values(6, 6)
    with pytest.raises(dnn.InvalidArguments, match="out overlaps a"):
        ops.matmul(both[:4], values(6, 6), out=both[2:])


class Stubborn:
    """What can be hashed, and not compared."""

    def __hash__(self) -> int:
        return hash("relu")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no")


def test_what_cannot_be_compared_is_no_post_op() -> None:
    a = np.ones((3, 3), np.float32)
    dnn.ops.matmul(a, a, post_ops=["relu"])
    for post_op in (Stubborn(), []):
        with pytest.raises(dnn.InvalidArguments, match="post_ops"):
            dnn.ops.matmul(a, a, post_ops=[post_op])
