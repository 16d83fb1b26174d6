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
