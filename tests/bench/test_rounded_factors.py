"""Data and bounds of problems whose f32 may be rounded before it is multiplied."""

from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.bench.values import rounded
from tests.support.cases import read


def work_of(words: str) -> Any:
    (case,) = read(words)
    return case.driver.work(case)


@pytest.mark.parametrize(("direction", "factors"), [
    ("FWD_I", ("src", "weights")), ("BWD_D", ("weights", "diff_dst")), ("BWD_W", ("src", "diff_dst")),
])  # fmt: skip
@pytest.mark.parametrize("kind", ["conv", "deconv"])
def test_factors_have_numbers_of_the_smaller_type(direction: str, factors: tuple[str, str], kind: str) -> None:
    work = work_of(f"--{kind} --dir={direction} --attr-fpmath=bf16 mb2ic9ih9oc12kh3")
    for exact in (True, False):
        arrays = work.data(exact=exact).arrays
        assert all(np.array_equal(arrays[name], rounded(arrays[name], dnn.bf16)) for name in factors)


@pytest.mark.parametrize("words", [
    "--matmul --attr-fpmath=bf16x3 20x31:31x64", "--ip --dir=FWD_B --attr-fpmath=bf16x3 mb20ic31oc64",
    "--conv --dir=FWD_I --attr-fpmath=bf16x3 mb1ic31ih5oc64kh1",
    "--deconv --dir=BWD_D --attr-fpmath=bf16x3 mb1ic31ih5oc64kh1",
])  # fmt: skip
def test_three_products_leave_something_out(words: str) -> None:
    work = work_of(words)
    assert work.exactness == (False,)
    ordinary = work_of(words.replace("bf16x3", "strict"))
    data = work.data(exact=False)
    more = np.mean(work.tolerance(data)) / np.mean(ordinary.tolerance(data))
    left_out = 3.1 * 2.0**-16 / (2.0**-24 * ordinary.roundings)
    assert 0.8 * left_out < more < left_out + 2
