"""`asmdnn bench` end to end on small problems: what passes, what fails, what is skipped, and what is written where."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.bench import case as bench_case
from asmdnn.bench.driver import Array, Data
from asmdnn.bench.own import Own
from asmdnn.cli.main import main
from asmdnn.errors import Unimplemented
from asmdnn.isa import cpu
from asmdnn.isa.levels import isa_of
from asmdnn.planning import host
from asmdnn.planning.host import effective_isa
from tests.support.peers import onednn

SMALL = "mb1ic16ih6oc16kh3ph1"
QUICK = "--max-ms-per-prb=1"


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, list[dict[str, Any]]]:
    """The exit status and the JSON records of a bench command; what it says on stderr is shown when a test fails."""
    status = main(["bench", "--json=-", *words])
    said = capsys.readouterr()
    sys.stderr.write(said.err)
    return status, [json.loads(line) for line in said.out.splitlines()]


peer = pytest.fixture(scope="module")(onednn)


@pytest.mark.parametrize("direction", ["FWD_I", "FWD_D", "FWD_B"])
@pytest.mark.parametrize("post_ops", ["", "sum", "relu", "sum+relu"])
def test_small_problems_are_right(capsys: pytest.CaptureFixture[str], direction: str, post_ops: str) -> None:
    problems = ("mb2ic3ih9oc7kh3sh2ph1", "mb1ic17ih5iw8oc16kh1kw1", 'ic8ih7oc24kh5ph2n"five"')
    status, records = run(capsys, f"--dir={direction}", f"--attr-post-ops={post_ops}", *problems)
    assert [record["reason"] for record in records] == ["", "", ""]
    assert status == 0
    for record in records:
        assert record["ok"] is True
        assert record["status"] == "passed"
        assert record["reference"] == "numpy"
        assert 0 <= record["error_ratio"] < 1
        assert record["us"] is None
    assert records[2]["name"] == "five"


@pytest.mark.parametrize("tag", ["nchw", "nhwc", "nChw8c"])
def test_given_layouts(capsys: pytest.CaptureFixture[str], tag: str) -> None:
    status, (record,) = run(capsys, f"--stag={tag}", f"--dtag={tag}", "--threads=1", "mb2ic16ih6oc32kh3ph1")
    assert (status, record["reason"]) == (0, "")


def test_performance_without_check(capsys: pytest.CaptureFixture[str]) -> None:
    status, (record,) = run(capsys, "--mode=P", QUICK, "--threads=1", SMALL)
    assert (status, record["status"], record["ok"], record["error_ratio"]) == (0, "timed", None, None)
    assert record["us"] > 0
    flops = 2 * 16 * 16 * 16**2  # an axis of 6 under 3 taps with padding has 16 pairs
    assert record["gflops"] == pytest.approx(flops / record["us"] * 1e-3, rel=1e-2)
    assert record["bandwidth_gbs"] == pytest.approx(4 * (2 * 576 + 2304 + 16) / record["us"] * 1e-3, rel=1e-2)
    assert (record["peak_of"], record["peak_fraction"] > 0) == ("FMA", True)
    assert (record["isa"], record["threads"]) == (effective_isa().name, 1)
    assert record["peer"] is record["speedup"] is None


def test_with_the_peer(capsys: pytest.CaptureFixture[str], peer: object) -> None:
    words = ("--mode=CP", "--peer=onednn", QUICK, "--threads=2", "--attr-post-ops=sum+relu", SMALL)
    status, (record,) = run(capsys, *words)
    assert (status, record["status"], record["reason"]) == (0, "passed", "")
    assert record["peer"] == "onednn"
    assert record["peer_impl"]
    assert record["speedup"] == pytest.approx(record["peer_us"] / record["us"], rel=1e-2)
    assert record["low_speedup"] == pytest.approx(record["low_peer_us"] / record["low_us"], rel=1e-2)
    assert record["low_us"] <= record["us"]


def test_the_peer_is_the_reference_of_very_large_problems(
    capsys: pytest.CaptureFixture[str], peer: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench_case, "LARGEST_NUMPY_FLOPS", 1)
    status, (record,) = run(capsys, "--peer=onednn", SMALL)
    assert (status, record["status"], record["reference"]) == (0, "passed", "onednn")


def spoil(monkeypatch: pytest.MonkeyPatch, value: float, when_exact: bool) -> None:
    """Make one element of this library's result wrong, for one of the two kinds of data."""
    compute = Own.compute

    def wrong(self: Own, data: Data) -> Array:
        result = compute(self, data)
        if data.exact == when_exact:
            result[0, 3, 2, 1] += np.float32(value)
        return result

    monkeypatch.setattr(Own, "compute", wrong)


@pytest.mark.parametrize(("value", "when_exact"), [(1.0, True), (0.01, False), (float("nan"), False)])
def test_a_wrong_result_fails(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, value: float, when_exact: bool
) -> None:
    spoil(monkeypatch, value, when_exact)
    status, records = run(capsys, "--mode=CP", QUICK, SMALL, "mb1ic16ih6oc16kh1")
    assert status == 1
    for record in records:
        assert (record["ok"], record["status"], record["us"]) == (False, "failed", None)
        assert "1 of 576 elements are wrong, the first at (0, 3, 2, 1)" in record["reason"]


def test_what_no_implementation_takes_fails(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object) -> None:
        raise Unimplemented("direct: too\nsmall")

    monkeypatch.setattr(bench_case, "Own", refuse)
    status, (record,) = run(capsys, SMALL)
    assert (status, record["status"], record["ok"]) == (1, "unimplemented", False)
    assert record["reason"] == "direct: too small"


def test_results_in_place_of_gradients_that_are_sums(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--prelu", "--dir=BWD_DW", "--inplace=true", "2x16x5:2x16x5", "2x16x5:1x16x1")
    status, records = run(capsys, *words)
    assert status == 0
    assert [record["status"] for record in records] == ["passed", "passed"]


def test_memory_that_a_plan_reads_later_is_unimplemented() -> None:
    """Of a result that replaces an input."""
    tensor = dnn.MemoryDesc((16, 16), dnn.f32, "ab")
    product, engine = dnn.MatMul(tensor, tensor, tensor), dnn.Engine(isa="avx2", threads=1)
    with pytest.raises(dnn.Unimplemented, match=r"dst is not the memory of src, which .* reads later"):
        Own(product, dnn.Attr(), engine, {"dst": "src"})


def test_what_comes_later_is_unimplemented_and_what_is_too_large_skipped(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--dt=e8m0", SMALL, "--dt=f32", "mb200000ic512ih224oc512kh1")
    status, records = run(capsys, *words)
    assert status == 1  # of the first, which was asked for on the command line
    assert [(record["status"], record["ok"]) for record in records] == [("unimplemented", False), ("skipped", None)]
    known = "f32, bf16, f16, s32, s8, u8, s4, u4, f8_e5m2, f8_e4m3"
    assert records[0]["reason"] == f"--dt=e8m0: e8m0 is not built yet, only {known}"
    assert "GiB of memory" in records[1]["reason"]


def test_table_and_json_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    assert main(["bench", f"--json={path}", SMALL, "--engine=gpu", "ic4ih4oc4kh1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("problem ")
    assert lines[1].startswith("mb1ic16ih6oc16oh6kh3ph1 ")
    assert lines[1].endswith("  passed")
    assert lines[-1] == (
        "tests:2 passed:1 skipped:1 mistrusted:0 unimplemented:0 invalid_arguments:0 failed:0 listed:0"
    )
    assert [json.loads(line)["status"] for line in path.read_text().splitlines()] == ["passed", "skipped"]


def test_an_isa_that_this_machine_lacks(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "cpu_features", isa_of("avx2").features.copy)
    monkeypatch.setattr(host, "_executable", set())  # what tests before this one have executed
    assert main(["bench", "--isa=avx512_core", SMALL]) == 2
    assert "isa avx512_core cannot be executed here" in capsys.readouterr().err


def test_nothing_but_results_in_a_pipe() -> None:
    command = [sys.executable, "-m", "asmdnn", "bench", "--json=-", SMALL, SMALL]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0
    assert len([json.loads(line) for line in done.stdout.splitlines()]) == 2
    assert done.stderr.startswith("tests:2 passed:2 ")
