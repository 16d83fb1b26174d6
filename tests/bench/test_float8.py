"""Floats of 8 and 4 bits in the bench: how they are stored, and products of them."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.bench.judge import Answer, judge
from asmdnn.bench.values import decoded, encoded, is_integer
from asmdnn.isa.small_floats import TABLES
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


LAYERS = (
    "--conv --dir=FWD_B,FWD_I {} mb2ic16ih9oc24kh3ph1 mb2ic7ih5oc5kh1 g4mb1ic8ih5oc8kh3ph1 ic20id3ih4iw5oc9kd2kh2kw2",
    "--ip --dir=FWD_B,FWD_I {} mb3ic16ih2oc18 mb1ic40oc24",
    "--deconv --dir=FWD_B,FWD_I {} mb2ic16ih5oc24kh3sh2ph1 g2mb1ic8ih5oc12kh3",
)


@pytest.mark.parametrize("words", LAYERS)
def test_layers(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = f"--mode=C --dt={TYPES} --attr-post-ops=,relu --attr-scales=,src:common:0.5+wei:per_oc --wtag=any,abx"
    status, records = run(capsys, *words.format(options).split())
    assert [record["reason"] for record in records if record["status"] != "passed"] == []
    assert status == 0 and len(records) >= 2 * 5 * 2 * 2 * 2 * 2
    assert all("f8+" in record["impl"] for record in records)


def test_a_bias_of_8_bits(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--mode=C", "--dt=f8_e4m3:f8_e4m3:f32", "--bia-dt=f8_e4m3,f8_e5m2")
    status, records = run(capsys, "--matmul", *words, "9x40:40x33", "--conv", *words, "mb1ic8ih5oc16kh3")
    assert [record["status"] for record in records] == ["passed"] * 4 and status == 0


def test_gradients_of_data(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--mode=C", f"--dt={TYPES}", "--dir=BWD_D", "--wtag=any,abx")
    status, records = run(capsys, *words, "mb1ic8ih5oc16kh3", "g4mb1ic8ih5oc8kh3", "--deconv", *words, "ic8ih5oc16kh3")
    assert [record["reason"] for record in records if record["status"] != "passed"] == []
    assert status == 0 and len(records) == 3 * 5 * 2
    assert all("f8+" in record["impl"] for record in records)


def test_gradients_of_inner_products_are_not_built(capsys: pytest.CaptureFixture[str]) -> None:
    status, (record,) = run(capsys, "--ip", "--dir=BWD_WB", "--dt=f8_e4m3", "mb3ic16oc18")
    assert (status, record["status"]) == (1, "unimplemented")
    assert "is f8_e4m3, use f32" in record["reason"]


def test_codes_of_4_bits() -> None:
    """f4_e2m1 as ml_dtypes has it, nf4 as the kernels' table, whose numbers are bitsandbytes'; both to the nearest."""
    codes = np.arange(16, dtype=np.uint8)
    numbers = codes.view(ml_dtypes.float4_e2m1fn).astype(np.float32)
    np.testing.assert_array_equal(decoded(codes, dnn.f4_e2m1), numbers)
    np.testing.assert_array_equal(decoded(codes, dnn.nf4), np.float32(TABLES[dnn.nf4.name]))
    x = np.concatenate([np.random.default_rng(1).uniform(-7, 7, 5000), np.arange(-28, 29) / 4]).astype(np.float32)
    np.testing.assert_array_equal(encoded(x, dnn.f4_e2m1), x.astype(ml_dtypes.float4_e2m1fn).view(np.uint8))
    assert (decoded(encoded(decoded(codes, dnn.nf4), dnn.nf4), dnn.nf4) == decoded(codes, dnn.nf4)).all()
    found, table = decoded(encoded(x, dnn.nf4), dnn.nf4), decoded(codes, dnn.nf4)
    np.testing.assert_allclose(np.abs(found - x), np.abs(table[:, None] - x).min(0), rtol=1e-6)
    assert not is_integer(dnn.nf4) and not is_integer(dnn.f4_e2m1)


def test_weights_of_tables(capsys: pytest.CaptureFixture[str]) -> None:
    """By groups, by columns, with one scale and without; panels and plain weights."""
    scales = "--attr-scales=,wei:per_ocic:f32:32x1,wei:per_oc,wei:common:2"
    words = ("--mode=C", "--dt=f32:f4_e2m1:f32,bf16:nf4:f32,f32:nf4:f32,f16:f4_e2m1:f16", scales)
    status, records = run(capsys, "--matmul", *words, "--wtag=any,ab,ba", "1x64:64x34", "5x64:64x16", "33x64:64x40")
    assert [record["reason"] for record in records if record["status"] != "passed"] == []
    assert status == 0 and len(records) == 4 * 4 * 3 * 3
    assert all("unpacking:" in record["impl"] for record in records)


@pytest.mark.parametrize("words", ["--conv --dt=f32:nf4:f32 mb1ic8ih5oc16kh3", "--ip --dt=f32:f4_e2m1:f32 mb3ic16oc18"])
def test_tables_are_weights_of_matrices(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, (record,) = run(capsys, *words.split())
    assert (status, record["status"]) == (1, "unimplemented")
    assert "is not built yet, only f32" in record["reason"]


def test_zero_points_of_tables_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--dt=f32:nf4:f32", "--attr-zero-points=wei:common:1", "4x64:64x16")
    status, (record,) = run(capsys, "--matmul", *words)
    assert (status, record["status"]) == (1, "unimplemented")
    assert "nf4" in record["reason"]


def test_no_number_is_right_only_where_it_is_the_answer() -> None:
    values = np.float64([np.nan, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
    assert not judge(values, Answer(values, 0.0, ""), exact=True).reason
    wrong = np.where(values == 3, np.nan, values)
    assert "nan instead of 3" in judge(wrong, Answer(values, 0.0, ""), exact=True).reason
    wrong = np.where(np.isnan(values), 1, values)
    assert "1 instead of nan" in judge(wrong, Answer(values, 0.0, ""), exact=True).reason
    nothing = values[[0] * 11]
    assert judge(nothing, Answer(nothing, 0.0, ""), exact=True).doubt
