"""Files that commands write: under the name that was said, and never in the place of what they read."""

from pathlib import Path

import numpy as np
import pytest

import asmdnn as dnn
from asmdnn.cli.main import main
from tests.network.nets import engine, random

pytestmark = pytest.mark.isa("avx2")
DIMS = ["--constant=s:2", "--threads=1", "--shape=x:1x3x6x7"]


@pytest.mark.parametrize(
    "words",
    [
        ["pack", "-o", "{model}"],
        ["pack", "-o", "other.onnx"],
        ["run", "--output={model}"],
        ["explain", "--html={model}"],
        ["studio", "--html={model}"],
    ],
)
def test_a_model_is_not_overwritten(words: list[str], model: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = Path(model).read_bytes()
    assert main([word.format(model=model) for word in [*words, *DIMS, model]]) == 2
    assert "would be in the place of a model or an input: name another file" in capsys.readouterr().err
    assert Path(model).read_bytes() == before
    assert not Path("other.onnx").exists()


def test_an_input_is_not_overwritten(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "x.npy"
    np.save(file, random(1, 3, 6, 7))
    before = file.read_bytes()
    assert main(["run", "--constant=s:2", f"--input=x:{file}", f"--output={file}", model]) == 2
    assert "would be in the place" in capsys.readouterr().err
    assert file.read_bytes() == before


def test_outputs_are_where_they_were_said_to_be(model: str, tmp_path: Path) -> None:
    """numpy.savez adds .npz to names without it."""
    path = tmp_path / "results.arrays"
    assert main(["run", *DIMS, f"--output={path}", model]) == 0
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith("results")] == ["results.arrays"]
    with np.load(path) as arrays:
        assert arrays["y"].shape == (1, 8, 6, 7)


def test_an_output_of_any_name(tmp_path: Path) -> None:
    """numpy.savez has an argument `file` of its own."""
    graph = dnn.Graph()
    x = graph.input("x", (2, 3))
    net = graph.compile(engine=engine(), file=graph.apply("Relu", x))
    net.save(pack := tmp_path / "x.pack")
    assert main(["run", "--threads=1", f"--output={tmp_path}/y.npz", str(pack)]) == 0
    with np.load(tmp_path / "y.npz") as arrays:
        assert arrays["file"].shape == (2, 3)


def test_directories_are_said(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", *DIMS, f"--output={tmp_path}", model]) == 2
    assert f"--output={tmp_path} cannot be written: Is a directory" in capsys.readouterr().err


def test_a_file_of_several_arrays(model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(tmp_path / "x.npz", x=random(1, 3, 6, 7))
    assert main(["run", "--constant=s:2", f"--input=x:{tmp_path}/x.npz", model]) == 2
    assert "x.npz is no file of one array that numpy.save wrote" in capsys.readouterr().err


def test_inputs_without_dims(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A number has no dim that could be 1, beside inputs that have open ones."""
    graph = dnn.Graph()
    x, n = graph.input("x", ("batch", 4)), graph.input("n", ())
    net = graph.compile(engine=engine(), y=graph.apply("Mul", x, n))
    net.run({"x": random(1, 4), "n": np.float32(2)})
    net.save(pack := tmp_path / "x.pack")
    assert main(["run", "--threads=1", str(pack)]) == 0
    assert "y float32 1x4" in capsys.readouterr().out


def test_constants_that_do_not_fit(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--constant=s:2", "--constant=x:5", model]) == 2
    assert "constants['x'] has dims (), which does not fit the model's" in capsys.readouterr().err


def test_numbers_below_zero(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", *DIMS, "--threads=-1", model]) == 2
    assert "--threads=-1 must be a number from 0 on" in capsys.readouterr().err


def test_dims_of_fixed_inputs_may_be_said_beside_open_ones(tmp_path: Path) -> None:
    """They are no part of what a shape is kept by, neither in a process nor in a file."""
    graph = dnn.Graph()
    x, w = graph.input("x", ("batch", 4)), graph.input("w", (4, 3))
    net = graph.compile(engine=engine(), y=x @ w)
    net.prepare([{"x": (2, 4), "w": (4, 3)}])
    assert net.shapes == [{"x": (2, 4)}]
    net.save(tmp_path / "x.pack")
    loaded = dnn.load_pack(tmp_path / "x.pack")
    feeds = {"x": random(2, 4), "w": random(4, 3)}
    for shapes in ({"x": (2, 4)}, {"x": (2, 4), "w": (4, 3)}):
        assert np.array_equal(loaded.at(shapes).run(feeds)["y"], net.run(feeds)["y"])
