"""What cumulative sums have beside tests/conformance: arrays, blocks of one channel, bad input."""

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.definitions.reduction import cumulated, cumulative_error


def test_functions_and_threads(isa: str) -> None:
    x = np.random.default_rng(1).uniform(-1, 1, (3, 130, 33)).astype(np.float32)
    for axis in (0, 1, 2):
        found = [dnn.ops.cumsum(x, axis, engine=dnn.Engine(isa=isa, threads=n)) for n in (1, 2, 3)]
        assert np.array_equal(found[0], found[1])
        assert np.array_equal(found[0], found[2])
        exact, bound = cumulated("sum", x.astype(np.float64), axis), cumulative_error(x, axis, False, False)
        assert (np.abs(found[0] - exact) <= bound).all()
        out = x.copy()
        assert dnn.ops.cumsum(out, axis, out=out, engine=dnn.Engine(isa=isa)) is out
        assert np.array_equal(out, found[0])
    with pytest.raises(dnn.InvalidArguments, match="overlaps"):
        dnn.ops.cumsum(x, exclusive=True, out=x)


def test_no_elements_and_bad_input() -> None:
    assert dnn.ops.cumsum(np.zeros((0, 5), np.float32)).shape == (0, 5)
    desc, other = dnn.MemoryDesc((2, 3), dnn.f32, "ab"), dnn.MemoryDesc((2, 4), dnn.f32, "ab")
    for arguments, says in (
        ((desc, other, 1), "dst has dims"),
        ((desc, desc, 2), "axis is 2, src has 2 dims: use -2 to 1"),
        ((desc, desc, 1, 1), "exclusive must be True or False"),
        ((None, desc, 1), "src must be a MemoryDesc"),
    ):
        with pytest.raises(dnn.InvalidArguments, match=says):
            dnn.CumulativeSum(*arguments)
    with pytest.raises(dnn.Unimplemented, match="post-ops"):
        dnn.primitive_desc(dnn.CumulativeSum(desc, desc, 1), dnn.Attr([dnn.Sum()]))


def test_padding_of_an_axis_of_one_element_is_written() -> None:
    desc = dnn.MemoryDesc((1, 1, 5, 9), dnn.f32, "aBcd8b")
    for isa in ("avx2", "avx512_core"):
        engine = dnn.Engine(isa=isa, threads=1)  # type: ignore[arg-type]
        dnn.primitive_desc(dnn.CumulativeSum(desc, desc, 1, exclusive=True), engine=engine).plan.check()


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("exclusive", [False, True])
def test_products(isa: str, exclusive: bool, reverse: bool) -> None:
    """Also with zeros, NaN and infinities, of which nothing in front of them knows."""
    rng = np.random.default_rng(2)
    x = rng.uniform(0.8, 1.25, (3, 67, 33)).astype(np.float32) * rng.choice([-1, 1], (3, 67, 33)).astype(np.float32)
    x[0, 40, 20], x[1, 30, 9], x[2, 50, 17] = 0, np.nan, np.inf
    for axis in (0, 1, 2):
        desc = dnn.MemoryDesc(x.shape, dnn.f32, "abc")
        products = dnn.CumulativeProduct(desc, desc, axis, exclusive, reverse)
        found = []
        for threads in (1, 2, 3):
            pd = dnn.primitive_desc(products, engine=dnn.Engine(isa=isa, threads=threads))  # type: ignore[arg-type]
            dst = np.empty_like(x)
            dnn.Primitive(pd).execute(src=dnn.Memory(desc, x), dst=dnn.Memory(desc, dst))
            found.append(dst)
        assert all(np.array_equal(found[0], other, equal_nan=True) for other in found[1:])
        with np.errstate(invalid="ignore"):
            exact = cumulated("mul", x.astype(np.float64), axis, exclusive, reverse)
        # a rounding for each factor; their product is exact where it is 0, infinite or NaN
        np.testing.assert_allclose(found[0], exact, rtol=x.shape[axis] * 2.0**-24, atol=0)


def test_words_of_products() -> None:
    desc = dnn.MemoryDesc((2, 3), dnn.f32, "ab")
    assert str(dnn.CumulativeProduct(desc, desc, 1, True)).startswith("cumulative product of f32 2x3 ab")
    assert dnn.CumulativeProduct(desc, desc, 1) != dnn.CumulativeSum(desc, desc, 1)
    with pytest.raises(dnn.InvalidArguments, match=r"CumulativeProduct.exclusive must be True or False"):
        dnn.CumulativeProduct(desc, desc, 1, 1)  # type: ignore[arg-type]
