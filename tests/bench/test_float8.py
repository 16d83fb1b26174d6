"""Floats of 8 bits in the bench: how they are stored, and products of them."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.bench.judge import Answer, judge
from asmdnn.bench.values import decoded, encoded, is_integer
from tests.bench.test_command import run

FORMATS: dict[dnn.DataType, Any] = {dnn.f8_e5m2: ml_dtypes.float8_e5m2, dnn.f8_e4m3: ml_dtypes.float8_e4m3fn}
TYPES = "f8_e4m3,f8_e5m2,f8_e4m3:f8_e5m2:f32,f8_e5m2:f8_e4m3:f8_e4m3,bf16:f8_e4m3:bf16"


@pytest.mark.parametrize("dtype", FORMATS, ids=str)
def test_bytes(dtype: dnn.DataType) -> None:
    """As ml_dtypes has them: all bytes, and numbers of all sizes, in the middle of two, too large, and none."""
    codes, random = np.arange(256, dtype=np.uint8), np.random.default_rng(1)
    numbers = codes.view(FORMATS[dtype]).astype(np.float32)
    np.testing.assert_array_equal(decoded(codes, dtype), numbers)
    finite = np.sort(numbers[np.isfinite(numbers)])
    sizes = random.standard_normal(20000) * np.exp2(random.integers(-20, 18, 20000))
    ends = [np.nan, np.inf, -np.inf, 0.0, -0.0, 464, 465, 480, 61439, 61440]
    x = np.concatenate([sizes, (finite[1:] + finite[:-1]) / 2, ends]).astype(np.float32)
    np.testing.assert_array_equal(encoded(x, dtype), x.astype(FORMATS[dtype]).view(np.uint8))
    assert not is_integer(dtype)


def test_products(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--mode=C", f"--dt={TYPES}", "--bia-dt=undef,f32", "--attr-post-ops=,relu+sum:0.5", "--wtag=any,ab")
    status, records = run(capsys, "--matmul", *words, "13x70:70x33", "1x700:700x33")
    assert [record["reason"] for record in records if record["status"] != "passed"] == []
    assert status == 0 and len(records) == 5 * 2 * 2 * 2 * 2
    assert all(record["impl"].startswith("f8+") for record in records)


def test_no_number_is_right_only_where_it_is_the_answer() -> None:
    values = np.float64([np.nan, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
    assert not judge(values, Answer(values, 0.0, ""), exact=True).reason
    wrong = np.where(values == 3, np.nan, values)
    assert "nan instead of 3" in judge(wrong, Answer(values, 0.0, ""), exact=True).reason
    wrong = np.where(np.isnan(values), 1, values)
    assert "1 instead of nan" in judge(wrong, Answer(values, 0.0, ""), exact=True).reason
    nothing = values[[0] * 11]
    assert judge(nothing, Answer(nothing, 0.0, ""), exact=True).doubt
