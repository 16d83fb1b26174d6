"""--conv and --deconv backward: words, answers against the definition, checks against numpy, the peer."""

from typing import Any

import numpy as np
import pytest

from asmdnn.bench.conv_work import ConvWork
from asmdnn.bench.driver import TensorData
from asmdnn.errors import Unimplemented
from tests.bench.test_command import run
from tests.primitives import conv_gradients as reference
from tests.support.cases import read
from tests.support.peers import onednn

PROBLEMS = ["mb2ic6ih7oc4kh3sh2ph1", "g2mb2ic6iw7oc4kw3dw1pw2", "mb1ic2id3ih4iw5oc3kd2kh3kw2ph1pd0pw0"]


def work(words: str) -> ConvWork:
    (case,) = read(words)
    made = case.driver.work(case)
    assert isinstance(made, ConvWork)
    return made


@pytest.mark.parametrize("driver", ["--conv", "--deconv"])
@pytest.mark.parametrize("text", PROBLEMS)
def test_answers_are_the_definition(driver: str, text: str) -> None:
    made = work(f"{driver} --dir=BWD_D {text}")
    p = made.problem
    weights, diff_dst = reference.integers(1, p.weights_dims), reference.integers(2, p.dst_dims)
    answer = made.answer(TensorData({"weights": weights, "diff_dst": diff_dst}, exact=True))
    assert np.array_equal(answer.values, reference.of_data(p, weights, diff_dst))


@pytest.mark.parametrize("driver", ["--conv", "--deconv"])
@pytest.mark.parametrize("text", PROBLEMS)
def test_answers_of_weights_are_the_definition(driver: str, text: str) -> None:
    made = work(f"{driver} --dir=BWD_WB {text}")
    p = made.problem
    src, diff_dst = reference.integers(1, p.src_dims), reference.integers(2, p.dst_dims)
    answer = made.answer(TensorData({"src": src, "diff_dst": diff_dst}, exact=True))
    bias = diff_dst.sum(axis=(0, *range(2, diff_dst.ndim)))
    assert np.array_equal(answer.values, np.concatenate((reference.of_weights(p, src, diff_dst).ravel(), bias)))


def test_post_ops_of_gradients(capsys: pytest.CaptureFixture[str]) -> None:
    """As results have them; a depthwise convolution is one after a result only."""
    words = ("--dir=BWD_D", "--attr-post-ops=relu,sum:0.5+tanh,add:f32:per_tensor", PROBLEMS[0])
    code, records = run(capsys, "--conv", *words, "--deconv", *words)
    assert code == 0
    assert [record["status"] for record in records] == ["passed"] * 6
    code, (refused,) = run(capsys, "--conv", "--dir=BWD_D", "--attr-post-ops=relu+dw:k3s1p1", PROBLEMS[0])
    assert (code, refused["status"]) == (1, "unimplemented")
    assert "a gradient has no depthwise post-op" in refused["reason"]


@pytest.mark.parametrize("words", ["--attr-scales=src:common:2", "--attr-zero-points=src:common:1"])
@pytest.mark.parametrize("case", ["--conv --dir=BWD_D", "--deconv --dir=BWD_W"])
def test_scales_and_zero_points_of_gradients_are_not_passed_over(words: str, case: str) -> None:
    with pytest.raises(Unimplemented, match=f"{words.partition('=')[0]}: a gradient has none"):
        work(f"{case} {words} {PROBLEMS[0]}")


def test_a_case_prints_what_repeats_it() -> None:
    words = "--conv --dir=BWD_D --stag=nhwc --alg=auto --mb=3 ic16ih9oc24kh3ph1"
    (case,) = read(words)
    assert read(str(case)) == [case]


def test_cases_pass(capsys: pytest.CaptureFixture[str]) -> None:
    modes = ("--mode=C", "--stag=any,nchw", "--dtag=any,nhwc")
    words = ("--conv", "--dir=BWD_D,BWD_W,BWD_WB", *modes, *PROBLEMS[:1], "--alg=auto,wino", "mb1ic16ih8oc9kh3ph1")
    code, records = run(capsys, *words, "--deconv", "--dir=BWD_D", *modes, PROBLEMS[0])
    assert code == 0
    assert {record["status"] for record in records} == {"passed"}
    assert len(records) == 3 * (4 + 8) + 4


def test_half_floats_pass(capsys: pytest.CaptureFixture[str]) -> None:
    """Types are those of src or diff_src, of weights or diff_weights, and of diff_dst."""
    types = "--dt=bf16,f16,f32:bf16:bf16"
    code, records = run(capsys, "--conv", "--mode=C", "--dir=BWD_D", types, PROBLEMS[0])
    assert code == 0 and len(records) == 3
    words = ("--mode=C", "--dir=BWD_WB", "--dt=bf16,f16,bf16:f32:bf16", PROBLEMS[0])
    code, records = run(capsys, "--conv", *words, "--deconv", *words)
    assert code == 0 and len(records) == 6
    assert {record["status"] for record in records} == {"passed"}


peer = pytest.fixture(scope="module")(onednn)


@pytest.mark.usefixtures("peer")
def test_a_peer_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    arguments: Any = ("--mode=C", "--threads=1", "--peer=onednn", "--dir=BWD_D,BWD_WB", PROBLEMS[0])
    code, records = run(capsys, "--conv", *arguments, "--deconv", *arguments)
    assert code == 0, records
