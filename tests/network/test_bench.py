"""`asmdnn bench --network`."""

from pathlib import Path

import numpy as np
import pytest

from asmdnn.bench.peers import models
from asmdnn.cli import bench_network
from asmdnn.cli.main import main
from tests.network import wire
from tests.network.nets import random

pytestmark = pytest.mark.isa("avx2")


@pytest.fixture
def model(tmp_path: Path) -> str:
    nodes = [
        wire.node("MatMul", ["x", "w"], ["p"]),
        wire.node("Mul", ["p", "s"], ["m"]),
        wire.node("Relu", ["m"], ["y"]),
    ]
    body = wire.graph(nodes, {"x": ("n", 8), "s": ()}, ["y"], {"w": random(8, 5)})
    path = tmp_path / "product.onnx"
    path.write_bytes(wire.model(body))
    return str(path)


WORDS = ["--shapes", "x=4x8", "--constant=s:2", "--max-ms=20"]


def test_rows(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("onnxruntime", reason="the networks extra: pip install onnx onnxruntime")
    np.save(tmp_path / "x.npy", random(4, 8))
    more = ["--threads=1,2", "--peer=onnxruntime", f"--input=x:{tmp_path}/x.npy"]
    assert main(["bench", "--network", model, *WORDS, *more]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line[:2] for line in lines[1:]] == [
        ["1", "asmdnn"], ["1", "onnxruntime"], ["2", "asmdnn"], ["2", "onnxruntime"]
    ]  # fmt: skip
    assert float(lines[2][5]) < 1e-6


def test_a_peer_that_is_not_installed_costs_a_line(
    model: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_: object) -> models.Model:
        raise ImportError

    monkeypatch.setattr(models, "PEERS", {**models.PEERS, "openvino": missing})
    assert main(["bench", f"--network={model}", *WORDS, "--threads=1", "--peer=openvino"]) == 0
    assert "openvino         is not installed: pip install openvino" in capsys.readouterr().out


def test_precisions_and_libraries_that_round_are_compared_but_not_judged(
    model: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(models, "PEERS", {"openvino-default": lambda *_: lambda: {"y": np.full((4, 5), 1e6)}})
    more = ["--threads=1", "--precision=f32,bf16", "--peer=openvino-default"]
    assert main(["bench", "--network", model, *WORDS, *more]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[2][1:3] == ["asmdnn", "bf16"]
    assert lines[3][1] == "openvino-default"
    assert float(lines[3][5]) > 0.9


def test_openvino_is_held_to_f32_or_left_alone() -> None:
    held = models.PEERS["openvino"]
    assert getattr(held, "keywords", None) == {"precision": "f32"}
    assert models.PEERS["openvino-default"] is models.openvino_model


def test_another_answer_fails(model: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "PEERS", {"onnxruntime": lambda *_: lambda: {"y": np.full((4, 5), 1e6)}})
    assert main(["bench", "--network", model, *WORDS, "--threads=1", "--peer=onnxruntime"]) == 1


@pytest.mark.parametrize("is_float", [False, True])
@pytest.mark.parametrize("command", [["bench", "--network"], ["run"]])
def test_a_step_of_bytes_is_no_other_answer(
    command: list[str], is_float: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two are, and so is a step of what is no integer."""
    nodes = [wire.node("Relu", ["x"], ["r"]), wire.node("QuantizeLinear", ["r", "s", "z"], ["q"])]
    nodes += [wire.node("DequantizeLinear", ["q", "s", "z"], ["y"])] if is_float else []
    y, step = ("y", 0.25) if is_float else ("q", 1)
    constants = {"s": np.float32(0.25), "z": np.uint8(3)}
    body = wire.graph(nodes, {"x": (2, 4)}, [y, "r"], constants)
    (path := tmp_path / "bytes.onnx").write_bytes(wire.model(body))
    x = random(2, 4)
    np.save(tmp_path / "x.npy", x)
    relu = np.maximum(x, 0)
    bytes_of_x = np.rint(relu / 0.25) + 3
    mine = {y: (bytes_of_x - 3) * 0.25 if is_float else bytes_of_x, "r": relu}

    def status(name: str, off: float) -> int:
        theirs = {**mine, name: mine[name] + np.float32(off)}
        monkeypatch.setattr(models, "PEERS", {"onnxruntime": lambda *_: lambda: theirs})
        more = [f"--input=x:{tmp_path}/x.npy", "--peer=onnxruntime"]
        return main([*command, str(path), *more, *(["--max-ms=5", "--threads=1"] if len(command) == 2 else [])])

    assert [status(y, step), status(y, -step), status(y, 2 * step), status("r", 0.3)] == [0, 0, 1, 1]


@pytest.mark.parametrize("words", [["--peer=tvm"], ["--nonsense"], ["--max-ms=x"], ["--threads=0.5"], ["a.onnx"]])
def test_bad_words(words: list[str], model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--network", model, *WORDS, *words]) == 2
    shown = capsys.readouterr()
    assert len(shown.err.splitlines()) == 1
    assert "--peer" not in words[0] or not shown.out  # before anything is run


def test_a_model_is_word_enough(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench_network, "MAX_MS", 20)
    path = tmp_path / "map.onnx"
    path.write_bytes(wire.model(wire.graph([wire.node("Relu", ["x"], ["y"])], {"x": (1, 8)}, ["y"])))
    assert main(["bench", f"--network={path}"]) == 0
    assert "asmdnn" in capsys.readouterr().out.splitlines()[1]
    assert main(["bench", "--network", str(tmp_path / "lost.onnx")]) == 2
    assert "lost.onnx' cannot be read" in capsys.readouterr().err


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--network", "--help"]) == 0
    assert "--shapes=NAME=1x3x48x320" in capsys.readouterr().out
