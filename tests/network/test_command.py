"""`asmdnn run`."""

import json
from pathlib import Path

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.bench.peers import models
from asmdnn.cli.main import main
from asmdnn.cli.models import model_words
from tests.network import wire
from tests.network.nets import random

pytestmark = pytest.mark.isa("avx2")


def test_a_model_is_run(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save(tmp_path / "x.npy", random(1, 3, 6, 7))
    words = ["--shape=x:1x3x6x7", "--constant=s:2", "--threads=1", f"--input=x:{tmp_path}/x.npy"]
    more = ["--check", "--verify", "--profile", f"--output={tmp_path}/out.npz"]
    assert main(["run", *words, *more, model]) == 0
    printed = capsys.readouterr().out
    for text in ("proved", "y float32 1x8x6x7 from", "within its bound", "Conv 'first' + Relu, Mul", "ms, the least"):
        assert text in printed
    assert np.load(tmp_path / "out.npz")["y"].shape == (1, 8, 6, 7)


def test_a_run_for_programs(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--shape=x:1x3x6x7", "--constant=s:2", "--threads=1"]
    assert main(["run", *words, "--json", "--verify", "--profile", model]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["outputs"]["y"]["type"] == "float32" and found["outputs"]["y"]["dims"] == [1, 8, 6, 7]
    assert found["verify"]["wrong"] == [] and found["verify"]["from_float64"]["outputs"]["y"] < 1e-6
    assert found["ms"] > 0 and found["profile"][0]["us"] > 0
    assert any(row["label"].startswith("Conv 'first'") for row in found["profile"])


def test_several_shapes_are_run_in_turn(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--shape=x:1x3x6x7,1x3x9x5", "--constant=s:2", "--threads=1", model]
    assert main(["run", *words]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("x:")] == ["x:1x3x6x7", "x:1x3x9x5"]
    assert sum("ms, the least" in line for line in lines) == 2
    assert any(line.startswith("y float32 1x8x9x5") for line in lines)
    assert main(["run", *words, "--json"]) == 0
    first, second = json.loads(capsys.readouterr().out)["runs"]
    assert first["shape"] == "x:1x3x6x7" and second["outputs"]["y"]["dims"] == [1, 8, 9, 5]


@pytest.mark.parametrize(
    ("command", "words", "message"),
    [
        ("run", ["--shape=x:1x3x6x7", "--shape=x:1x3x9x5"], "--shape says dims of x twice"),
        ("run", ["--shape=x:1x3x6x7,1x3x9x5", "--shape=y:1,2,3"], "--shape says 2 of x, 3 of y: as many of each"),
        ("run", ["--shape=x:1x3x6x7,1x3x9x5", "--output=y.npz"], "files for one shape: say one"),
        ("run", ["--shape=x:1x3x6x7,"], "has no dims such as"),
        ("explain", ["--shape=x:1x3x6x7,1x3x9x5"], "--shape says several dims of x: explain takes one set"),
    ],
)
def test_several_shapes_that_cannot_be_run(
    command: str, words: list[str], message: str, model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, *words, "--constant=s:2", model]) == 2
    assert message in capsys.readouterr().err


def test_the_line_to_paste_is_of_one_batch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also where a later input has it at another place."""
    nodes = [wire.node("MatMul", ["x", "w"], ["xw"]), wire.node("Add", ["xw", "state"], ["y"])]
    inputs = {"x": ("batch", "tokens", 8), "state": (2, "batch", 1, 8)}
    path = tmp_path / "states.onnx"
    path.write_bytes(wire.model(wire.graph(nodes, inputs, ["y"], {"w": random(8, 8)})))
    assert main(["run", str(path)]) == 2
    line = capsys.readouterr().err.partition("such as ")[2].split()
    assert line == ["--shape=x:1x64x8"], "the other one follows from it"
    assert main(["run", *line, "--threads=1", str(path)]) == 0
    assert "y float32 2x1x64x8" in capsys.readouterr().out


def test_what_needs_no_dims(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    node = wire.node("Relu", ["x"], ["y"])
    path = tmp_path / "open.onnx"
    path.write_bytes(wire.model(wire.graph([node], {"x": ("batch", "width")}, ["y"], {})))
    assert main(["run", "--what", str(path)]) == 0
    assert "Relu" in capsys.readouterr().out
    assert main(["run", str(path)]) == 2


def test_a_model_is_explained_for_any_level(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["run", "--shape=x:1x3x6x7", "--constant=s:2", "--isa=avx512_core", "--machine=zen3", "--explain", model])
        == 0
    )
    assert "direct:avx512_core" in capsys.readouterr().out


def test_beside_a_peer(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("onnxruntime", reason="the networks extra: pip install onnx onnxruntime")
    nodes = [wire.node("MatMul", ["x", "w"], ["p"]), wire.node("Relu", ["p"], ["y"])]
    body = wire.graph(nodes, {"x": (4, 8)}, ["y"], {"w": random(8, 5)})
    path = Path(model).with_name("product.onnx")
    path.write_bytes(wire.model(body))
    assert main(["run", "--threads=1", "--peer=onnxruntime", str(path)]) == 0
    assert "onnxruntime differs by" in capsys.readouterr().out


def test_words_of_precision(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each reaches the network: types of ends, nodes that stay f32, and the error for the inputs."""
    x = random(1, 3, 6, 7).astype(np.float16)
    np.save(tmp_path / "x.npy", x)
    words = ["--shape=x:1x3x6x7", "--constant=s:2", "--threads=1", "--precision=bf16", "--keep-f32=first"]
    assert main(["run", *words, "--io=f16", f"--input=x:{tmp_path}/x.npy", "--max-error=0.01", model]) == 0
    assert "y float16 1x8x6x7 from" in capsys.readouterr().out
    assert main(["run", *words, "--max-error=1e-12", model]) == 2
    assert "max_error=1e-12 is not reachable" in capsys.readouterr().err
    assert main(["run", *words, "--keep-f32=frist", model]) == 2
    assert "keep_f32 has 'frist', which no node is called" in capsys.readouterr().err


def test_the_word_for_equal_bits(model: str) -> None:
    found = model_words("run", ["--shape=x:1x3x6x7", "--constant=s:2", "--deterministic=batch", model])
    assert found.engine.any_batch
    assert found.load().planned().engine == found.engine


def test_a_pack_is_run(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the answer of the model; one of several shapes by the dims of one of them."""
    words, x = ["--threads=1", f"--input=x:{tmp_path}/x.npy"], random(1, 3, 6, 7)
    np.save(tmp_path / "x.npy", x)
    fixed, several = f"{tmp_path}/fixed.pack", f"{tmp_path}/several.pack"
    net = dnn.load_onnx(model, {"x": x.shape}, constants={"s": 2.0}, engine=dnn.Engine(isa="avx2", threads=1))
    net.save(fixed)
    open_net = dnn.load_onnx(model, constants={"s": 2.0}, engine=dnn.Engine(isa="avx2", threads=1))
    open_net.prepare([{"x": x.shape}])
    open_net.save(several)
    for more in ([fixed], ["--shape=x:1x3x6x7", several]):
        assert main(["run", *words, f"--output={tmp_path}/out.npz", *more]) == 0
        np.testing.assert_array_equal(np.load(tmp_path / "out.npz")["y"], net(x))
    assert main(["explain", fixed]) == 0
    assert "2 primitives" in capsys.readouterr().out
    for wrong, said in (
        (["run", "--shape=x:1x3x6x7", fixed], "fixed.pack is a pack, which is planned already: leave out --shape"),
        (["run", "--isa=avx2", "--constant=s:2", fixed], "planned already: leave out --isa, --constant"),
        (["run", "--fallback=numpy", fixed], "planned already: leave out --fallback"),
        (["run", several], "say dims that are open, such as --shape=x:1x3x64x64"),
        (["run", "--shape=x:1x3x6x8", several], "1x3x6x8"),
        (["run", "--peer=onnxruntime", fixed], "fixed.pack is a pack, which no peer reads: leave out --peer"),
        (["run", "--what", fixed], "fixed.pack' is a pack, and no ONNX model"),
        (["run", "--verify", fixed], "a network from a pack cannot be verified: load its model"),
        (["export", f"--c={tmp_path}/c", fixed], "a network from a pack cannot be exported: load its model"),
        (["analyze", fixed], "a network from a pack cannot be "),
        (["dump", f"--output={tmp_path}/d", fixed], "a network from a pack cannot be "),
        (["prove", fixed], "a network from a pack cannot be "),
    ):
        assert main(wrong) == 2
        assert said in (error := capsys.readouterr().err), error
        assert len(error.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--peer=tensorrt"], "--peer=tensorrt is not known: these are onnxruntime, openvino, "),
        (["--peer=absent-default"], "--peer=absent-default needs that package: pip install absent"),
        (["--shape=x"], "run: --shape=x says nothing of an input: say --shape=x:1x3x48x320"),
        (["--shape=1x3x6x7"], "run: --shape=1x3x6x7 says nothing of an input: say --shape=NAME:1x3x6x7"),
        (["--shape"], "run: --shape says nothing of an input: say --shape=NAME:1x3x48x320"),
        (["--constant=s"], "run: --constant=s says nothing of an input: say --constant=s:16000"),
        (["--bounds=:6"], "run: --bounds=:6 says nothing of an input: say --bounds=NAME:64"),
        (["--input=x"], "run: no option '--input=x': say --input=NAME:FILE.npy"),
        (["--output"], "run: no option '--output': say --output=FILE.npz"),
        (["--profile=1"], "run: no option '--profile=1': say --profile"),
        (["--input=x:missing.npy"], "--input=x: missing.npy cannot be read: No such file or directory"),
        (["--input=x:."], "--input=x: . cannot be read: Is a directory"),
    ],
)
def test_what_lacks_a_part(
    words: list[str], said: str, model: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All is said before anything is run."""
    monkeypatch.setattr(models, "PEERS", {**models.PEERS, "absent-default": models.PEERS["onnxruntime"]})
    assert main(["run", "--shape=x:1x3x6x7", "--constant=s:2", *words, model]) == 2
    shown = capsys.readouterr()
    assert (shown.out, said in shown.err) == ("", True), shown.err


@pytest.mark.parametrize("content", [b"", b"no array", b"\x93NUMPY"])
def test_a_file_without_an_array(
    content: bytes, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.npy").write_bytes(content)
    words = ["--shape=x:1x3x6x7", "--constant=s:2", f"--input=x:{tmp_path}/x.npy"]
    assert main(["run", *words, model]) == 2
    assert "x.npy is no file of one array that numpy.save wrote" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--nonsense"],
        ["--shape=x:3y"],
        ["--constant=s:z"],
        ["--threads=many"],
        ["--input=x:nothing.npy"],
        ["--peer=z"],
        ["--io=int8"],
        ["--max-error=small"],
        ["--deterministic=true"],
        ["--json", "--check"],
        ["--json", "--explain"],
    ],
)
def test_mistakes(model: str, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    good = ["--shape=x:1x3x6x7", "--constant=s:2"] if words else []
    assert main(["run", *good, *words, model]) == 2
    assert "asmdnn" in capsys.readouterr().err


def test_what_a_model_consists_of(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever is in it: nothing is refused by the first node alone."""
    path = Path(model).with_name("what.onnx")
    nodes = [wire.node("Relu", ["x"], ["a"]), *(wire.node("Pad", [a, "n"], [b], mode="wrap") for a, b in ("ab", "by"))]
    path.write_bytes(wire.model(wire.graph(nodes, {"x": (4, 8)}, ["y"], {"n": np.array([0, 1, 0, -1])})))
    assert main(["run", "--what", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split()[:5] == ["Pad", "2", "0", "2", "0"]
    assert lines[2].split() == ["Relu", "1", "1", "0", "0"]
    assert lines[3].split() == ["all", "3", "1", "2", "0"]
    nodes = [wire.node(op, ["x"], [f"y{i}"]) for i, op in enumerate(("Odd", "Relu", "Odd", "Odder"))]
    path.write_bytes(wire.model(wire.graph(nodes, {"x": (4, 8)}, ["y0"], {})))
    assert main(["run", "--what", "--json", str(path)]) == 0
    found = {one["operator"]: (one["nodes"], one["unknown"]) for one in json.loads(capsys.readouterr().out)}
    assert found == {"Odd": (2, 2), "Odder": (1, 1), "Relu": (1, 0)}
    with pytest.raises(dnn.Unimplemented, match=r"Odd 'y0' is an .* of 4 nodes such are Odd 2 times, Odder 1 times"):
        dnn.load_onnx(path)


def test_a_model_is_packed_and_listed(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.pack"
    assert main(["pack", "--shape=x:1x3x6x7", "--constant=s:2", "--threads=1", model, "-o", str(path)]) == 0
    assert f"{path}: <Network 'small': 3 nodes, 2 primitives> for " in capsys.readouterr().out
    net, x = dnn.load_pack(path), random(1, 3, 6, 7)
    assert isinstance(net, dnn.Network)
    known = dnn.load_onnx(model, {"x": (1, 3, 6, 7)}, constants={"s": 2})
    np.testing.assert_array_equal(net(x), known(x))
    assert main(["pack", "--list", str(path)]) == 0
    listed = capsys.readouterr().out
    assert "the network 'small'" in listed
    assert listed.count("\nkernel ") > 1


@pytest.mark.parametrize(
    "words",
    [["m.onnx"], ["m.onnx", "-o"], ["m.onnx", "-o", "x", "--nonsense"], ["m.onnx", "n.onnx", "-o", "x"]],
)
def test_bad_words_for_packing(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pack", *words]) == 2
    assert "pack: " in capsys.readouterr().err
