"""--rnn: problems, words, answers, and the peers."""

import json
from contextlib import closing
from typing import Any

import numpy as np
import pytest

from asmdnn.bench.judge import judge
from asmdnn.bench.recurrent.problem import RnnProblem, rnn_problem
from asmdnn.bench.recurrent_work import RnnWork
from asmdnn.cli.main import main
from asmdnn.errors import InvalidArguments, Unimplemented
from asmdnn.isa.vectors import f32_level
from asmdnn.planning.host import effective_isa
from tests.bench.test_command import run
from tests.support import peers
from tests.support.cases import read

EVERY_CELL = "--alg=VANILLA_RNN,VANILLA_LSTM,VANILLA_GRU,LBR_GRU"
EVERY_WAY = "--direction=left2right,right2left,concat,sum"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sic16", RnnProblem(1, 1, 2, 16, 16, 16, 16)),
        ("l2t3mb4_sic16_slc8_dhc32", RnnProblem(2, 3, 4, 16, 8, 32, 32)),
        ('l1t5mb1sic4slc8dhc6dic4n"a*3"', RnnProblem(1, 5, 1, 4, 8, 6, 4, "a*3")),
    ],
)
def test_problems(text: str, expected: RnnProblem) -> None:
    assert rnn_problem(text) == expected
    assert rnn_problem(str(expected)) == expected
    assert expected.count == (3 if "*3" in text else 1)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("t5mb2", "'sic' is missing"),
        ("t0sic4", "'t' at position 1 is 0, it must be at least 1"),
        ("sic4dlc4", "unknown key 'dlc'"),
        ("t2000000000mb2000000000sic2000000000", "more elements than memory can address"),
    ],
)
def test_texts_that_are_no_problem(text: str, says: str) -> None:
    with pytest.raises(InvalidArguments, match=says):
        rnn_problem(text)


@pytest.mark.parametrize(
    "words",
    [
        "--rnn --dir=FWD_D --alg=LBR_GRU --direction=sum --trivial-strides=false --use-packed=false t3sic8",
        "--rnn --alg=VANILLA_LSTM --with-peephole=true --with-projection=true --activation=TANH t3sic8dhc16dic8",
        "--rnn --prop=FWD_D --l=2 --t=3 --mb=4 --tag=any:any:any --scaling= --skip-nonlinear=false --cfg=f32 sic8",
        "--rnn --alg=VANILLA_LSTM --cfg=u8u8u8u8 --scaling=common t3sic8",
    ],
)
def test_a_case_prints_what_repeats_it(words: str) -> None:
    (case,) = read(words)
    assert read(str(case)) == [case]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("dic4dhc8sic4", "dic4 differs from dhc8, which takes --alg=VANILLA_LSTM --with-projection=true"),
        ("t2sic4dhc8", "sic4 differs from dic8"),
        ("l2slc4sic8", "slc4 differs from the 8 channels of dst_layer"),
        ("--direction=concat l2sic8", "slc8 differs from the 16 channels of dst_layer"),
    ],
)
def test_problems_of_no_layer_are_skipped(words: str, says: str) -> None:
    case = read(f"--rnn {words}")[-1]
    assert says in case.driver.work(case)


def test_options_of_other_cells(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--rnn", "--alg=LBR_GRU", "--with-peephole=true", "sic8"]) == 2
    assert "--with-peephole=true is for --alg=VANILLA_LSTM, not LBR_GRU" in capsys.readouterr().err
    assert main(["bench", "--rnn", "--alg=LBR_AUGRU", "sic8"]) == 1
    assert "LBR_AUGRU is not built yet" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        f"{EVERY_CELL} {EVERY_WAY} --activation=TANH t4mb3sic13",
        f"{EVERY_CELL} --trivial-strides=false --use-packed=false --activation=LOGISTIC --l=2 t3mb2sic24",
        "--alg=VANILLA_LSTM --with-peephole=true,false --with-projection=true t4mb2sic5slc16dhc16dic5",
        "t50mb1sic32",
        f"{EVERY_CELL} --dir=BWD_DW {EVERY_WAY} --activation=LOGISTIC t3mb2sic13",
        "--dir=BWD_DW --alg=VANILLA_LSTM --trivial-strides=false --use-packed=false --l=2 t3mb2sic24",
    ],
)
def test_layers_are_right(capsys: pytest.CaptureFixture[str], words: str) -> None:
    status, records = run(capsys, "--rnn", "--threads=2", *words.split())
    assert [record["reason"] for record in records if record["status"] != "passed"] == []
    assert status == 0
    assert all(record["impl"].endswith(f"floats:{f32_level(record['isa'])}") for record in records)
    assert all(0 < record["error_ratio"] < 0.5 for record in records)


@pytest.mark.parametrize(("scaling", "count"), [("", 4 * 16), ("per_oc", 4 * 16), ("common", 1)])
def test_scales_of_weights(capsys: pytest.CaptureFixture[str], scaling: str, count: int) -> None:
    words = f"--alg=VANILLA_LSTM --cfg=u8u8u8u8,f32u8f32f32 --scaling={scaling} t3mb2sic16"
    assert len(work(words).desc.rnn_weights_qparams) == count
    status, records = run(capsys, "--rnn", *words.split())
    assert [record["status"] for record in records] == ["passed", "passed"], records
    assert status == 0


def work(words: str) -> RnnWork:
    case = read(f"--rnn {words}")[-1]
    made = case.driver.work(case)
    assert isinstance(made, RnnWork)
    return made


def test_wrong_results_are_found() -> None:
    """The bounds are small enough that one wrong weight of an iteration shows."""
    made = work("--alg=VANILLA_LSTM t20mb2sic64")
    data = made.data(exact=False)
    answer = made.answer(data)
    assert np.max(answer.tolerance) < 2e-4
    assert made.tolerance(data) >= np.max(answer.tolerance) / 2
    weights = np.array(data.arrays["weights_iter"])
    data.arrays["weights_iter"][..., 5, :, :] = 0  # type: ignore[index]
    other = made.answer(data)
    data.arrays["weights_iter"][:] = weights  # type: ignore[index]
    assert judge(other.values.astype(np.float32), answer, exact=False).reason


def test_flops_are_those_of_the_products() -> None:
    assert work("--alg=VANILLA_LSTM --direction=concat t5mb3sic16slc8").flops == 2 * 2 * 5 * 3 * (8 + 16) * 4 * 16
    assert work("--alg=LBR_GRU --dir=BWD_DW t5mb3sic16").flops == 2 * work("--alg=LBR_GRU --dir=FWD_D t5mb3sic16").flops
    projected = work("--alg=VANILLA_LSTM --with-projection=true t5mb3sic4slc8dhc16dic4")
    assert projected.flops == 2 * 5 * 3 * ((8 + 4) * 4 * 16 + 16 * 4)


def test_weights_that_are_packed_are_any() -> None:
    for is_packed in (False, True):
        desc, _ = work(f"--use-packed={is_packed} sic8").describe()
        assert [x.is_any for x in (desc.weights_layer, desc.weights_iter, desc.src_layer)] == [is_packed] * 2 + [False]


@pytest.mark.parametrize(
    ("name", "problems"),
    [("rnn_lstm", 15), ("rnn_gru", 24), ("rnn_small", 28), ("deepspeech2", 10), ("gnmt", 8)],
)
def test_problem_sets_can_be_described(name: str, problems: int) -> None:
    cases = read(f"--batch={name}")
    assert [case.driver.name for case in cases] == ["rnn"] * problems
    assert len(set(map(str, cases))) == problems
    for case in cases:
        assert case.driver.work(case).flops > 0


onednn = pytest.fixture(scope="module")(peers.onednn)


@pytest.mark.usefixtures("onednn")
@pytest.mark.parametrize(
    "words",
    [
        f"{EVERY_CELL} {EVERY_WAY} --activation=RELU t4mb3sic13",
        f"{EVERY_CELL} --dir=FWD_D --direction=right2left --trivial-strides=false --use-packed=false --l=2 t3mb2sic24",
        "--dir=FWD_I,BWD_DW --alg=VANILLA_LSTM --with-peephole=true --with-projection=true t4mb2sic5slc16dhc16dic5",
        f"{EVERY_CELL} {EVERY_WAY} --dir=BWD_DW --activation=TANH t3mb2sic9",
    ],
)
def test_onednn_agrees(words: str) -> None:
    for case in read(f"--rnn {words}"):
        made = case.driver.work(case)
        data = made.data(exact=False)
        with closing(made.peer(effective_isa().name, 1)) as side:
            verdict = judge(side.compute(data), made.answer(data), exact=False)
        assert not verdict.reason, str(case)


@pytest.mark.usefixtures("onednn")
def test_onednn_stacks_directions_apart() -> None:
    with pytest.raises(Unimplemented, match="both directions are stacks of their own"):
        work("--direction=concat l2sic8slc16").peer(effective_isa().name, 1)


@pytest.mark.parametrize(
    "words",
    [
        "--alg=VANILLA_RNN,VANILLA_LSTM,LBR_GRU --direction=left2right --l=1,3 --activation=TANH t4mb3sic13",
        "--alg=VANILLA_LSTM,LBR_GRU --direction=concat l2t4mb3sic6slc12",
        "--alg=VANILLA_LSTM --with-projection=true t4mb2sic5slc16dhc16dic5",
    ],
)
@pytest.mark.filterwarnings("ignore:LSTM with projections is not supported with oneDNN")
def test_torch_agrees(words: str) -> None:
    pytest.importorskip("torch", reason="the peer torch is not compared: pip install torch")
    for case in read(f"--peer=torch --rnn {words}"):
        made = case.driver.work(case)
        data = made.data(exact=False)
        with closing(made.peer("avx2", 1)) as side:
            verdict = judge(side.compute(data), made.answer(data), exact=False)
        assert not verdict.reason, str(case)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("--alg=VANILLA_GRU sic8", "a GRU is linear before reset"),
        ("--dir=FWD_D sic8", "only --dir=FWD_I is compared"),
        ("--direction=sum sic8", "--direction=left2right or concat, not sum"),
        ("--alg=VANILLA_LSTM --with-peephole=true sic8", "no peephole"),
    ],
)
def test_what_torch_does_not_have(words: str, says: str) -> None:
    pytest.importorskip("torch", reason="the peer torch is not compared: pip install torch")
    with pytest.raises(Unimplemented, match=says):
        work(f"--peer=torch {words}").peer("avx2", 1)


def test_without_torch_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from asmdnn.bench.peers import torch_rnn

    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    torch_rnn.load_torch.cache_clear()
    assert main(["bench", "--rnn", "--peer=torch", "sic8"]) == 2
    assert "pip install torch" in capsys.readouterr().err
    torch_rnn.load_torch.cache_clear()


def test_records_are_those_of_layers(capsys: pytest.CaptureFixture[str]) -> None:
    words = "bench --json=- --rnn --mode=CP --max-ms-per-prb=1 --alg=LBR_GRU --direction=concat t3mb2sic16"
    assert main(words.split()) == 0
    record: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert record["title"] == "lbr_gru concat l1t3mb2sic16slc16dhc16dic16"
    assert record["driver"] == "rnn" and record["gflops"] > 0 and record["reference"] == "numpy"


ONE_STEP = "l1t1mb3sic17slc8dhc19dic19 l2t1mb2sic7slc19dhc19"


def test_a_state_of_another_width_in_one_step(capsys: pytest.CaptureFixture[str]) -> None:
    words = f"--rnn --dir=FWD_I,BWD_DW --alg=VANILLA_LSTM --threads=1 {ONE_STEP} --with-projection=true"
    status, records = run(capsys, *words.split(), "--direction=concat", "t1mb3sic7slc8dhc19dic5")
    assert status == 0 and len(records) == 6
    assert [record["reason"] for record in records if record["status"] != "passed"] == []
    _, (several, gru) = run(capsys, "--rnn", "--alg=VANILLA_LSTM", "t2sic7dhc19", "--alg=LBR_GRU", "t1sic7dhc19")
    assert "sic7 differs from dic19" in several["reason"] and "sic7 differs from dic19" in gru["reason"]


@pytest.mark.isa("avx2")
def test_types(capsys: pytest.CaptureFixture[str]) -> None:
    """bf16 and f16 of every cell, and of their gradients; bytes of LSTM and GRU, with states and results of f32."""
    status, records = run(capsys, "--rnn", EVERY_CELL, "--cfg=bf16,f16,bf16f32", "--max-ms-per-prb=1", "t3mb3sic9")
    assert (status, {record["status"] for record in records}, len(records)) == (0, {"passed"}, 12)
    words = ("--dir=BWD_DW", "--cfg=bf16,f16", "--activation=TANH", "t3mb3sic9")
    status, records = run(capsys, "--rnn", EVERY_CELL, *words)
    assert (status, {record["status"] for record in records}, len(records)) == (0, {"passed"}, 8)
    cfg = "--cfg=u8u8u8u8,u8u8u8f32,f32u8f32u8,f32u8f32f32"
    algs = "--alg=VANILLA_LSTM,VANILLA_GRU"
    status, records = run(capsys, "--rnn", algs, cfg, "--max-ms-per-prb=1", "t3mb3sic9", "t2mb1sic16slc5")
    assert (status, {record["status"] for record in records}, len(records)) == (0, {"passed"}, 16)
    case = read("--rnn --cfg=u8u8u8u8 --alg=LBR_GRU sic9")[-1]
    assert "--cfg=u8u8u8u8 is of VANILLA_LSTM and VANILLA_GRU, inference" in case.driver.work(case)
